// dequantize, repack and prepare, swept: every format, layout and shape, each row of a device against the reference, byte for
// byte. tests/ops runs it on the CPU, tests/cuda on a GPU.
#pragma once

#include "check/operands.h"
#include "support/quantize_sweep.h"
#include "support/run_kernels.h"

#include <finescale/dequantize.h>
#include <finescale/formats/block_quantizer.h>
#include <finescale/prepare.h>
#include <finescale/repack.h>

#include <string>
#include <utility>
#include <vector>

namespace finescale::test {

// Where codes and block scales lie.
struct Arrangement {
  CodeLayout codes = CodeLayout::row_major;
  ScaleLayout scales = ScaleLayout::linear;
  bool gaps = false;  // rows, batches and scales with gaps; scales column by column

  std::string label() const { return std::string(layout_name(codes)) + "/" + std::string(layout_name(scales)) + (gaps ? "/gaps" : ""); }
};

inline std::vector<Arrangement> arrangements(const Format& format, bool prepared) {
  std::vector<Arrangement> list{{}, {.gaps = true}};
  if (bits(format.element) == 4) list.push_back({.codes = CodeLayout::high_nibble_first});
  for (const ScaleLayout scales : {ScaleLayout::scale_128x4, ScaleLayout::scale_8x4}) {
    if (format.has_scales() && takes_layout(format, scales)) list.push_back({.scales = scales});
  }
  if (prepared) {
    PreparedLayouts::for_each([&](auto layout) {
      if (layout.supports(format)) list.push_back({.codes = static_cast<CodeLayout>(layout.kId)});
    });
  }
  return list;
}

struct Shape {
  std::int64_t batch, rows, cols;
};

inline constexpr Shape kLayoutShapes[] = {{1, 0, 16},    {1, 3, 0},     {0, 2, 5},    {1, 1, 1},    {1, 1, 16},
                                          {2, 15, 31},   {1, 16, 64},   {3, 17, 33},  {1, 31, 127}, {2, 129, 65},
                                          {1, 128, 128}, {1, 127, 257}, {1, 2, 2880}, {1, 130, 300}};

inline Matrix arranged(const Format& format, const Shape& shape, const Arrangement& a, GlobalScale global = GlobalScale::none) {
  Matrix m{.format = format, .batch = shape.batch, .rows = shape.rows, .cols = shape.cols};
  m.codes = a.codes;
  m.scale_layout = a.scales;
  m.global_kind = global;
  if (a.gaps) {
    m.row_stride = round_up(shape.cols, 2) + 4;
    m.batch_stride = shape.rows * m.row_stride + 8;
    if (format.has_scales()) {
      m.scale_row_stride = 1;
      m.scale_col_stride = m.scale_rows() + 3;
      m.scale_batch_stride = m.scale_col_stride * m.scale_cols() + 5;
    }
  }
  return m;
}

// Random codes and scales, with some NaN scales among them. NaN elements come with them.
inline OwnedMatrix coded_matrix(const Matrix& tags, std::uint64_t seed) {
  OwnedMatrix matrix = detail::owned(tags);
  fill_random(matrix.view(), seed, Values::wide);
  const MutableMatrix m = with_strides(matrix.view());
  if (m.batch == 0 || m.rows == 0 || m.cols == 0) return matrix;
  if (m.format.element == Element::e4m3) set_code(m, 0, m.rows - 1, m.cols / 2, 0xFF);
  if (!m.format.has_scales() || m.cols <= m.format.block_cols) return matrix;
  for (std::int64_t r = m.rows - 1; r >= 0 && r / m.format.block_rows == (m.rows - 1) / m.format.block_rows; --r) {
    set_scale_code(m, 0, r, 0, nan_code(m.format.scale));
  }
  return matrix;
}

// Runs one row from a fresh copy of the operands; make(from, to) gives the problem.
template <class Problem, class Make>
Result<OwnedMatrix> run_on(const Kernel<Problem>& kernel, const Device& device, const Matrix& from_tags, const Matrix& to_tags,
                           const Make& make) {
  const auto from = PlacedMatrix::place(device, coded_matrix(from_tags, 5));
  FINESCALE_TRY(from);
  auto to = PlacedMatrix::place(device, detail::owned(to_tags));
  FINESCALE_TRY(to);
  FINESCALE_TRY(run_kernel(kernel, make(Matrix(from->view()), to->view()), device));
  FINESCALE_TRY(to->fetch(device));
  return std::move(*to).release();
}

template <class Problem, class Make>
void expect_rows_agree(const Device& device, const Matrix& from, const Matrix& to, SweepReport& report, const Make& make) {
  const auto expected = run_on(reference_kernel<Problem>(), cpu_device(), from, to, make);
  ASSERT_TRUE(expected) << expected.status().sentence;
  const OwnedMatrix tags = detail::owned(to);
  for_each_kernel(make(from, tags.view()), device, report, [&](const Kernel<Problem>& kernel) {
    SCOPED_TRACE(std::string(kernel.name));
    const auto actual = run_on(kernel, device, from, to, make);
    ASSERT_TRUE(actual) << actual.status().sentence;
    expect_same(*expected, *actual);
  });
}

inline void sweep_dequantize(const Device& device) {
  SweepReport report;
  constexpr GlobalScale kGlobals[] = {GlobalScale::one, GlobalScale::per_batch, GlobalScale::per_row, GlobalScale::none};
  std::size_t i = 0;
  for (const Format& format : block_formats()) {
    for (const Arrangement& a : arrangements(format, true)) {
      for (const Shape& shape : kLayoutShapes) {
        for (const Format& out : {kF32, kF16, kBf16}) {
          const Matrix from = arranged(format, shape, a, kGlobals[i++ % (format.has_scales() ? 4 : 3)]);
          Matrix to{.format = out, .batch = shape.batch, .rows = shape.rows, .cols = shape.cols};
          if (i % 3 == 0) {
            to.row_stride = 1;
            to.col_stride = shape.rows + 2;
          }
          SCOPED_TRACE(std::string(format_name(format)) + " " + a.label() + " " + std::to_string(shape.rows) + "x" +
                       std::to_string(shape.cols));
          expect_rows_agree<DequantizeProblem>(
              device, from, to, report, [](const Matrix& f, const MutableMatrix& t) { return DequantizeProblem{.from = f, .to = t}; });
        }
      }
    }
  }
  report.finish();
}

inline void sweep_repack(const Device& device) {
  SweepReport report;
  for (const Format& format : block_formats()) {
    for (const Arrangement& a : arrangements(format, true)) {
      for (const Arrangement& b : arrangements(format, false)) {
        for (const Shape& shape : kLayoutShapes) {
          SCOPED_TRACE(std::string(format_name(format)) + " " + a.label() + " to " + b.label() + " " + std::to_string(shape.rows) + "x" +
                       std::to_string(shape.cols));
          expect_rows_agree<RepackProblem>(device, arranged(format, shape, a), arranged(format, shape, b), report,
                                           [](const Matrix& f, const MutableMatrix& t) { return RepackProblem{.from = f, .to = t}; });
        }
      }
    }
  }
  report.finish();
}

inline void sweep_prepare(const Device& device) {
  SweepReport report;
  for (const Format& format : block_formats()) {
    for (const Arrangement& a : arrangements(format, false)) {
      for (const Arrangement& b : arrangements(format, true)) {
        if (!is_prepared(b.codes)) continue;
        for (const Shape& shape : kLayoutShapes) {
          SCOPED_TRACE(std::string(format_name(format)) + " " + a.label() + " to " + b.label() + " " + std::to_string(shape.rows) + "x" +
                       std::to_string(shape.cols));
          expect_rows_agree<PrepareProblem>(device, arranged(format, shape, a), arranged(format, shape, b), report,
                                            [](const Matrix& f, const MutableMatrix& t) { return PrepareProblem{.from = f, .to = t}; });
        }
      }
    }
  }
  report.finish();
}

}  // namespace finescale::test
