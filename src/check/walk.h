// Walks the outputs of a product, or a sample of them, and keeps the worst verdict.
#pragma once

#include "check/checked_product.h"

#include <finescale/check.h>

namespace finescale {

// Strides of `observed` filled in. CheckReport::factor is left to the caller.
CheckReport walk_outputs(const Product& product, const Matrix& observed, const CheckOptions& options);

}  // namespace finescale
