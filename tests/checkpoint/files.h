// Makes files and directories for the checkpoint tests, bytes by hand: the writer under test is not used to make its inputs.
#pragma once

#include "checkpoint/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <finescale/device.h>

#include <algorithm>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace finescale::checkpoint {

namespace fs = std::filesystem;

struct FileTensor {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;
};

// A folder that goes away with the object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "finescale_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { fs::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  fs::path operator/(const std::string& name) const { return path_ / name; }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Names of everything in a folder, hidden files too.
inline std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline void write_text(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

inline std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

inline std::string raw_f32(float value) { return raw(std::vector<float>{value}); }

// The length and the JSON, then the data.
inline std::string safetensors_of(std::string_view json, std::string_view bytes) {
  std::string file = raw(std::vector<std::uint64_t>{json.size()});
  file += json;
  return file.append(bytes);
}

// metadata: the JSON text of __metadata__; empty: none.
inline std::string safetensors_of(const std::vector<FileTensor>& tensors, std::string_view metadata = {}) {
  std::string json = "{", bytes;
  if (!metadata.empty()) json.append("\"__metadata__\":").append(metadata).append(",");
  for (const FileTensor& tensor : tensors) {
    json += fmt::format("\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}},", tensor.name, tensor.dtype,
                        fmt::join(tensor.shape, ","), bytes.size(), bytes.size() + tensor.bytes.size());
    bytes += tensor.bytes;
  }
  if (json.back() == ',') json.pop_back();
  return safetensors_of(json + "}", bytes);
}

inline std::span<const std::byte> as_bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

inline std::string bytes_of(const Tensor& tensor) { return {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()}; }

inline std::vector<float> floats_of(const Tensor& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(float));
  return values;
}

inline fs::path golden(const std::string& name) { return fs::path(FINESCALE_TEST_DIRECTORY) / "checkpoint" / "golden" / name; }

// The value of a Result, or a failed test that shows its sentence.
#define FINESCALE_ASSERT_OK(result) ASSERT_TRUE(result) << ::finescale::status_of(result).sentence

// Every tensor of `a` is in `b` with equal name, dtype, shape and bytes, and the other way round.
inline void expect_equal_tensors(const Checkpoint& a, const Checkpoint& b) {
  EXPECT_EQ(a.tensors().size(), b.tensors().size());
  for (const Tensor& tensor : a.tensors()) {
    const Tensor* other = b.find(tensor.name);
    ASSERT_NE(other, nullptr) << tensor.name;
    EXPECT_EQ(tensor.dtype, other->dtype) << tensor.name;
    EXPECT_EQ(tensor.shape, other->shape) << tensor.name;
    EXPECT_EQ(bytes_of(tensor), bytes_of(*other)) << tensor.name;
  }
}

// A matrix's tensors in ModelOpt's and in compressed-tensors' names; `global` is the scalar as it is stored.
inline std::vector<FileTensor> modelopt_weight(const std::string& module, std::int64_t rows, std::int64_t cols, float global,
                                               char codes = 0x22, char scale = 0x38) {
  const std::int64_t blocks = (cols + 15) / 16;
  return {{module + ".weight", "U8", {rows, cols / 2}, std::string(static_cast<std::size_t>(rows * cols / 2), codes)},
          {module + ".weight_scale", "F8_E4M3", {rows, blocks}, std::string(static_cast<std::size_t>(rows * blocks), scale)},
          {module + ".weight_scale_2", "F32", {}, raw_f32(global)}};
}

inline std::vector<FileTensor> packed_weight(const std::string& module, std::int64_t rows, std::int64_t cols, float global,
                                             char codes = 0x22, char scale = 0x38) {
  auto tensors = modelopt_weight(module, rows, cols, global, codes, scale);
  tensors[0].name = module + ".weight_packed";
  tensors[2] = {module + ".weight_global_scale", "F32", {1}, raw_f32(global)};
  return tensors;
}

inline std::vector<FileTensor> operator+(std::vector<FileTensor> a, const std::vector<FileTensor>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline FileTensor plain_f32(const std::string& name, std::int64_t rows, std::int64_t cols, float value = 1.0f) {
  return {name, "F32", {rows, cols}, raw(std::vector<float>(static_cast<std::size_t>(rows * cols), value))};
}

inline Device cpu() { return *Device::open("cpu"); }

}  // namespace finescale::checkpoint
