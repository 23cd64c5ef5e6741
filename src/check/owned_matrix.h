// Host memory for a Matrix: buffers of exactly the bytes that its tags need, between guard zones, poisoned so that
// anything a kernel leaves unwritten, or reads without right, shows as NaN.
#pragma once

#include <finescale/access.h>
#include <finescale/matrix.h>
#include <finescale/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace finescale {

// 256-byte aligned bytes with a guard zone on either side; none, and bytes() 0, where memory is out.
class GuardedBuffer {
 public:
  GuardedBuffer() = default;
  explicit GuardedBuffer(std::int64_t bytes, std::uint8_t fill = 0xFF);

  std::byte* data() const { return bytes_ == 0 ? nullptr : memory_.get() + kGuard; }
  std::int64_t bytes() const { return bytes_; }
  bool guards_intact() const;
  // All of it, guard zones included: what travels to a device and back.
  std::byte* region() const { return memory_.get(); }
  std::int64_t region_bytes() const { return bytes_ == 0 ? 0 : round_up(bytes_, kGuard) + 2 * kGuard; }

 private:
  static constexpr std::int64_t kGuard = 256;
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::int64_t bytes_ = 0;
};

// A matrix that owns its codes, block scales and global scales. 0xFF everywhere at first: NaN in every element but E2M1.
class OwnedMatrix {
 public:
  OwnedMatrix() = default;
  // Buffers for these tags; pointers in `tags` are ignored. `groups` as for storage(). Fails as storage() does, or
  // out_of_memory.
  static Result<OwnedMatrix> make(Matrix tags, std::int64_t groups = 1);

  MutableMatrix view() const;
  std::int64_t global_count() const { return globals_.bytes() / 4; }
  const GuardedBuffer& data() const { return data_; }
  const GuardedBuffer& scales() const { return scales_; }
  const GuardedBuffer& globals() const { return globals_; }
  bool guards_intact() const { return data_.guards_intact() && scales_.guards_intact() && globals_.guards_intact(); }

 private:
  Matrix tags_{};
  GuardedBuffer data_, scales_, globals_;
};

}  // namespace finescale
