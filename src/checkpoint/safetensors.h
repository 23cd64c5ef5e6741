// safetensors: N (u64, little-endian), N bytes of JSON, then the tensors' bytes without a gap.
//
// The JSON is {name: {"dtype", "shape", "data_offsets": [begin, end)}, ..., "__metadata__": {string: string}}; offsets count
// from the end of the JSON. Every rule of the format is checked when a file is opened: afterwards each tensor's bytes lie
// inside the file and are as many as its dtype and shape say.
#pragma once

#include "checkpoint/dtype.h"
#include "checkpoint/mapped_file.h"

#include <finescale/status.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace finescale::checkpoint {

using Shape = std::vector<std::int64_t>;

struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::u8;
  Shape shape;
};

// "[4096, 11008]"
std::string shape_text(const Shape& shape);
// Bytes of a tensor: product(shape) * bits / 8. io_error: it does not fit int64, or 4- and 6-bit elements end inside a byte.
Result<std::int64_t> tensor_bytes(const TensorSpec& tensor);

struct StoredTensor : TensorSpec {
  std::int64_t begin = 0, end = 0;  // in the data that follows the header
};

using StringMap = std::map<std::string, std::string>;

struct SafetensorsHeader {
  std::vector<StoredTensor> tensors;  // in the order of their bytes
  StringMap metadata;                 // of "__metadata__"
  std::int64_t data_start = 0;        // bytes before the data
};

// The header's largest size in bytes, a limit that readers of this format share.
inline constexpr std::int64_t kMaxHeaderBytes = 100'000'000;

// Reads and checks the header of a whole file in memory. io_error: a sentence that names the tensor or field.
Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file);

class SafetensorsFile {
 public:
  static Result<SafetensorsFile> open(const std::filesystem::path& path);
  // A whole file that lies in memory, which must outlive the object.
  static Result<SafetensorsFile> view(std::span<const std::byte> file);

  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const StringMap& metadata() const { return header_.metadata; }
  const StoredTensor* find(std::string_view name) const;
  std::span<const std::byte> bytes(const StoredTensor& tensor) const;
  // See MappedFile::release; nothing for a view.
  void release(std::span<const std::byte> part) const;

 private:
  SafetensorsFile(std::span<const std::byte> file, SafetensorsHeader header);

  std::optional<MappedFile> mapping_;
  std::span<const std::byte> file_;
  SafetensorsHeader header_;
  std::unordered_map<std::string_view, std::size_t> by_name_;  // views of header_.tensors, which never changes
};

}  // namespace finescale::checkpoint
