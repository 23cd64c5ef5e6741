// dump_codes <directory>: what element.h makes of every code and of many inputs, as little-endian arrays for
// compare_ml_dtypes.py: inputs.f32, and for each element <name>.codes (uint32, one an input) and <name>.values (f32, one a code).
#include <finescale/formats/element.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

// splitmix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
std::uint64_t random_word(std::uint64_t index) {
  std::uint64_t z = (index + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// All f16, all bf16, half a million FP32 patterns, half a million within twelve binades of 1.
std::vector<float> inputs() {
  std::vector<float> values;
  for (std::uint32_t code = 0; code < 0x10000; ++code) values.push_back(finescale::F16::decode(code));
  for (std::uint32_t code = 0; code < 0x10000; ++code) values.push_back(finescale::bits_float(code << 16));
  for (std::uint64_t i = 0; i < 500000; ++i) values.push_back(finescale::bits_float(static_cast<std::uint32_t>(random_word(i))));
  for (std::uint64_t i = 500000; i < 1000000; ++i) {
    const auto word = static_cast<std::uint32_t>(random_word(i));
    values.push_back(finescale::bits_float((word & 0x807FFFFFu) | (115 + (word >> 23 & 0xFF) % 24) << 23));
  }
  return values;
}

template <class T>
bool write(const std::string& path, const std::vector<T>& numbers) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(numbers.data()), static_cast<std::streamsize>(numbers.size() * sizeof(T)));
  return static_cast<bool>(file);
}

}  // namespace

int main(int argc, char** argv) {
  using finescale::Element;
  if (argc != 2) {
    std::fputs("usage: dump_codes <directory>\n", stderr);
    return 2;
  }
  const std::string directory = std::string(argv[1]) + "/";
  constexpr struct {
    const char* name;
    Element element;
  } kElements[] = {{"e2m1", Element::e2m1}, {"e4m3", Element::e4m3}, {"e5m2", Element::e5m2},
                   {"e8m0", Element::e8m0}, {"f16", Element::f16},   {"bf16", Element::bf16}};
  const std::vector<float> values = inputs();
  bool written = write(directory + "inputs.f32", values);
  for (const auto& row : kElements) {
    std::vector<std::uint32_t> codes;
    for (const float value : values) codes.push_back(finescale::encode(row.element, value));
    std::vector<float> decoded;
    for (std::uint32_t code = 0; code < 1u << finescale::bits(row.element); ++code) decoded.push_back(finescale::decode(row.element, code));
    written = written && write(directory + row.name + ".codes", codes) && write(directory + row.name + ".values", decoded);
  }
  return written ? 0 : 1;
}
