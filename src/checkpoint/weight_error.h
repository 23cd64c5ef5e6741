// How far a quantized weight is from the plain one.
#pragma once

#include "checkpoint/quantize_checkpoint.h"

#include <finescale/device.h>
#include <finescale/matrix.h>

namespace finescale::checkpoint {

// Both matrices rank 2 on the host. Elements that are not finite in either are left out.
Result<WeightError> weight_error(const Matrix& plain, const Matrix& quantized, const Device& device);

}  // namespace finescale::checkpoint
