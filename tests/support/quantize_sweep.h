// quantize, swept: formats x shapes x layouts x recipes x producers. Each row of a device must write the reference's bytes,
// padding and gaps included. tests/ops runs it on the CPU, tests/cuda on a GPU.
#pragma once

#include "check/operands.h"
#include "support/run_kernels.h"

#include <finescale/access.h>
#include <finescale/quantize.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace finescale::test {

struct QuantizeCase {
  Format from = kF32, to = kNvfp4;
  std::int64_t batch = 1, rows = 1, cols = 16;
  CodeLayout codes = CodeLayout::row_major;
  ScaleLayout scales = ScaleLayout::linear;
  GlobalScale global = GlobalScale::none;
  bool global_given = false;
  std::int32_t segments = 0;  // of per_row: 0 = each row its own
  bool strided = false;       // gaps in every operand, a column stride in `from`, block scales column by column
  bool special = false;       // zeros, tiny numbers, one NaN and one Inf among the values
  Values values = Values::usual;
  Recipe recipe{};
  Producer producer = Producer::none;
  Gate order = Gate::none;
  Element intermediate = Element::f32;
  bool weight = false, residual = false;

  std::string label() const {
    return std::string(format_name(from)) + " " + std::to_string(batch) + "x" + std::to_string(rows) + "x" + std::to_string(cols) + " -> " +
           std::string(format_name(to)) + " " + std::string(layout_name(scales)) + ", codes " + std::string(layout_name(codes)) +
           ", global " + std::to_string(static_cast<int>(global)) + (global_given ? " given" : "") + ", segments " +
           std::to_string(segments) + (strided ? ", strided" : "") + (special ? ", special" : "") + ", profile " +
           std::to_string(static_cast<int>(recipe.profile)) + ", search " + std::to_string(static_cast<int>(recipe.search)) + ", power " +
           std::to_string(static_cast<int>(recipe.power)) + ", rounding " + std::to_string(static_cast<int>(recipe.rounding)) +
           ", producer " + std::to_string(static_cast<int>(producer));
  }
};

// The operands of a case on the host; the same every time.
struct QuantizeOperands {
  OwnedMatrix from, to, weight, residual;
  std::vector<std::int32_t> ends;
};

namespace detail {

inline OwnedMatrix owned(const Matrix& tags) {
  auto matrix = OwnedMatrix::make(tags);
  if (!matrix) {
    ADD_FAILURE() << matrix.status().sentence;
    std::abort();
  }
  return std::move(*matrix);
}

inline void put(const MutableMatrix& matrix, std::int64_t row, std::int64_t col, float value) {
  if (row < matrix.rows && col >= 0 && col < matrix.cols) set_code(matrix, 0, row, col, encode(matrix.format.element, value));
}

// The first blocks of the first row: zeros, then numbers whose scale underflows; a NaN and an Inf in later rows.
inline void put_specials(const MutableMatrix& given) {
  const MutableMatrix matrix = with_strides(given);
  if (matrix.batch == 0) return;
  for (std::int64_t c = 0; c < 32; ++c) put(matrix, 0, c, c % 3 == 0 ? -0.0f : 0.0f);
  for (std::int64_t c = 32; c < 64; ++c) put(matrix, 0, c, c % 2 == 0 ? 1e-30f : -1e-39f);
  put(matrix, 2, matrix.cols / 2, std::numeric_limits<float>::quiet_NaN());
  put(matrix, 3, matrix.cols - 1, -std::numeric_limits<float>::infinity());
}

}  // namespace detail

