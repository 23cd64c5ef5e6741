// validate_scales: block scales that no quantizer writes, found before a kernel multiplies by them. Not part of any op: some
// hardware ignores the sign of a scale, and a scale of zero hides codes.
#pragma once

#include <finescale/matrix.h>
#include <finescale/status.h>

#include <string_view>

namespace finescale {

// invalid_argument at the first block, in order of batch, row and column, whose scale has its sign bit set, is NaN or Inf, or is
// zero while a code of the block is not; the sentence gives the block's place and the scale's code. `name` is what it calls the
// matrix. Host memory; formats without block scales pass. unsupported: scale_128x4_per_group, whose map needs a routing.
Status validate_scales(std::string_view name, const Matrix& matrix);

}  // namespace finescale
