// What every product must leave in D beside the right numbers: gaps untouched, padding zero, nothing outside.
#pragma once

#include "check/owned_matrix.h"

#include <finescale/access.h>
#include <finescale/check.h>
#include <finescale/matrix.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace finescale::test {

// The bytes of a buffer that belong to no element, one flag a byte.
class UnusedBytes {
 public:
  explicit UnusedBytes(std::int64_t bytes) : unused_(static_cast<std::size_t>(bytes), true) {}

  template <class Byte>
  void use(const Byte* start, const Place<Byte>& place, int width) {
    const std::int64_t first = place.base - start + place.index * width / 8;
    for (std::int64_t byte = first; byte < first + (width + 7) / 8; ++byte) unused_[static_cast<std::size_t>(byte)] = false;
  }
  // Each unused byte holds `value`.
  testing::AssertionResult hold(const char* what, const GuardedBuffer& buffer, std::byte value) const {
    for (std::size_t i = 0; i < unused_.size(); ++i) {
      if (!unused_[i] || buffer.data()[i] == value) continue;
      return testing::AssertionFailure() << what << " byte " << i << " belongs to no element: expected " << std::to_integer<int>(value)
                                         << ", got " << std::to_integer<int>(buffer.data()[i]);
    }
    return testing::AssertionSuccess();
  }

 private:
  std::vector<bool> unused_;
};

// D after a product that found it poisoned with 0xFF. scale_128x4_per_group: `padded_rows` as in fill_random, -1 for a row without
// block scales, and the rows of all tiles; what lies after them may hold anything.
inline void expect_only_elements_written(const OwnedMatrix& d, std::span<const std::int64_t> padded_rows = {}, std::int64_t tile_rows = 0) {
  EXPECT_TRUE(d.guards_intact()) << "written outside of D";
  const MutableMatrix m = with_strides(d.view());
  const bool per_group = m.format.has_scales() && m.scale_layout == ScaleLayout::scale_128x4_per_group;
  UnusedBytes codes(d.data().bytes()), scales(per_group ? scale_128x4_bytes(tile_rows, m.scale_cols()) : d.scales().bytes());
  for (std::int64_t b = 0; b < m.batch; ++b) {
    for (std::int64_t r = 0; r < m.rows; ++r) {
      const std::int64_t scale_row = padded_rows.empty() ? r : padded_rows[static_cast<std::size_t>(r)];
      for (std::int64_t c = 0; c < m.cols; ++c) {
        codes.use(m.data, code_place(m, b, r, c), bits(m.format.element));
        if (m.format.has_scales() && scale_row >= 0) scales.use(m.scales, scale_place(m, b, scale_row, c), bits(m.format.scale));
      }
      if (bits(m.format.element) == 4 && m.cols % 2 != 0) {
        EXPECT_EQ(code_at(m, b, r, m.cols), 0u) << "the unused nibble of row " << r;
      }
    }
  }
  EXPECT_TRUE(codes.hold("data", d.data(), std::byte{0xFF}));
  if (m.format.has_scales()) {
    EXPECT_TRUE(scales.hold("scales", d.scales(), is_tiled(m.scale_layout) ? std::byte{0} : std::byte{0xFF}));
  }
}

// The oracle's verdict on D.
template <class Problem>
testing::AssertionResult within_bound(const Problem& problem, const Matrix& d, const Accumulation& accumulation) {
  const auto report = check(problem, d, accumulation);
  if (!report) return testing::AssertionFailure() << report.status().sentence;
  if (report->ok) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "at batch " << report->batch << ", row " << report->row << ", column " << report->col << ": "
                                     << report->observed << ", exact " << report->exact << ", error " << report->worst << " of the bound "
                                     << report->bound;
}

}  // namespace finescale::test