inline QuantizeOperands make_operands(const QuantizeCase& c) {
  QuantizeOperands operands;
  Matrix from{.format = c.from, .batch = c.batch, .rows = c.rows, .cols = is_gated(c.producer) ? 2 * c.cols : c.cols};
  Matrix to{.format = c.to, .batch = c.batch, .rows = c.rows, .cols = c.cols};
  if (c.strided) {
    from.col_stride = 2;
    from.row_stride = 2 * from.cols + 3;
    to.row_stride = round_up(c.cols, 2) + 6;
    if (c.to.has_scales() && c.scales == ScaleLayout::linear) {
      to.scale_row_stride = 1;
      to.scale_col_stride = round_up(ceil_div(c.rows, c.to.block_rows), 4) + 4;
    }
  }
  to.codes = c.codes;
  to.scale_layout = c.scales;
  to.global_kind = c.global;
  operands.from = detail::owned(from);
  operands.to = detail::owned(to);
  fill_random(operands.from.view(), 1, c.values);
  if (c.special) detail::put_specials(operands.from.view());
  if (c.global_given) {
    for (std::int64_t i = 0; i < operands.to.global_count(); ++i) operands.to.view().global[i] = 0x1.9p-8f * static_cast<float>(i % 7 + 1);
  }
  if (c.weight) {
    operands.weight = detail::owned({.format = c.from, .rows = 1, .cols = c.cols});
    fill_random(operands.weight.view(), 2);
  }
  if (c.residual) {
    operands.residual = detail::owned({.format = c.from, .batch = c.batch, .rows = c.rows, .cols = c.cols});
    fill_random(operands.residual.view(), 3, c.values);
  }
  for (std::int32_t i = 1; i <= c.segments; ++i) operands.ends.push_back(static_cast<std::int32_t>(c.rows * i / c.segments));
  return operands;
}

// The problem of a case over operands that lie on a device. `ends` lies there too.
inline QuantizeProblem make_problem(const QuantizeCase& c, const Matrix& from, const MutableMatrix& to, const Matrix& weight,
                                    const MutableMatrix& residual, const std::int32_t* ends) {
  QuantizeProblem problem{.from = from, .to = to, .global_given = c.global_given, .recipe = c.recipe};
  problem.producer.kind = c.producer;
  problem.producer.order = c.order;
  problem.producer.intermediate = c.intermediate;
  problem.producer.weight_offset = c.weight ? 1.0f : 0.0f;
  if (c.weight) problem.producer.weight = weight;
  if (c.residual) problem.producer.residual = residual;
  problem.segments = {ends, c.segments};
  return problem;
}

// What a row wrote.
struct QuantizeResult {
  OwnedMatrix to, residual;
};

// Places fresh operands on the device, runs the row and brings back what it wrote.
inline Result<QuantizeResult> run_case(const QuantizeCase& c, const Kernel<QuantizeProblem>& kernel, const Device& device) {
  QuantizeOperands host = make_operands(c);
  auto from = PlacedMatrix::place(device, std::move(host.from));
  FINESCALE_TRY(from);
  auto to = PlacedMatrix::place(device, std::move(host.to));
  FINESCALE_TRY(to);
  auto weight = PlacedMatrix::place(device, std::move(host.weight));
  FINESCALE_TRY(weight);
  auto residual = PlacedMatrix::place(device, std::move(host.residual));
  FINESCALE_TRY(residual);
  const GuardedBuffer ends(static_cast<std::int64_t>(host.ends.size()) * 4);
  if (!host.ends.empty()) std::memcpy(ends.data(), host.ends.data(), host.ends.size() * 4);
  auto placed_ends = PlacedBuffer::place(device, ends);
  FINESCALE_TRY(placed_ends);
  const QuantizeProblem problem = make_problem(c, from->view(), to->view(), weight->view(), residual->view(),
                                               reinterpret_cast<const std::int32_t*>(placed_ends->data()));
  FINESCALE_TRY(run_kernel(kernel, problem, device));
  FINESCALE_TRY(to->fetch(device));
  FINESCALE_TRY(residual->fetch(device));
  QuantizeResult result;
  result.to = std::move(*to).release();
  result.residual = std::move(*residual).release();
  return result;
}

