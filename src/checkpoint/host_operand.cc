#include "checkpoint/host_operand.h"

#include <finescale/layouts/packed_codes.h>

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace finescale::checkpoint {

namespace {

constexpr std::align_val_t kAlignment{256};
constexpr std::size_t kPagesFrom = std::size_t{1} << 20;

}  // namespace

Result<HostBuffer> HostBuffer::make(std::int64_t size) {
  HostBuffer buffer;
  if (size == 0) return buffer;
  const auto bytes = static_cast<std::size_t>(size);
  void* start = bytes < kPagesFrom ? ::operator new(bytes, kAlignment, std::nothrow)
                                   : ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == nullptr || start == MAP_FAILED)
    return out_of_memory(fmt::format("a buffer of {} bytes: the system has no memory for it", size));
  buffer.size_ = bytes;
  buffer.start_ = static_cast<std::byte*>(start);
  return buffer;
}

HostBuffer::~HostBuffer() {
  if (start_ == nullptr) return;
  if (size_ < kPagesFrom) {
    ::operator delete(start_, kAlignment);
  } else {
    ::munmap(start_, size_);
  }
}

Result<Matrix> plain_matrix(const Tensor& tensor, HostBuffer& copy) {
  Matrix matrix;
  matrix.format = Format{element_of(tensor.dtype)};
  matrix.rows = tensor.shape[0];
  matrix.cols = tensor.shape[1];
  matrix.data = tensor.bytes.data();
  const auto address = reinterpret_cast<std::uintptr_t>(matrix.data) | 16u;
  matrix.alignment = static_cast<std::int32_t>(address & (~address + 1));
  if (matrix.alignment < bits(tensor.dtype) / 8) {
    auto made = HostBuffer::make(static_cast<std::int64_t>(tensor.bytes.size()));
    FINESCALE_TRY(made);
    copy = *std::move(made);
    std::copy(tensor.bytes.begin(), tensor.bytes.end(), copy.data());
    matrix.data = copy.data();
    matrix.alignment = 16;
  }
  return matrix;
}

Matrix row_slice(const Matrix& matrix, std::int64_t first, std::int64_t count) {
  Matrix slice = with_strides(matrix);
  slice.rows = count;
  slice.data += packed_bytes(first * slice.row_stride, bits(slice.format.element));
  if (slice.format.has_scales())
    slice.scales += packed_bytes(first / slice.format.block_rows * slice.scale_row_stride, bits(slice.format.scale));
  slice.alignment = 1;
  return slice;
}

Status require_host(const Device& device) {
  if (device.info().kind == DeviceKind::cpu) return {};
  return unsupported(fmt::format("device {}: checkpoints are read and written on the CPU", device.name()));
}

}  // namespace finescale::checkpoint
