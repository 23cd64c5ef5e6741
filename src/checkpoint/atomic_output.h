// AtomicFile, AtomicDirectory: what is written appears under its final name complete, or not at all.
//
// The bytes go to a hidden temporary name in the same folder, ".<name>.<process>.<number>.partial"; commit() flushes them to the disk
// and renames. An object that ends without commit() removes what it wrote. A process that is killed leaves the temporary only.
#pragma once

#include <finescale/status.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace finescale::checkpoint {

// What to do where the final name exists already.
enum class Existing : std::uint8_t { refuse, replace };

class AtomicFile {
 public:
  // invalid_argument: the name exists (and `existing` is refuse) or is a directory. io_error: the folder cannot be written.
  static Result<AtomicFile> create(const std::filesystem::path& path, Existing existing);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  // Writes at a byte offset; a part never written reads as zeros.
  Status write_at(std::int64_t offset, std::span<const std::byte> bytes);
  Status commit();

 private:
  AtomicFile(std::filesystem::path path, std::filesystem::path temporary, int descriptor, Existing existing);
  Status failed(const char* what) const;

  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;  // -1: committed or moved from
  Existing existing_;
};

class AtomicDirectory {
 public:
  // Existing::replace removes what was there; a directory that holds files but no *.safetensors among them is refused even then.
  static Result<AtomicDirectory> create(const std::filesystem::path& path, Existing existing);

  AtomicDirectory(AtomicDirectory&& other) noexcept;
  AtomicDirectory& operator=(AtomicDirectory&&) = delete;
  ~AtomicDirectory();

  // Where the files are to be written until commit().
  const std::filesystem::path& folder() const { return temporary_; }
  Status commit();

 private:
  AtomicDirectory(std::filesystem::path path, std::filesystem::path temporary, Existing existing);

  std::filesystem::path path_, temporary_;  // temporary_ empty: committed or moved from
  Existing existing_;
};

// A whole file at once.
Status write_file(const std::filesystem::path& path, std::span<const std::byte> bytes, Existing existing);

}  // namespace finescale::checkpoint