inline void expect_rows_write_reference_bytes(const QuantizeCase& c, const Device& device, SweepReport& report) {
  SCOPED_TRACE(c.label());
  const auto expected = run_case(c, reference_kernel<QuantizeProblem>(), cpu_device());
  ASSERT_TRUE(expected) << expected.status().sentence;
  const QuantizeOperands host = make_operands(c);
  const QuantizeProblem tags =
      make_problem(c, host.from.view(), host.to.view(), host.weight.view(), host.residual.view(), host.ends.data());
  for_each_kernel(tags, device, report, [&](const Kernel<QuantizeProblem>& kernel) {
    SCOPED_TRACE(std::string(kernel.name));
    const auto actual = run_case(c, kernel, device);
    ASSERT_TRUE(actual) << actual.status().sentence;
    expect_same(expected->to, actual->to);
    expect_same(expected->residual, actual->residual);
  });
}

inline constexpr std::int64_t kSweepSizes[] = {0, 1, 15, 16, 17, 31, 33, 127, 128, 129};

inline std::vector<Format> block_formats() {
  std::vector<Format> formats;
  for (const NamedFormat& row : kFormats) {
    if (!row.format.is_plain()) formats.push_back(row.format);
  }
  return formats;
}

inline bool takes_layout(const Format& format, ScaleLayout layout) { return layout == ScaleLayout::linear || bits(format.scale) == 8; }

// Every size for rows and columns, with the other choices rotating through.
inline std::vector<QuantizeCase> shape_cases() {
  std::vector<QuantizeCase> cases;
  constexpr Format kInputs[] = {kF32, kBf16, kF16};
  constexpr ScaleLayout kScales[] = {ScaleLayout::linear, ScaleLayout::scale_128x4, ScaleLayout::scale_8x4};
  constexpr GlobalScale kGlobals[] = {GlobalScale::one, GlobalScale::per_row, GlobalScale::per_batch, GlobalScale::none};
  std::size_t i = 0;
  for (const Format& format : block_formats()) {
    for (const std::int64_t rows : kSweepSizes) {
      for (const std::int64_t cols : kSweepSizes) {
        QuantizeCase c{.from = kInputs[i % 3], .to = format, .rows = rows, .cols = cols};
        if (takes_layout(format, kScales[i / 3 % 3])) c.scales = kScales[i / 3 % 3];
        if (format.global) c.global = kGlobals[i / 2 % (format.has_scales() ? 4 : 3)];
        c.global_given = c.global != GlobalScale::none && i % 5 == 1;
        c.codes = bits(format.element) == 4 && i % 7 == 3 ? CodeLayout::high_nibble_first : CodeLayout::row_major;
        c.special = i % 2 == 0;
        c.values = i % 3 == 2 ? Values::usual : Values::wide;
        cases.push_back(c);
        ++i;
      }
    }
  }
  for (const Format& format : block_formats()) {  // real shapes and primes
    cases.push_back({.from = kBf16, .to = format, .rows = 3, .cols = 7168, .global = usual_global(format)});
    cases.push_back({.from = kF32, .to = format, .rows = 37, .cols = 2113, .global = usual_global(format)});
  }
  return cases;
}

// Batches, gaps, transposed inputs, row segments.
inline std::vector<QuantizeCase> layout_cases() {
  std::vector<QuantizeCase> cases;
  for (const Format& format : block_formats()) {
    for (const ScaleLayout scales : {ScaleLayout::linear, ScaleLayout::scale_128x4, ScaleLayout::scale_8x4}) {
      if (!takes_layout(format, scales)) continue;
      QuantizeCase c{.from = kF32, .to = format, .batch = 3, .rows = 17, .cols = 131, .scales = scales, .global = usual_global(format)};
      c.values = Values::wide;
      cases.push_back(c);
      c.from = kBf16;
      c.strided = true;
      cases.push_back(c);
      if (!format.global) continue;
      c.global = GlobalScale::per_batch;
      cases.push_back(c);
      c.global = GlobalScale::per_row;
      c.segments = 3;
      cases.push_back(c);
      c.global_given = true;
      cases.push_back(c);
    }
  }
  return cases;
}

