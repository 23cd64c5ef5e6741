// What must hold for every quantizer, whatever its bytes are.
#include "support/layout_sweep.h"
#include "support/quantized.h"

#include <finescale/repack.h>

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace finescale::test {
namespace {

using testing::HasSubstr;

const Execution kExecution{.device = &cpu_device()};

std::vector<float> bell(std::size_t count, std::uint64_t seed = 3) {
  const auto matrix = random_matrix({.format = kF32, .rows = 1, .cols = static_cast<std::int64_t>(count)}, seed, Values::usual);
  const auto* values = reinterpret_cast<const float*>(matrix->data().data());
  return {values, values + count};
}

QuantizeOptions usual(const Format& format) { return {.global = usual_global(format)}; }

// No value may leave the normal range on the way: without a global scale, block scales of few exponent bits bound the step.
std::vector<int> powers(const Format& format) {
  const bool narrow = format.has_scales() && format.scale != Element::e8m0 && format.scale != Element::f32;
  return narrow && !format.global ? std::vector{-3, 1, 5} : std::vector{-9, 1, 20};
}

TEST(QuantizeProperties, scaling_by_a_power_of_two_is_exact) {
  for (const Format& format : block_formats()) {
    const std::vector<float> x = bell(300);
    for (const int power : powers(format)) {
      std::vector<float> scaled = x;
      for (float& value : scaled) value = std::ldexp(value, power);
      const Quantized q = quantized(format, 1, x, usual(format)), p = quantized(format, 1, scaled, usual(format));
      EXPECT_EQ(q.codes(), p.codes()) << format_name(format);
      const std::vector<float> a = dequantized(q.view()), b = dequantized(p.view());
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(std::ldexp(a[i], power), b[i]) << format_name(format);
    }
  }
}

TEST(QuantizeProperties, two_runs_are_equal) {
  for (const QuantizeCase& c : recipe_cases()) {
    const auto& kernel =
        *plan(make_problem(c, make_operands(c).from.view(), make_operands(c).to.view(), {}, {}, nullptr), cpu_device())->kernel;
    const auto first = run_case(c, kernel, cpu_device()), second = run_case(c, kernel, cpu_device());
    ASSERT_TRUE(first && second);
    expect_same(first->to, second->to);
  }
}

TEST(QuantizeProperties, a_row_does_not_depend_on_the_other_rows) {
  for (const Format& format : {kNvfp4, kMxfp4, kMxfp8E4m3, kMxfp8E5m2, kFp8E4m3Row128}) {
    const std::vector<float> x = bell(5 * 70);
    const Quantized all = quantized(format, 5, x);
    for (std::int64_t r = 0; r < 5; ++r) {
      const Quantized one = quantized(format, 1, std::vector<float>(x.begin() + r * 70, x.begin() + (r + 1) * 70));
      EXPECT_EQ(all.codes(r), one.codes(0));
      for (std::int64_t c = 0; c < 70; c += format.block_cols) EXPECT_EQ(all.scale(r, c), one.scale(0, c));
    }
  }
}

TEST(QuantizeProperties, a_row_segment_is_quantized_as_a_tensor_of_its_own) {
  const std::vector<float> x = bell(6 * 48);
  const auto from = random_matrix({.format = kF32, .rows = 6, .cols = 48}, 3);
  Matrix tags{.format = kNvfp4, .rows = 6, .cols = 48};
  tags.global_kind = GlobalScale::per_row;
  const OwnedMatrix to = detail::owned(tags);
  const std::int32_t ends[] = {1, 1, 4, 6};  // the second is empty
  ASSERT_TRUE(quantize({.from = from->view(), .to = to.view(), .segments = {ends, 4}}, kExecution));
  const Matrix q = with_strides(Matrix(to.view()));
  for (const auto& [begin, end] : {std::pair{0, 1}, {1, 4}, {4, 6}}) {
    std::vector<float> rows;
    for (std::int64_t r = begin; r < end; ++r) {
      for (std::int64_t c = 0; c < 48; ++c) rows.push_back(element_at(with_strides(Matrix(from->view())), 0, r, c));
    }
    const Quantized own = quantized(kNvfp4, end - begin, rows, {.global = GlobalScale::one});
    for (std::int64_t r = begin; r < end; ++r) {
      EXPECT_EQ(q.global[r], own.global());
      for (std::int64_t c = 0; c < 48; ++c) EXPECT_EQ(code_at(q, 0, r, c), own.code(r - begin, c));
    }
  }
}

// A block that reaches its largest code again gives the same scale; otherwise the scale may halve, but no value changes.
TEST(QuantizeProperties, quantizing_what_was_dequantized_changes_no_value) {
  for (const Format& format : {kMxfp4, kMxfp8E4m3, kMxfp8E5m2}) {
    const std::vector<float> once = dequantized(quantized(format, 4, bell(4 * 96)).view());
    EXPECT_EQ(dequantized(quantized(format, 4, once).view()), once) << format_name(format);
  }
  const Quantized q = quantized(kNvfp4, 4, bell(4 * 96), {.global = GlobalScale::one});
  const Quantized again = quantized(kNvfp4, 4, dequantized(q.view()), {.global = GlobalScale::one, .given = q.global()});
  EXPECT_EQ(q.bytes(), again.bytes());
  EXPECT_TRUE(same_bytes("scales", q.matrix.scales(), again.matrix.scales()));
}

TEST(QuantizeProperties, any_layout_holds_the_codes_of_the_plain_one) {
  for (const Format& format : block_formats()) {
    const Shape shape{2, 131, 77};
    const auto from = random_matrix({.format = kBf16, .batch = 2, .rows = 131, .cols = 77}, 8);
    const OwnedMatrix plain = detail::owned(arranged(format, shape, {}, usual_global(format)));
    ASSERT_TRUE(quantize({.from = from->view(), .to = plain.view()}, kExecution));
    for (const Arrangement& a : arrangements(format, false)) {
      SCOPED_TRACE(std::string(format_name(format)) + " " + a.label());
      const OwnedMatrix there = detail::owned(arranged(format, shape, a, usual_global(format))),
                        back = detail::owned(arranged(format, shape, {}, usual_global(format)));
      ASSERT_TRUE(quantize({.from = from->view(), .to = there.view()}, kExecution));
      ASSERT_TRUE(repack({.from = there.view(), .to = back.view()}, kExecution));
      EXPECT_TRUE(same_bytes("data", plain.data(), back.data()));
      EXPECT_TRUE(same_bytes("scales", plain.scales(), back.scales()));
    }
  }
}

TEST(QuantizeProperties, a_transposed_input_is_read_through_its_strides) {
  std::vector<float> base(16 * 32), transposed(32 * 16);
  for (std::size_t r = 0; r < 16; ++r) {
    for (std::size_t c = 0; c < 32; ++c) base[r * 32 + c] = transposed[c * 16 + r] = static_cast<float>((3 * r + c) % 7);
  }
  Matrix from{.format = kF32, .rows = 32, .cols = 16, .row_stride = 1, .col_stride = 32};
  from.data = reinterpret_cast<const std::byte*>(base.data());
  from.alignment = 4;
  const OwnedMatrix to = detail::owned({.format = kNvfp4, .rows = 32, .cols = 16});
  const Status status = quantize({.from = from, .to = to.view()}, kExecution);
  ASSERT_TRUE(status) << status.sentence;
  const Quantized expected = quantized(kNvfp4, 32, transposed);
  EXPECT_TRUE(same_bytes("data", expected.matrix.data(), to.data()));
  EXPECT_TRUE(same_bytes("scales", expected.matrix.scales(), to.scales()));
}

double squared_error(const std::vector<float>& x, const Quantized& q) {
  const std::vector<float> back = dequantized(q.view());
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - back[i]) * static_cast<double>(x[i] - back[i]);
  return sum;
}

TEST(QuantizeProperties, better_scales_are_better) {
  const std::vector<float> x = bell(64 * 16);
  const auto error = [&](ScaleSearch search) {
    return squared_error(x, quantized(kNvfp4, 64, x, {.recipe = {.search = search}, .global = GlobalScale::one}));
  };
  EXPECT_LT(error(ScaleSearch::four_six), error(ScaleSearch::max));
  EXPECT_LT(error(ScaleSearch::mse), error(ScaleSearch::four_six));
}

// 1.25 lies halfway between 1 and 1.5: over n words the mean is 1.25 with deviation 0.25 / sqrt(n).
TEST(QuantizeProperties, stochastic_rounding_has_the_right_mean) {
  constexpr int kCount = 16384;
  std::vector<float> x = repeated(kCount, -1.25f);
  for (std::size_t i = 0; i < x.size(); i += 16) x[i] = 6;
  const QuantizeOptions options{.recipe = {.rounding = Rounding::stochastic, .seed = 5}};
  const Quantized q = quantized(kNvfp4, 1, x, options);
  double sum = 0;
  int count = 0;
  for (int i = 0; i < kCount; ++i) {
    if (i % 16 == 0) continue;
    EXPECT_TRUE(q.code(0, i) == 0xA || q.code(0, i) == 0xB);
    sum += decode(Element::e2m1, q.code(0, i));
    ++count;
  }
  EXPECT_NEAR(sum / count, -1.25, 5 * 0.25 / std::sqrt(count));
  EXPECT_NE(q.codes(), quantized(kNvfp4, 1, x, {.recipe = {.rounding = Rounding::stochastic, .seed = 6}}).codes());
}

TEST(QuantizeProperties, a_given_global_scale_must_be_usable_and_nothing_is_written_otherwise) {
  const auto from = random_matrix({.format = kF32, .rows = 1, .cols = 16}, 3);
  Matrix tags{.format = kNvfp4, .rows = 1, .cols = 16};
  tags.global_kind = GlobalScale::one;
  const float inf = std::numeric_limits<float>::infinity();
  for (const float bad : {0.0f, -1.0f, 0x1p-127f, 0x1p118f, inf, std::numeric_limits<float>::quiet_NaN()}) {
    const OwnedMatrix to = detail::owned(tags), untouched = detail::owned(tags);
    to.view().global[0] = untouched.view().global[0] = bad;
    const Status status = quantize({.from = from->view(), .to = to.view(), .global_given = true}, kExecution);
    EXPECT_EQ(status.code, Code::invalid_argument) << bad;
    EXPECT_THAT(status.sentence, HasSubstr("to.global[0]"));
    expect_same(untouched, to);
  }
  for (const float good : {0x1p-126f, 0x1p116f}) {
    const OwnedMatrix to = detail::owned(tags);
    to.view().global[0] = good;
    EXPECT_TRUE(quantize({.from = from->view(), .to = to.view(), .global_given = true}, kExecution)) << good;
  }
}

// Where the host cannot look, a bad global scale shows in the scales, or in the codes of a format without any.
TEST(QuantizeProperties, a_bad_global_scale_on_a_device_becomes_nan) {
  for (const float bad : {0.0f, -1.0f, std::numeric_limits<float>::infinity()}) {
    EXPECT_EQ(block_scale_code(kNvfp4, Recipe{}, 1.0f, bad), 0x7Fu);
    EXPECT_EQ(element_code(kFp8E4m3Tensor, Recipe{}, 1.0f, 1.0f, bad), 0x7Fu);
  }
}

TEST(QuantizeProperties, a_global_scale_for_a_format_without_one_is_refused) {
  const auto from = random_matrix({.format = kF32, .rows = 1, .cols = 32}, 3);
  Matrix tags{.format = kMxfp4, .rows = 1, .cols = 32};
  tags.global_kind = GlobalScale::one;
  const OwnedMatrix to = detail::owned(tags);
  to.view().global[0] = 0.5f;
  const Status status = quantize({.from = from->view(), .to = to.view(), .global_given = true}, kExecution);
  EXPECT_FALSE(status);
  EXPECT_THAT(status.sentence, HasSubstr("global"));
}

TEST(QuantizeProperties, recipes_that_do_not_go_together_are_refused_with_a_sentence) {
  struct Row {
    Format from, to;
    Recipe recipe;
    GlobalScale global;
    const char* says;
  };
  const Row rows[] = {
      {kF32, kMxfp4, {.search = ScaleSearch::mse}, GlobalScale::none, "nvfp4"},
      {kF32, kNvfp4, {.profile = Profile::flashrt}, GlobalScale::none, "f16 or bf16"},
      {kF16, kNvfp4, {.profile = Profile::flashrt}, GlobalScale::one, "without a global"},
      {kF32, kNvfp4, {.profile = Profile::modelopt}, GlobalScale::none, "with a global"},
      {kF32, kMxfp4, {.profile = Profile::compressed_tensors}, GlobalScale::none, "nvfp4"},
      {kF16, kNvfp4, {.profile = Profile::torchao}, GlobalScale::none, "f32 or bf16"},
      {kF32, kNvfp4, {.profile = Profile::deepgemm}, GlobalScale::none, "fp8_e4m3_1x128"},
      {kF32, kNvfp4, {.profile = Profile::modelopt, .search = ScaleSearch::mse}, GlobalScale::one, "fixes"},
      {kF32, kNvfp4, {.pow2 = true}, GlobalScale::none, "FP32"},
  };
  for (const Row& row : rows) {
    QuantizeProblem problem{.from = {.format = row.from, .rows = 1, .cols = 32}, .to = {.format = row.to, .rows = 1, .cols = 32}};
    problem.to.global_kind = row.global;
    problem.recipe = row.recipe;
    const auto made = plan(problem, cpu_device());
    EXPECT_FALSE(made);
    EXPECT_THAT(made.status().sentence, HasSubstr(row.says));
  }
}

TEST(QuantizeProperties, segment_ends_that_fall_or_miss_the_last_row_are_refused) {
  const auto from = random_matrix({.format = kF32, .rows = 4, .cols = 16}, 3);
  Matrix tags{.format = kNvfp4, .rows = 4, .cols = 16};
  tags.global_kind = GlobalScale::per_row;
  for (const auto& ends : {std::array<std::int32_t, 2>{3, 2}, {2, 3}, {2, 5}, {-1, 4}}) {
    const OwnedMatrix to = detail::owned(tags), untouched = detail::owned(tags);
    const Status status = quantize({.from = from->view(), .to = to.view(), .segments = {ends.data(), 2}}, kExecution);
    EXPECT_EQ(status.code, Code::invalid_argument);
    EXPECT_THAT(status.sentence, HasSubstr("segments.ends"));
    expect_same(untouched, to);
  }
}

#if defined(__x86_64__)
TEST(QuantizeProperties, a_host_that_flushes_subnormals_gets_the_same_bytes) {
  std::vector<float> x = repeated(32, 1e-39f);
  x[3] = 1.5e-36f;
  const Quantized expected = quantized(kMxfp8E4m3, 1, x);
  const unsigned host = _mm_getcsr();
  _mm_setcsr(host | 0x8040u | 0x6000u);  // flush to zero, denormals are zero, round toward zero
  const Quantized q = quantized(kMxfp8E4m3, 1, x);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(host);
  EXPECT_EQ(after & 0xE040u, 0xE040u) << "the host's settings are put back";
  EXPECT_EQ(q.bytes(), expected.bytes());
  EXPECT_EQ(q.scale(0, 0), expected.scale(0, 0));
}
#endif

}  // namespace
}  // namespace finescale::test
