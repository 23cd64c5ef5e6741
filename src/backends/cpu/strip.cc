#include "backends/cpu/strip.h"

#include "backends/cpu/kernels/leaves.h"

#include <algorithm>

namespace finescale::cpu {
namespace {

constexpr std::int64_t kStripBytes = std::int64_t{64} << 20;

std::int64_t panels_of(const Matrix& b) { return ceil_div(b.rows, kPanelRows); }

// Hands out 64-byte aligned pieces of a buffer; without one, counts them.
class Cutter {
 public:
  explicit Cutter(std::byte* from) : from_(from) {}
  template <class T>
  T* take(std::int64_t count) {
    T* piece = from_ == nullptr ? nullptr : reinterpret_cast<T*>(from_ + used_);
    used_ += round_up(count * static_cast<std::int64_t>(sizeof(T)), 64);
    return piece;
  }
  std::int64_t used() const { return used_; }

 private:
  std::byte* from_;
  std::int64_t used_ = 0;
};

Strip cut_strip(const StripShape& shape, Cutter& cutter) {
  Strip strip;
  strip.shape = shape;
  strip.rows = cutter.take<StripRow>(shape.rows);
  strip.slot = cutter.take<std::int32_t>(shape.rows);
  strip.source = cutter.take<std::int32_t>(shape.rows);
  strip.segments = cutter.take<Segment>(shape.rows);
  strip.narrow = cutter.take<bool>(shape.rows);
  strip.packed = cutter.take<float>(shape.rows * shape.depth + 1024);  // leaves fetch ahead of what they read
  strip.sums = cutter.take<float>(shape.rows * shape.panels * kPanelRows);
  return strip;
}

}  // namespace

StripShape strip_shape(const GemmProblem& problem, std::int64_t total_rows) {
  const std::int64_t unit = Panel16::supports(problem.b.format) ? Panel16::unit(problem.b.format) : 1;
  StripShape shape;
  shape.depth = round_up(problem.b.cols, unit);
  shape.panels = panels_of(problem.b) + (problem.epilogue.gate == Gate::second_matrix ? panels_of(problem.b2) : 0);
  const std::int64_t row_bytes = 4 * (shape.depth + shape.panels * kPanelRows) + 1;
  const std::int64_t whole = std::max<std::int64_t>(problem.d.format.block_rows, 1);
  const std::int64_t rows = std::clamp(kStripBytes / row_bytes, kSegmentRows, 8 * kSegmentRows);
  shape.rows = std::min(round_up(rows, whole), std::max<std::int64_t>(total_rows, 1));
  return shape;
}

std::int64_t strip_bytes(const StripShape& shape) {
  Cutter cutter(nullptr);
  cut_strip(shape, cutter);
  return cutter.used();
}

Strip make_strip(const StripShape& shape, std::byte* scratch) {
  Cutter cutter(scratch);
  return cut_strip(shape, cutter);
}

float* Strip::sums_of(std::int64_t panel, std::int64_t place) const { return sums + (panel * shape.rows + place) * kPanelRows; }

std::int64_t take_rows(const Strip& strip, std::int64_t batch_rows, std::int64_t block_rows, StripCursor& cursor) {
  const std::int64_t left = batch_rows - cursor.row, room = strip.shape.rows - strip.row_count;
  const std::int64_t count = left <= room ? left : room / block_rows * block_rows;
  cursor.row += count;
  if (cursor.row == batch_rows) cursor = {cursor.batch + 1, 0};
  return count;
}

void append_segments(Strip& strip, std::int64_t first, std::int64_t count, std::int64_t b_batch) {
  if (count == 0) return;
  const std::int64_t each = round_up(ceil_div(count, ceil_div(count, kSegmentRows)), kTileRows);
  for (std::int64_t begin = 0; begin < count; begin += each) {
    Segment& segment = strip.segments[strip.segment_count];
    segment = {first + begin, std::min(each, count - begin), b_batch, 0};
    if (strip.segment_count > 0) {
      const Segment& before = strip.segments[strip.segment_count - 1];
      segment.first_tile = before.first_tile + ceil_div(before.count, kTileRows);
    }
    ++strip.segment_count;
  }
}

}  // namespace finescale::cpu