inline std::vector<QuantizeCase> recipe_cases() {
  std::vector<QuantizeCase> cases;
  const QuantizeCase base{.rows = 19, .cols = 257, .special = true, .values = Values::wide};
  const auto add = [&](const Format& from, const Format& to, const Recipe& recipe, GlobalScale global) {
    QuantizeCase c = base;
    c.from = from;
    c.to = to;
    c.recipe = recipe;
    c.global = global;
    cases.push_back(c);
  };
  for (const GlobalScale global : {GlobalScale::none, GlobalScale::one}) {
    add(kF32, kNvfp4, {}, global);
    add(kF32, kNvfp4, {.search = ScaleSearch::four_six}, global);
    add(kBf16, kNvfp4, {.search = ScaleSearch::mse}, global);
    add(kF32, kNvfp4, {.search = ScaleSearch::four_six, .rounding = Rounding::stochastic, .seed = 7}, global);
    add(kBf16, kNvfp4, {.profile = Profile::torchao}, global);
  }
  for (const Format& format : block_formats())
    add(kF32, format, {.rounding = Rounding::stochastic, .seed = 0x123456789ABCDEF0u}, usual_global(format));
  for (const PowerRule rule : {PowerRule::ocp_floor, PowerRule::even}) {
    for (const Format& format : {kMxfp4, kMxfp8E4m3, kMxfp8E5m2}) add(kF32, format, {.power = rule}, GlobalScale::none);
  }
  add(kF16, kNvfp4, {.profile = Profile::flashrt}, GlobalScale::none);
  add(kBf16, kNvfp4, {.profile = Profile::flashrt}, GlobalScale::none);
  for (const Format& from : {kF32, kF16, kBf16}) {
    add(from, kNvfp4, {.profile = Profile::modelopt}, GlobalScale::one);
    add(from, kNvfp4, {.profile = Profile::compressed_tensors}, GlobalScale::per_row);
  }
  for (const Format& format : {kFp8E4m3Row128, kFp8E4m3Block128}) {
    add(kF32, format, {.pow2 = true}, GlobalScale::none);
    add(kF32, format, {.profile = Profile::deepgemm}, GlobalScale::none);
    add(kBf16, format, {.profile = Profile::deepgemm, .pow2 = true}, GlobalScale::none);
  }
  add(kBf16, kMxfp4, {.profile = Profile::deepgemm}, GlobalScale::none);
  return cases;
}

inline std::vector<QuantizeCase> producer_cases() {
  std::vector<QuantizeCase> cases;
  for (const Format& format : {kNvfp4, kMxfp8E4m3, kFp8E4m3Row128, kFp8E4m3Block128}) {
    for (const Format& from : {kF32, kBf16}) {
      const QuantizeCase base{.from = from, .to = format, .rows = 9, .cols = 161, .global = usual_global(format)};
      for (const Producer producer : {Producer::silu_mul, Producer::gelu_tanh_mul, Producer::gelu_erf_mul}) {
        for (const Gate order : {Gate::halves_gate_first, Gate::halves_up_first, Gate::alternating_rows}) {
          QuantizeCase c = base;
          c.producer = producer;
          c.order = order;
          cases.push_back(c);
        }
      }
      for (const Producer producer : {Producer::gelu_tanh, Producer::gelu_erf, Producer::rms_norm}) {
        QuantizeCase c = base;
        c.producer = producer;
        c.intermediate = Element::bf16;
        cases.push_back(c);
        if (producer != Producer::rms_norm) continue;
        c.weight = true;
        cases.push_back(c);
        c.residual = true;
        c.intermediate = Element::f32;
        cases.push_back(c);
      }
    }
  }
  return cases;
}

// rms_norm's FP64 sum has an order of the row's own, which may move the last bit of the row factor once in about 2^29 / K rows:
// not in these cases, which are the same every time.
inline void sweep_quantize(const Device& device, const std::vector<QuantizeCase>& cases, bool every_row = true) {
  SweepReport report;
  for (const QuantizeCase& c : cases) expect_rows_write_reference_bytes(c, device, report);
  report.finish(every_row);
}

}  // namespace finescale::test
