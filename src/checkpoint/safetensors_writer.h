// SafetensorsWriter: a safetensors file of which only the header is ever held in memory.
//
// The header is laid out from shapes alone, before the first byte of a tensor: wide dtypes first, then by name, so that
// every tensor lies at a multiple of its element's size, and the data begins at a multiple of 64.
#pragma once

#include "checkpoint/atomic_output.h"
#include "checkpoint/safetensors.h"

#include <finescale/status.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace finescale::checkpoint {

class SafetensorsWriter {
 public:
  // invalid_argument: a name twice, or "__metadata__" as a name; io_error: a shape that cannot be stored, or from AtomicFile.
  static Result<SafetensorsWriter> create(const std::filesystem::path& path, const std::vector<TensorSpec>& tensors,
                                          const StringMap& metadata, Existing existing);

  // Appends bytes to tensor `index` of the list given to create; tensors may be filled in any order, each from its start.
  Status append(std::size_t index, std::span<const std::byte> bytes);
  // Every tensor must be complete. Afterwards the file stands under its name.
  Status commit();
  std::int64_t file_bytes() const { return file_bytes_; }

 private:
  struct Extent {
    std::string name;
    std::int64_t next = 0, end = 0;  // in the file
  };

  SafetensorsWriter(AtomicFile file, std::vector<Extent> extents, std::int64_t file_bytes);

  AtomicFile file_;
  std::vector<Extent> extents_;
  std::int64_t file_bytes_;
};

}  // namespace finescale::checkpoint
