// Input: bytes that choose a format, a recipe, a shape and a layout, then the elements. Property: every kernel that takes the problem
// writes the bytes of the reference, and dequantizes them to the same bits.
#include "checkpoint/host_operand.h"
#include "fuzz_target.h"

#include <finescale/dequantize.h>
#include <finescale/quantize.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

using namespace finescale;
using finescale::checkpoint::HostBuffer;
using finescale::checkpoint::run_on_host;

namespace {

const Device& cpu() {
  static const Device kDevice = *Device::open("cpu", {.threads = 1});
  return kDevice;
}

class Input {
 public:
  Input(const std::uint8_t* bytes, std::size_t size) : bytes_(bytes), size_(size) {}

  // The next byte, in a circle; 0 where there is none.
  std::uint8_t byte() { return size_ == 0 ? 0 : bytes_[position_++ % size_]; }
  template <class T, std::size_t kCount>
  T pick(const T (&choices)[kCount]) {
    return choices[byte() % kCount];
  }

 private:
  const std::uint8_t* bytes_;
  std::size_t size_, position_ = 0;
};

// One result: its buffers begin poisoned with `poison`.
struct Quantized {
  Quantized(const MutableMatrix& shape, std::byte poison) : matrix(shape) {
    const auto sizes = storage(shape);
    FINESCALE_FUZZ_EXPECT(sizes);
    data = *HostBuffer::make(sizes->data);
    scales = *HostBuffer::make(sizes->scales);
    std::ranges::fill(data.bytes(), poison);
    std::ranges::fill(scales.bytes(), poison);
    global.resize(static_cast<std::size_t>(shape.rows), 1.0f);
    matrix.data = data.data();
    matrix.scales = scales.data();
    matrix.global = global.data();
  }

  bool equals(const Quantized& other) const {
    return std::ranges::equal(data.bytes(), other.data.bytes()) && std::ranges::equal(scales.bytes(), other.scales.bytes()) &&
           std::memcmp(global.data(), other.global.data(), global.size() * sizeof(float)) == 0;
  }

  MutableMatrix matrix;
  HostBuffer data, scales;
  std::vector<float> global;
};

void compare_dequantized(const Matrix& from, Element element) {
  DequantizeProblem problem;
  problem.from = from;
  problem.to = {.format = {element}, .rows = from.rows, .cols = from.cols};
  problem.kernel = "dequantize_reference";
  const auto sizes = storage(problem.to);
  FINESCALE_FUZZ_EXPECT(sizes);
  HostBuffer expected = *HostBuffer::make(sizes->data), got = *HostBuffer::make(sizes->data);
  problem.to.data = expected.data();
  FINESCALE_FUZZ_EXPECT(run_on_host(problem, cpu()));
  problem.to.data = got.data();
  problem.kernel = nullptr;
  for (const Explanation& row : explain(problem, cpu())) {
    if (!row.accepted || row.kernel == "dequantize_reference") continue;
    problem.kernel = row.kernel.data();
    std::ranges::fill(got.bytes(), std::byte{0x5A});
    FINESCALE_FUZZ_EXPECT(run_on_host(problem, cpu()));
    FINESCALE_FUZZ_EXPECT(std::ranges::equal(expected.bytes(), got.bytes()));
  }
}

MutableMatrix choose_result(Input& input) {
  constexpr std::size_t kPlain = 3;  // the first rows of kFormats
  constexpr ScaleLayout kLayouts[] = {ScaleLayout::linear, ScaleLayout::scale_128x4, ScaleLayout::scale_8x4};
  constexpr GlobalScale kGlobals[] = {GlobalScale::none, GlobalScale::one, GlobalScale::per_row};
  constexpr CodeLayout kCodes[] = {CodeLayout::row_major, CodeLayout::high_nibble_first};
  MutableMatrix to;
  to.format = kFormats[kPlain + input.byte() % (std::size(kFormats) - kPlain)].format;
  to.rows = 1 + input.byte() % 5;
  to.cols = 1 + input.byte() % 72;
  to.scale_layout = input.pick(kLayouts);
  to.global_kind = to.format.global ? input.pick(kGlobals) : GlobalScale::none;
  to.codes = bits(to.format.element) == 4 ? input.pick(kCodes) : CodeLayout::row_major;
  return to;
}

Recipe choose_recipe(Input& input) {
  constexpr PowerRule kPowers[] = {PowerRule::round_up, PowerRule::ocp_floor, PowerRule::even};
  constexpr ScaleSearch kSearches[] = {ScaleSearch::max, ScaleSearch::four_six, ScaleSearch::mse};
  constexpr Rounding kRoundings[] = {Rounding::nearest_even, Rounding::nearest_even, Rounding::stochastic};
  Recipe recipe;
  const std::uint8_t profile = input.byte();
  if (profile < 128) recipe.profile = kProfiles[profile % std::size(kProfiles)].profile;
  recipe.power = input.pick(kPowers);
  recipe.search = input.pick(kSearches);
  recipe.rounding = input.pick(kRoundings);
  recipe.pow2 = input.byte() % 2 != 0;
  recipe.seed = input.byte();
  return recipe;
}

// Raw bits, or, to stay clear of NaN and overflow, values between 2^-8 and 2^8.
std::vector<std::byte> choose_elements(Input& input, Element element, std::int64_t count) {
  const bool mild = input.byte() % 4 != 0;
  std::vector<std::byte> elements(static_cast<std::size_t>(count * bits(element) / 8));
  for (std::byte& byte : elements) byte = static_cast<std::byte>(input.byte());
  for (std::int64_t i = 0; mild && i < count; ++i) {
    const std::uint32_t raw = load_code(elements.data(), i, bits(element), false);
    const float value = bits_float((raw << 24 & 0x80000000u) | (119u + (raw & 15u)) << 23 | (raw << 3 & 0x7FFFFFu));
    store_code(elements.data(), i, bits(element), false, (raw & 0x70u) == 0 ? 0u : encode(element, value));
  }
  return elements;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  constexpr Element kPlainElements[] = {Element::f32, Element::f16, Element::bf16};
  Input input(bytes, size);
  QuantizeProblem problem;
  const MutableMatrix to = choose_result(input);
  const Element from = input.pick(kPlainElements);
  problem.recipe = choose_recipe(input);
  const auto elements = choose_elements(input, from, to.rows * to.cols);
  problem.from = {.format = {from}, .rows = to.rows, .cols = to.cols, .alignment = 1, .data = elements.data()};
  if (!storage(to)) return 0;
  Quantized expected(to, std::byte{0xA5});
  problem.to = expected.matrix;
  problem.kernel = "quantize_reference";
  if (!plan(problem, cpu())) return 0;
  FINESCALE_FUZZ_EXPECT(run_on_host(problem, cpu()));
  problem.kernel = nullptr;
  for (const Explanation& row : explain(problem, cpu())) {
    if (!row.accepted || row.kernel == "quantize_reference") continue;
    Quantized got(to, std::byte{0x5A});
    problem.to = got.matrix;
    problem.kernel = row.kernel.data();
    FINESCALE_FUZZ_EXPECT(run_on_host(problem, cpu()));
    FINESCALE_FUZZ_EXPECT(got.equals(expected));
  }
  compare_dequantized(expected.matrix, input.pick(kPlainElements));
  return 0;
}
