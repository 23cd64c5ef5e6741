#include "checkpoint/host_operand.h"

#include <finescale/layouts/packed_codes.h>

#include <fmt/format.h>

#include <algorithm>

namespace finescale::checkpoint {

Matrix plain_matrix(const Tensor& tensor, HostBuffer& copy) {
  Matrix matrix;
  matrix.format = Format{element_of(tensor.dtype)};
  matrix.rows = tensor.shape[0];
  matrix.cols = tensor.shape[1];
  matrix.data = tensor.bytes.data();
  const auto address = reinterpret_cast<std::uintptr_t>(matrix.data) | 16u;
  matrix.alignment = static_cast<std::int32_t>(address & (~address + 1));
  if (matrix.alignment < bits(tensor.dtype) / 8) {
    copy = HostBuffer(static_cast<std::int64_t>(tensor.bytes.size()));
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
