#include "checkpoint/atomic_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

namespace finescale::checkpoint {
namespace {

namespace fs = std::filesystem;

Status system_failure(const fs::path& path, const char* what) {
  return io_error(fmt::format("{}: {}: {}", path.string(), what, std::strerror(errno)));
}

fs::path without_trailing_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// Makes ".<name>.<process>.<attempt>.partial" beside the final name by `make`, which is mkdir or an exclusive open: negative where
// that failed. Long names are cut to fit the 255 bytes of a name.
template <class Make>
Result<fs::path> make_temporary(const fs::path& path, Make make) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    fs::path temporary = folder_of(path) / fmt::format(".{}.{}.{}.partial", path.filename().string().substr(0, 200), ::getpid(), attempt);
    if (make(temporary.c_str()) >= 0) return temporary;
    if (errno != EEXIST) break;
  }
  return system_failure(folder_of(path), "cannot write into it");
}

Status flush_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return system_failure(folder, "cannot open");
  const bool flushed = ::fsync(descriptor) == 0;
  const Status status = flushed ? Status{} : system_failure(folder, "cannot flush");
  ::close(descriptor);
  return status;
}

bool taken(const fs::path& path) {
  struct stat facts {};
  return ::lstat(path.c_str(), &facts) == 0;
}

Status already_there(const fs::path& path) { return invalid_argument(fmt::format("{}: exists already", path.string())); }

// Renames, without ever replacing where `existing` is refuse.
Status publish(const fs::path& from, const fs::path& to, Existing existing) {
  if (existing == Existing::replace) return ::rename(from.c_str(), to.c_str()) == 0 ? Status{} : system_failure(to, "cannot rename to it");
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST) return already_there(to);
  if (errno != EINVAL && errno != ENOSYS) return system_failure(to, "cannot rename to it");
  // This file system knows no such flag.
  if (taken(to)) return already_there(to);
  return ::rename(from.c_str(), to.c_str()) == 0 ? Status{} : system_failure(to, "cannot rename to it");
}

// Whether a directory may be replaced: it is empty, or holds a safetensors file.
bool looks_like_checkpoint(const fs::path& path) {
  std::error_code error;
  bool empty = true;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    empty = false;
    if (entry.path().extension() == ".safetensors") return true;
  }
  return empty && !error;
}

}  // namespace

AtomicFile::AtomicFile(fs::path path, fs::path temporary, int descriptor, Existing existing)
    : path_(std::move(path)), temporary_(std::move(temporary)), descriptor_(descriptor), existing_(existing) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      existing_(other.existing_) {}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

Status AtomicFile::failed(const char* what) const { return system_failure(path_, what); }

Result<AtomicFile> AtomicFile::create(const fs::path& path, Existing existing) {
  std::error_code error;
  if (!path.has_filename() || fs::is_directory(path, error))
    return invalid_argument(fmt::format("{}: is a directory, not a file", path.string()));
  if (existing == Existing::refuse && taken(path)) return already_there(path);
  // A rename over a device, a pipe or a socket would remove it.
  if (const fs::file_status there = fs::status(path, error); fs::exists(there) && !fs::is_regular_file(there)) {
    return invalid_argument(fmt::format("{}: is not a regular file, and is not replaced", path.string()));
  }
  int descriptor = -1;
  const auto temporary =
      make_temporary(path, [&](const char* name) { return descriptor = ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); });
  FINESCALE_TRY(temporary);
  return AtomicFile(path, *temporary, descriptor, existing);
}

Status AtomicFile::write_at(std::int64_t offset, std::span<const std::byte> bytes) {
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // a single write ends short of 2 GiB
  while (!bytes.empty()) {
    const auto written = ::pwrite(descriptor_, bytes.data(), std::min(bytes.size(), kMostAtOnce), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("cannot write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += written;
  }
  return {};
}

Status AtomicFile::commit() {
  if (::fsync(descriptor_) != 0) return failed("cannot flush");
  FINESCALE_TRY(publish(temporary_, path_, existing_));
  ::close(std::exchange(descriptor_, -1));
  return flush_folder(folder_of(path_));
}

AtomicDirectory::AtomicDirectory(fs::path path, fs::path temporary, Existing existing)
    : path_(std::move(path)), temporary_(std::move(temporary)), existing_(existing) {}

AtomicDirectory::AtomicDirectory(AtomicDirectory&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})), existing_(other.existing_) {}

AtomicDirectory::~AtomicDirectory() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

Result<AtomicDirectory> AtomicDirectory::create(const fs::path& given, Existing existing) {
  const fs::path path = without_trailing_slash(given);
  std::error_code error;
  if (taken(path)) {
    if (existing == Existing::refuse) return already_there(path);
    if (!fs::is_directory(path, error)) return invalid_argument(fmt::format("{}: is a file, not a directory", path.string()));
    if (!looks_like_checkpoint(path)) {
      return invalid_argument(fmt::format("{}: is not replaced, because it holds files but no *.safetensors among them", path.string()));
    }
  }
  const auto temporary = make_temporary(path, [](const char* name) { return ::mkdir(name, 0777); });
  FINESCALE_TRY(temporary);
  return AtomicDirectory(path, *temporary, existing);
}

Status AtomicDirectory::commit() {
  FINESCALE_TRY(flush_folder(temporary_));
  if (existing_ == Existing::replace && taken(path_)) {
    // The two names change places in one step; what was there before is then removed with the temporary name.
    if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) != 0)
      return system_failure(path_, "cannot replace it");
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
  } else {
    FINESCALE_TRY(publish(temporary_, path_, Existing::refuse));
  }
  temporary_.clear();
  return flush_folder(folder_of(path_));
}

Status write_file(const fs::path& path, std::span<const std::byte> bytes, Existing existing) {
  auto file = AtomicFile::create(path, existing);
  FINESCALE_TRY(file);
  FINESCALE_TRY(file->write_at(0, bytes));
  return file->commit();
}

}  // namespace finescale::checkpoint
