#include <finescale/access.h>
#include <finescale/matrix.h>

#include "ops/validate.h"

namespace finescale {

Result<Bytes> storage(const Matrix& shape, std::int64_t) {
  FINESCALE_TRY(validate_matrix("shape", shape));
  const Matrix m = with_strides(shape);
  if (m.batch == 0) return Bytes{};
  const std::int64_t broadcast_batches = m.batch_stride == 0 ? 1 : m.batch;
  if (is_prepared(m.codes)) return Bytes{prepared_bytes(m) * broadcast_batches, 0};
  Bytes bytes;
  const std::int64_t codes = (m.batch - 1) * m.batch_stride + linear_extent(m.rows, m.cols, m.row_stride, m.col_stride);
  bytes.data = packed_bytes(codes, bits(m.format.element));
  return bytes;
}

}  // namespace finescale
