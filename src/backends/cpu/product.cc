#include "backends/cpu/product.h"

#include "backends/cpu/parallel.h"
#include "backends/cpu/row_reader.h"

#include <finescale/access.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace finescale::cpu {
namespace {

constexpr std::int64_t kChunkPanels = 8;            // a chunk's sums for a segment, 192 x 128 FP32, stay in L2
constexpr std::int64_t kGemvTaskBytes = 128 << 10;  // bytes of B a gemv task reads: some ten microseconds

struct Product {
  const Leaves& leaves;
  const GemmProblem& problem;
  const Strip& strip;

  std::int64_t depth() const { return problem.b.cols; }
  // Panel p of the strip lies in b, or after b's panels in b2.
  const Matrix& matrix_of(std::int64_t panel) const { return panel < first_of_b2() ? problem.b : problem.b2; }
  std::int64_t panel_in_matrix(std::int64_t panel) const { return panel < first_of_b2() ? panel : panel - first_of_b2(); }
  std::int64_t first_of_b2() const { return ceil_div(problem.b.rows, kPanelRows); }
};

// --- tiles ---------------------------------------------------------------------------------------------------------------

// A tile of a segment at column k0, in packed A: [k][rows]. The columns of a segment lie kDepth at a time, its tiles side by side.
float* packed_tile(const Product& product, const Segment& segment, std::int64_t row, std::int64_t k0, std::int64_t depth) {
  return product.strip.packed + segment.first * product.depth() + k0 * segment.count + row * depth;
}

void pack_tile(const Product& product, const Segment& segment, std::int64_t row) {
  const std::int64_t rows = std::min(kTileRows, segment.count - row);
  float values[kTileRows][kDepth];
  for (std::int64_t k0 = 0; k0 < product.depth(); k0 += kDepth) {
    const std::int64_t depth = std::min(kDepth, product.depth() - k0);
    for (std::int64_t r = 0; r < rows; ++r) {
      const StripRow& at = product.strip.row_in(segment.first + row + r);
      read_row(product.leaves, product.problem.a, at.a_batch, at.a_row, at.a_scale_row, k0, depth, values[r]);
    }
    float* tile = packed_tile(product, segment, row, k0, depth);
    for (std::int64_t k = 0; k < depth; ++k) {
      for (std::int64_t r = 0; r < rows; ++r) *tile++ = values[r][k];
    }
  }
}

void pack_tiles(const Product& product, const Execution& execution) {
  const Strip& strip = product.strip;
  const Segment& last = strip.segments[strip.segment_count - 1];
  parallel_for(execution, last.first_tile + ceil_div(last.count, kTileRows), [&](std::int64_t tile) {
    const Segment* segment = std::upper_bound(strip.segments, strip.segments + strip.segment_count, tile,
                                              [](std::int64_t value, const Segment& s) { return value < s.first_tile; }) -
                             1;
    pack_tile(product, *segment, (tile - segment->first_tile) * kTileRows);
  });
}

// Panels begin .. end - 1 for one segment. K = 0 leaves zeros.
void multiply_chunk(const Product& product, const Segment& segment, std::int64_t begin, std::int64_t end) {
  alignas(64) float panel[kDepth * kPanelRows];
  for (std::int64_t k0 = 0; k0 == 0 || k0 < product.depth(); k0 += kDepth) {
    const std::int64_t depth = std::min(kDepth, product.depth() - k0);
    for (std::int64_t p = begin; p < end; ++p) {
      read_panel(product.leaves, product.matrix_of(p), segment.b_batch, product.panel_in_matrix(p), k0, depth, panel);
      for (std::int64_t row = 0; row < segment.count; row += kTileRows) {
        product.leaves.multiply(std::min(kTileRows, segment.count - row), packed_tile(product, segment, row, k0, depth), panel, depth,
                                product.strip.sums_of(p, segment.first + row), k0 == 0);
      }
    }
  }
}

void multiply_tiles(const Product& product, const Execution& execution) {
  const Strip& strip = product.strip;
  pack_tiles(product, execution);
  const std::int64_t panels = strip.shape.panels;
  // Neighbouring tasks take the same chunk of B for the next segment.
  parallel_for(execution, ceil_div(panels, kChunkPanels) * strip.segment_count, [&](std::int64_t task) {
    const std::int64_t begin = task / strip.segment_count * kChunkPanels;
    multiply_chunk(product, strip.segments[task % strip.segment_count], begin, std::min(panels, begin + kChunkPanels));
  });
}

// --- gemv ----------------------------------------------------------------------------------------------------------------

bool is_narrow(const float* x, std::int64_t count) {
  bool narrow = true;
  for (std::int64_t k = 0; k < count; ++k) {
    const float magnitude = std::fabs(x[k]);
    narrow &= magnitude == 0.0f || (magnitude >= kNarrowLow && magnitude <= kNarrowHigh);
  }
  return narrow;
}

// Columns of every four in the order 0 2 1 3, as gemv_panel wants them; zeros up to the end of the unit.
void arrange_row(const Product& product, std::int64_t place) {
  const std::int64_t depth = product.depth(), whole = product.strip.shape.depth;
  float* x = product.strip.packed + place * whole;
  const StripRow& at = product.strip.row_in(place);
  read_row(product.leaves, product.problem.a, at.a_batch, at.a_row, at.a_scale_row, 0, depth, x);
  std::memset(x + depth, 0, static_cast<std::size_t>(whole - depth) * sizeof(float));
  product.strip.narrow[place] = is_narrow(x, depth);
  for (std::int64_t k = 0; k < whole; k += 4) std::swap(x[k + 1], x[k + 2]);
}

void gemv_panels(const Product& product, const Segment& segment, std::int64_t begin, std::int64_t end) {
  const std::int64_t whole = product.strip.shape.depth;
  for (std::int64_t p = begin; p < end; ++p) {
    const PanelCodes codes = panel_codes(product.matrix_of(p), segment.b_batch, product.panel_in_matrix(p), 0);
    for (std::int64_t row = 0; row < segment.count; row += kGemvRows) {
      const std::int64_t place = segment.first + row, rows = std::min(kGemvRows, segment.count - row);
      const bool* narrow = product.strip.narrow + place;
      product.leaves.gemv_panel(codes, product.depth(), rows, product.strip.packed + place * whole, whole,
                                std::all_of(narrow, narrow + rows, [](bool one) { return one; }), product.strip.sums_of(p, place));
    }
  }
}

void multiply_gemv(const Product& product, const Execution& execution) {
  const Strip& strip = product.strip;
  const Segment& last = strip.segments[strip.segment_count - 1];
  parallel_ranges(execution, last.first + last.count, kGemvRows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t place = begin; place < end; ++place) arrange_row(product, place);
  });
  const std::int64_t panel_bytes = std::max<std::int64_t>(Panel16::bytes_per_panel(product.problem.b.format, product.depth()), 1);
  const std::int64_t each = std::max<std::int64_t>(kGemvTaskBytes / panel_bytes, 1), chunks = ceil_div(strip.shape.panels, each);
  parallel_for(execution, chunks * strip.segment_count, [&](std::int64_t task) {
    const std::int64_t begin = task % chunks * each;
    gemv_panels(product, strip.segments[task / chunks], begin, std::min(strip.shape.panels, begin + each));
  });
}

}  // namespace

void multiply_strip(const Leaves& leaves, Method method, const GemmProblem& problem, const Strip& strip, const Execution& execution) {
  if (strip.segment_count == 0) return;
  const Product product{leaves, problem, strip};
  if (method == Method::gemv) {
    multiply_gemv(product, execution);
  } else {
    multiply_tiles(product, execution);
  }
}

}  // namespace finescale::cpu
