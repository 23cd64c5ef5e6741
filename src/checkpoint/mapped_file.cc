#include "checkpoint/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace finescale::checkpoint {

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const auto failed = [&](const char* what) { return io_error(fmt::format("{}: {}: {}", path.string(), what, std::strerror(errno))); };
  // O_NONBLOCK: a FIFO without a writer must not hang; it has no effect on a regular file.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return failed("cannot open");
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0) {
    const Status status = failed("cannot stat");
    ::close(descriptor);
    return status;
  }
  if (!S_ISREG(facts.st_mode)) {
    ::close(descriptor);
    return io_error(fmt::format("{}: not a regular file", path.string()));
  }
  const auto size = static_cast<std::size_t>(facts.st_size);
  if (size == 0) {
    ::close(descriptor);
    return MappedFile(nullptr, 0);
  }
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const Status status = start == MAP_FAILED ? failed("cannot map") : Status{};
  ::close(descriptor);
  if (!status) return status;
  return MappedFile(static_cast<const std::byte*>(start), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept : start_(std::exchange(other.start_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(start_, other.start_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (start_ != nullptr) ::munmap(const_cast<std::byte*>(start_), size_);
}

void MappedFile::release(std::span<const std::byte> part) const {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace finescale::checkpoint
