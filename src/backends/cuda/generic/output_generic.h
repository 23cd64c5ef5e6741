// D of a generic product: stored at once where it is plain, else kept as FP32 values and quantized from there.
#pragma once

#include "backends/cuda/host/error.h"

#include <finescale/finish.h>
#include <finescale/matrix.h>

#include <cstdint>

namespace finescale::cuda {

// Scratch for the FP32 values of D, batch x rows x cols; none where D is plain.
constexpr std::int64_t output_values_bytes(const MutableMatrix& d) {
  return d.format.is_plain() ? 0 : round_up(d.batch * d.rows * d.cols * 4, 256);
}

// values null: rounded into D.
FINESCALE_HD inline void store_output(const MutableMatrix& d, float* values, std::int64_t batch, std::int64_t row, std::int64_t col,
                                      float value) {
  if (values == nullptr) {
    store_plain(d, batch, row, col, value);
  } else {
    values[(batch * d.rows + row) * d.cols + col] = value;
  }
}

// Quantizes the values into D by profile finescale, max scales; d.global is read. scale_rows null: padding is written as zeros;
// else the row by which the scale of each row is addressed, -1: none, and the caller has zeroed the padding.
Status quantize_output(const MutableMatrix& d, const float* values, const std::int64_t* scale_rows, cudaStream_t stream);

}  // namespace finescale::cuda
