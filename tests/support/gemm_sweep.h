// gemm, swept: formats x shapes x layouts x epilogues. Each row of a device is judged by the oracle at its own bound; rows of one
// summation order must agree bit by bit, and so must two runs. tests/ops runs it on the CPU, tests/cuda on a GPU.
#pragma once

#include "support/gemm_case.h"
#include "support/product_checks.h"

#include <map>
#include <vector>

namespace finescale::test {

inline void expect_rows_right(const GemmCase& c, const Device& device, SweepReport& report) {
  SCOPED_TRACE(c.label());
  const GemmProblem tags = gemm_tags(c);
  const GemmOperands<OwnedMatrix> host = make_gemm_operands(c, tags, device);
  const GemmProblem problem = gemm_problem(tags, host, false);
  std::map<std::int32_t, OwnedMatrix> by_order;
  for_each_kernel(problem, device, report, [&](const Kernel<GemmProblem>& kernel) {
    SCOPED_TRACE(std::string(kernel.name));
    const auto first = run_case(c, kernel, device);
    auto second = run_case(c, kernel, device);
    ASSERT_TRUE(first) << first.status().sentence;
    ASSERT_TRUE(second) << second.status().sentence;
    expect_same(*first, *second);
    const Accumulation adds = kernel.adds(with_strides(problem));
    EXPECT_TRUE(within_bound(problem, first->view(), adds));
    expect_only_elements_written(*first);
    if (adds.order == 0) return;
    const auto [same, is_first] = by_order.try_emplace(adds.order);
    if (is_first) {
      same->second = std::move(*second);
    } else {
      expect_same(same->second, *first);
    }
  });
}

inline void sweep_gemm(const Device& device, const std::vector<GemmCase>& cases, bool every_row = true) {
  SweepReport report;
  for (const GemmCase& c : cases) expect_rows_right(c, device, report);
  report.finish(every_row);
}

inline bool tiles_fit(const Format& format) { return bits(format.scale) == 8; }

// Every format of A with every block format of B, prepared and not, at one ragged shape.
inline std::vector<GemmCase> gemm_format_cases() {
  std::vector<GemmCase> cases;
  constexpr Format kOutputs[] = {kF32, kBf16, kF16};
  for (const NamedFormat& a : kFormats) {
    for (const NamedFormat& b : kFormats) {
      if (b.format.is_plain()) continue;
      for (const bool prepared : {false, true}) {
        GemmCase c{.a = a.format, .b = b.format, .d = kOutputs[cases.size() % 3], .m = 3, .n = 37, .k = 163, .prepared = prepared};
        c.a_global = usual_global(a.format);
        c.b_global = usual_global(b.format);
        c.values = cases.size() % 4 < 2 ? Values::usual : Values::wide;
        cases.push_back(c);
      }
    }
  }
  return cases;
}

// Sizes on either side of every tile, 0 and primes, in each dimension.
inline std::vector<GemmCase> gemm_shape_cases() {
  constexpr std::int64_t kSizes[] = {0, 1, 2, 7, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129};
  constexpr Format kPairs[][2] = {
      {kBf16, kNvfp4}, {kNvfp4, kNvfp4}, {kF32, kMxfp4}, {kMxfp8E4m3, kMxfp4}, {kFp8E4m3Row128, kFp8E4m3Block128}};
  std::vector<GemmCase> cases;
  for (const auto& [a, b] : kPairs) {
    for (const std::int64_t size : kSizes) {
      for (int dimension = 0; dimension < 3; ++dimension) {
        GemmCase c{.a = a, .b = b, .m = 5, .n = 19, .k = 70, .prepared = size % 2 == 1};
        (dimension == 0 ? c.m : dimension == 1 ? c.n : c.k) = size;
        if (tiles_fit(b) && size % 3 == 0) c.b_scales = ScaleLayout::scale_128x4;
        if (tiles_fit(a) && size % 3 == 1) c.a_scales = ScaleLayout::scale_8x4;
        cases.push_back(c);
      }
    }
    cases.push_back({.a = a, .b = b, .d = kBf16, .m = 1, .n = 129, .k = 2113});
    cases.push_back({.a = a, .b = b, .d = kBf16, .m = 1, .n = 64, .k = 4096, .prepared = true});
    cases.push_back({.a = a, .b = b, .d = kBf16, .m = 67, .n = 61, .k = 257});
  }
  return cases;
}

// Layouts of codes and scales, gaps, batches, broadcasts, kinds of global scales, small promises of alignment.
inline std::vector<GemmCase> gemm_layout_cases() {
  std::vector<GemmCase> cases;
  constexpr ScaleLayout kScales[] = {ScaleLayout::linear, ScaleLayout::scale_128x4, ScaleLayout::scale_8x4};
  constexpr GlobalScale kGlobals[] = {GlobalScale::none, GlobalScale::one, GlobalScale::per_batch, GlobalScale::per_row};
  for (const auto& [a, b] : {std::pair{kNvfp4, kNvfp4}, {kMxfp8E5m2, kMxfp4}, {kF16, kMxfp8E4m3}}) {
    for (const ScaleLayout scales : kScales) {
      for (const bool strided : {false, true}) {
        for (const bool broadcast : {false, true}) {
          GemmCase c{.a = a,
                     .b = b,
                     .batch = 3,
                     .m = 9,
                     .n = 21,
                     .k = 75,
                     .b_scales = scales,
                     .bias = kBf16,
                     .strided = strided,
                     .broadcast = broadcast};
          if (tiles_fit(a)) c.a_scales = scales;
          c.a_global = kGlobals[cases.size() % 4];
          c.b_global = kGlobals[cases.size() / 2 % 4];
          c.alignment = 1 << (cases.size() % 5);
          cases.push_back(c);
          c.prepared = true;
          cases.push_back(c);
        }
      }
    }
  }
  for (const Format& format : {kFp8E4m3Row128, kFp8E4m3Block128, kFp8E4m3Tensor, kFp4Tensor}) {
    for (const bool strided : {false, true}) {
      GemmCase c{.a = format, .b = format, .batch = 2, .m = strided ? 130 : 9, .n = strided ? 17 : 131, .k = 140};
      c.a_global = c.b_global = usual_global(format);
      c.strided = strided;
      cases.push_back(c);
    }
  }
  GemmCase nibbles{.a = kNvfp4, .b = kMxfp4, .d = kNvfp4, .m = 4, .n = 33, .k = 49, .d_global = GlobalScale::one};
  nibbles.a_codes = nibbles.b_codes = nibbles.d_codes = CodeLayout::high_nibble_first;
  cases.push_back(nibbles);
  return cases;
}

// Every activation, gate, type of bias and residual, and the factors.
inline std::vector<GemmCase> gemm_epilogue_cases() {
  constexpr Format kPlain[] = {kF32, kF16, kBf16};
  constexpr Activation kActivations[] = {Activation::none, Activation::gelu_tanh, Activation::gelu_erf,
                                         Activation::silu, Activation::relu,      Activation::relu2};
  constexpr Gate kGates[] = {Gate::none, Gate::halves_gate_first, Gate::halves_up_first, Gate::alternating_rows, Gate::second_matrix};
  std::vector<GemmCase> cases;
  for (const Gate gate : kGates) {
    for (const Activation activation : kActivations) {
      const std::size_t i = cases.size();
      GemmCase c{.a = i % 2 == 0 ? kBf16 : kNvfp4,
                 .d = kPlain[i % 3],
                 .m = 6,
                 .n = 23,
                 .k = 48,
                 .prepared = i % 4 == 1,
                 .gate = gate,
                 .activation = activation};
      c.b_global = i % 3 == 0 ? GlobalScale::per_row : GlobalScale::one;
      if (i % 3 != 1) c.bias = kPlain[i / 2 % 3];
      if (i % 4 != 3) c.residual = kPlain[i / 3 % 3];
      c.alpha = 0.5f;
      c.beta = i % 5 == 0 ? -2.0f : 1.0f;
      cases.push_back(c);
    }
  }
  for (const Format& format : kPlain) {
    for (const bool strided : {false, true}) {
      cases.push_back({.d = format, .batch = 2, .m = 7, .n = 18, .k = 40, .residual = format, .in_place = true, .strided = strided});
    }
  }
  cases.push_back({.a = kF32, .d = kF16, .m = 5, .n = 17, .k = 64, .alpha = 0.0f, .values = Values::wide});
  return cases;
}

// D in every block format and layout of its scales.
inline std::vector<GemmCase> gemm_output_cases() {
  std::vector<GemmCase> cases;
  for (const NamedFormat& d : kFormats) {
    if (d.format.is_plain()) continue;
    for (const ScaleLayout scales : {ScaleLayout::linear, ScaleLayout::scale_128x4, ScaleLayout::scale_8x4}) {
      if (scales != ScaleLayout::linear && !tiles_fit(d.format)) continue;
      for (const std::int64_t n : {1, 31, 129}) {
        GemmCase c{
            .a = kNvfp4, .d = d.format, .batch = 2, .m = 11, .n = n, .k = 64, .d_scales = scales, .d_global = usual_global(d.format)};
        c.activation = n == 31 ? Activation::silu : Activation::none;
        c.strided = n == 129;
        c.prepared = n == 31;
        if (n != 1) c.bias = kF32;
        cases.push_back(c);
      }
    }
  }
  cases.push_back(
      {.a = kBf16, .d = kFp8E4m3Block128, .m = 130, .n = 140, .k = 16, .gate = Gate::halves_gate_first, .activation = Activation::silu});
  cases.push_back({.a = kBf16, .d = kNvfp4, .m = 5, .n = 40, .k = 32, .d_global = GlobalScale::per_row, .residual = kBf16});
  return cases;
}

// Row r of D keeps its bits whatever M is, when the caller asks for it: the row that plan() takes may change, its order may not.
inline void expect_rows_do_not_depend_on_m(GemmCase c, const Device& device) {
  SCOPED_TRACE(c.label());
  constexpr std::int64_t kMost = 70;
  c.batch_invariant = true;
  c.m = kMost;
  const GemmProblem tags = gemm_tags(c);
  std::vector<std::uint32_t> expected;
  for (const std::int64_t rows : {std::int64_t{70}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{8}, std::int64_t{15},
                                  std::int64_t{16}, std::int64_t{17}, std::int64_t{33}, std::int64_t{64}}) {
    auto operands = place(device, make_gemm_operands(c, tags, device));
    ASSERT_TRUE(operands) << operands.status().sentence;
    const GemmProblem problem = fewer_rows(gemm_problem(tags, *operands, false), rows);
    const auto plan = finescale::plan(problem, device);
    ASSERT_TRUE(plan) << plan.status().sentence;
    const Status status = run_kernel(*plan->kernel, problem, device);
    ASSERT_TRUE(status) << status.sentence;
    ASSERT_TRUE(operands->d.fetch(device));
    const Matrix d = with_strides(operands->d.host().view());
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t n = 0; n < c.n; ++n) {
        if (rows == kMost) {
          expected.push_back(code_at(d, 0, r, n));
        } else {
          ASSERT_EQ(code_at(d, 0, r, n), expected[static_cast<std::size_t>(r * c.n + n)])
              << plan->kernel->name << ", M = " << rows << ", row " << r << ", column " << n;
        }
      }
    }
  }
}

}  // namespace finescale::test
