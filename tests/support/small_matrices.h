// Matrices whose numbers a reader can multiply in the head: one value everywhere, single elements and scales set by hand.
#pragma once

#include "check/owned_matrix.h"
#include "support/run_kernels.h"

#include <finescale/access.h>
#include <finescale/formats/block_quantizer.h>
#include <finescale/matrix.h>

#include <cstdint>
#include <cstring>

namespace finescale::test {

inline void set_value(const MutableMatrix& m, std::int64_t batch, std::int64_t row, std::int64_t col, float value) {
  set_code(with_strides(m), batch, row, col, encode(m.format.element, value));
}
inline void set_scale(const MutableMatrix& m, std::int64_t batch, std::int64_t row, std::int64_t col, float scale) {
  set_scale_code(with_strides(m), batch, row, col, encode(m.format.scale, scale));
}
inline float value_at(const OwnedMatrix& m, std::int64_t batch, std::int64_t row, std::int64_t col) {
  return element_at(with_strides(m.view()), batch, row, col);
}

// Every element `value`, every block scale `scale`, every global 1; padding stays poisoned.
inline OwnedMatrix constant_matrix(const Matrix& tags, float value, float scale = 1.0f) {
  OwnedMatrix matrix = *OwnedMatrix::make(tags);
  const MutableMatrix m = matrix.view();
  for (std::int64_t b = 0; b < m.batch; ++b) {
    for (std::int64_t r = 0; r < m.rows; ++r) {
      for (std::int64_t c = 0; c < m.cols; ++c) {
        set_value(m, b, r, c, value);
        if (m.format.has_scales()) set_scale(m, b, r, c, scale);
      }
    }
  }
  for (std::int64_t i = 0; i < matrix.global_count(); ++i) m.global[i] = 1.0f;
  return matrix;
}

// Calls check(D, kernel name) after each CPU row that takes the problem has run on a poisoned D.
template <class Problem, class Check>
void run_every_row(const Problem& problem, const OwnedMatrix& d, const Check& check) {
  SweepReport report;
  for_each_kernel(problem, cpu_device(), report, [&](const Kernel<Problem>& kernel) {
    SCOPED_TRACE(std::string(kernel.name));
    if (d.data().bytes() != 0) std::memset(d.data().data(), 0xFF, static_cast<std::size_t>(d.data().bytes()));
    const Status status = run_kernel(kernel, problem, cpu_device());
    ASSERT_TRUE(status) << status.sentence;
    EXPECT_TRUE(d.guards_intact());
    check(d);
  });
}

}  // namespace finescale::test
