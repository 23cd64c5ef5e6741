// A strip: as many rows of a product as are computed at a time, so that scratch is bounded however large M is.
//
// gemm and grouped_gemm differ only in how they fill one: a strip lists rows of A, each with the batch of B that it meets,
// rows of one batch of B side by side (a segment). The driver multiplies segments; finish_rows writes D.
#pragma once

#include <finescale/gemm.h>

#include <cstddef>
#include <cstdint>

namespace finescale::cpu {

inline constexpr std::int64_t kSegmentRows = 192;  // rows of A packed side by side: 192 x kDepth FP32 stay in L2

// One row of A and where it goes. a_scale_row and d_scale_row address block scales (access.h).
struct StripRow {
  std::int64_t a_batch = 0, a_row = 0, a_scale_row = 0;
  std::int64_t group = 0;  // batch of B; kNoGroup: a row of zeros, which is in no segment
  std::int64_t d_batch = 0, d_row = 0, d_scale_row = 0;
};

// Strip rows first .. first + count - 1 in the order of the sums, all multiplied by batch b_batch of B.
struct Segment {
  std::int64_t first = 0, count = 0, b_batch = 0;
  std::int64_t first_tile = 0;  // tiles of kTileRows in the segments before
};

struct StripShape {
  std::int64_t rows = 0;    // most rows of a strip
  std::int64_t depth = 0;   // floats of a packed row of A: K, up to the end of B's last unit
  std::int64_t panels = 0;  // of B and, after them, of b2
};

// Cut by shape alone: about 64 MiB of sums and packed A, at least one segment, whole blocks of rows of D.
StripShape strip_shape(const GemmProblem& problem, std::int64_t total_rows);
std::int64_t strip_bytes(const StripShape& shape);

struct Strip {
  StripShape shape;
  std::int64_t row_count = 0, segment_count = 0;
  StripRow* rows = nullptr;        // in the order of D
  std::int32_t* slot = nullptr;    // rows[i]'s place in the order of the sums; -1: it has none
  std::int32_t* source = nullptr;  // the row in place p; slot's inverse
  Segment* segments = nullptr;
  bool* narrow = nullptr;   // of the row in a place, gemv only (kernels/leaves.h)
  float* packed = nullptr;  // A in FP32
  float* sums = nullptr;    // [panel][place][16]

  float* sums_of(std::int64_t panel, std::int64_t place) const;
  const StripRow& row_in(std::int64_t place) const { return rows[source[place]]; }
};

// In scratch of strip_bytes(shape), 64-byte aligned.
Strip make_strip(const StripShape& shape, std::byte* scratch);

// Where the rows of all batches, in the order of D, have been taken up to.
struct StripCursor {
  std::int64_t batch = 0, row = 0;
};

// How many rows the strip takes next, all of cursor.batch: the rest of the batch, or as many whole blocks of rows of D as fit.
// 0: the strip is full. Moves the cursor.
std::int64_t take_rows(const Strip& strip, std::int64_t batch_rows, std::int64_t block_rows, StripCursor& cursor);

// Appends `count` rows in places from `first` on, all of one batch of B, in equal segments of at most kSegmentRows.
void append_segments(Strip& strip, std::int64_t first, std::int64_t count, std::int64_t b_batch);

}  // namespace finescale::cpu
