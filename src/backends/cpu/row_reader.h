// Part of a row of any matrix as FP32 block values: element times block scale, rounded once; the global scale is left out.
#pragma once

#include "backends/cpu/kernels/leaves.h"

#include <finescale/matrix.h>

#include <cstdint>

namespace finescale::cpu {

// Columns first .. first + count - 1 of a row; scale_row addresses its block scales (access.h). Strides filled in.
void read_row(const Leaves& leaves, const Matrix& matrix, std::int64_t batch, std::int64_t row, std::int64_t scale_row, std::int64_t first,
              std::int64_t count, float* out);

// 16 rows of B from row 16 * panel on, [k][16]; rows past the last are zeros.
void read_panel(const Leaves& leaves, const Matrix& b, std::int64_t batch, std::int64_t panel, std::int64_t first, std::int64_t count,
                float* out);

// Does the leaf decode_panel read this format in this layout.
bool is_panel(const Matrix& b);
// The bytes of a panel from column `first`, a multiple of the unit, on.
PanelCodes panel_codes(const Matrix& b, std::int64_t batch, std::int64_t panel, std::int64_t first);

}  // namespace finescale::cpu
