// Ops on tensors of a checkpoint: plain matrices over their bytes, buffers for results, and one call that brings its own workspace.
#pragma once

#include "checkpoint/checkpoint.h"

#include <finescale/device.h>
#include <finescale/kernel.h>
#include <finescale/matrix.h>
#include <finescale/status.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace finescale::checkpoint {

// Bytes at a multiple of 256, as workspaces need. Their content is not set. Large ones are pages of their own, which go back to
// the system at once: a heap that keeps some of every tensor's buffers grows with the file.
class HostBuffer {
 public:
  // out_of_memory where the system has none.
  static Result<HostBuffer> make(std::int64_t size);

  HostBuffer() = default;
  HostBuffer(HostBuffer&& other) noexcept : size_(std::exchange(other.size_, 0)), start_(std::exchange(other.start_, nullptr)) {}
  HostBuffer& operator=(HostBuffer&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(start_, other.start_);
    return *this;
  }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  ~HostBuffer();

  std::byte* data() { return start_; }
  std::span<std::byte> bytes() { return {start_, size_}; }
  std::span<const std::byte> bytes() const { return {start_, size_}; }

 private:
  std::size_t size_ = 0;
  std::byte* start_ = nullptr;
};

// A rank-2 f32, f16 or bf16 tensor as a matrix. The format aligns no tensor: where one lies unaligned for its elements, its
// bytes are copied into `copy`, which then must outlive the matrix.
Result<Matrix> plain_matrix(const Tensor& tensor, HostBuffer& copy);

// Rows of a matrix without batches, from `first` on.
Matrix row_slice(const Matrix& matrix, std::int64_t first, std::int64_t count);

// unsupported where the device is not a CPU: operands lie in host memory.
Status require_host(const Device& device);

// plan and run of an op on host memory, with a workspace for this call alone.
template <class Problem>
Status run_on_host(const Problem& problem, const Device& device) {
  const auto made = plan(problem, device);
  FINESCALE_TRY(made);
  auto scratch = HostBuffer::make(made->choice.scratch_bytes), sync = HostBuffer::make(made->choice.sync_bytes);
  FINESCALE_TRY(scratch);
  FINESCALE_TRY(sync);
  std::ranges::fill(sync->bytes(), std::byte{0});
  Execution execution{.device = &device};
  execution.workspace = {scratch->data(), made->choice.scratch_bytes, sync->data(), made->choice.sync_bytes};
  return run(*made, problem, execution);
}

}  // namespace finescale::checkpoint
