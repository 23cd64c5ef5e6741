// MappedFile: a file's bytes, read-only, mapped into memory. Whoever shortens the file while it is mapped ends the process.
#pragma once

#include <finescale/status.h>

#include <cstddef>
#include <filesystem>
#include <span>

namespace finescale::checkpoint {

class MappedFile {
 public:
  // io_error: not there, not a regular file, not readable.
  static Result<MappedFile> open(const std::filesystem::path& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {start_, size_}; }
  // Gives back the memory of pages that lie wholly inside `part`; they are read again when touched.
  void release(std::span<const std::byte> part) const;

 private:
  MappedFile(const std::byte* start, std::size_t size) : start_(start), size_(size) {}

  const std::byte* start_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace finescale::checkpoint
