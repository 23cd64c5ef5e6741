// Ops on tensors of a checkpoint: plain matrices over their bytes, buffers for results, and one call that brings its own workspace.
#pragma once

#include "checkpoint/checkpoint.h"

#include <finescale/device.h>
#include <finescale/kernel.h>
#include <finescale/matrix.h>
#include <finescale/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

namespace finescale::checkpoint {

// Bytes at a multiple of 256, as workspaces need. Their content is not set.
class HostBuffer {
 public:
  explicit HostBuffer(std::int64_t size = 0) : size_(static_cast<std::size_t>(size)), start_(size == 0 ? nullptr : allocate(size_)) {}

  std::byte* data() { return start_.get(); }
  std::span<std::byte> bytes() { return {start_.get(), size_}; }
  std::span<const std::byte> bytes() const { return {start_.get(), size_}; }

 private:
  static constexpr std::align_val_t kAlignment{256};
  struct Free {
    void operator()(std::byte* start) const { ::operator delete(start, kAlignment); }
  };
  static std::byte* allocate(std::size_t size) { return static_cast<std::byte*>(::operator new(size, kAlignment)); }

  std::size_t size_;
  std::unique_ptr<std::byte, Free> start_;
};

// A rank-2 f32, f16 or bf16 tensor as a matrix. The format aligns no tensor: where one lies unaligned for its elements, its
// bytes are copied into `copy`, which then must outlive the matrix.
Matrix plain_matrix(const Tensor& tensor, HostBuffer& copy);

// Rows of a matrix without batches, from `first` on.
Matrix row_slice(const Matrix& matrix, std::int64_t first, std::int64_t count);

// unsupported where the device is not a CPU: operands lie in host memory.
Status require_host(const Device& device);

// plan and run of an op on host memory, with a workspace for this call alone.
template <class Problem>
Status run_on_host(const Problem& problem, const Device& device) {
  const auto made = plan(problem, device);
  FINESCALE_TRY(made);
  HostBuffer scratch(made->choice.scratch_bytes), sync(made->choice.sync_bytes);
  for (std::byte& byte : sync.bytes()) byte = std::byte{0};
  Execution execution{.device = &device};
  execution.workspace = {scratch.data(), made->choice.scratch_bytes, sync.data(), made->choice.sync_bytes};
  return run(*made, problem, execution);
}

}  // namespace finescale::checkpoint
