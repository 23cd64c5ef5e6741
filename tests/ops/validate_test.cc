// Each rule on a problem: breaking it alone gives its code and a sentence with the argument, the value and the rule, and nothing
// is written. Then what looks odd and is allowed.
#include "check/operands.h"
#include "support/gemm_case.h"

#include <finescale/dequantize.h>
#include <finescale/gemm.h>
#include <finescale/quantize.h>
#include <finescale/repack.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

namespace finescale::test {
namespace {

using testing::HasSubstr;

// Scratch enough for any reference row.
Execution cpu_execution() {
  static const GuardedBuffer scratch(1 << 20);
  Execution execution{.device = &cpu_device()};
  execution.workspace = {scratch.data(), scratch.bytes(), nullptr, 0};
  return execution;
}

bool is_poison(const OwnedMatrix& matrix) {
  const auto untouched = [](const GuardedBuffer& buffer) {
    return std::all_of(buffer.data(), buffer.data() + buffer.bytes(), [](std::byte byte) { return byte == std::byte{0xFF}; });
  };
  return untouched(matrix.data()) && untouched(matrix.scales());
}

template <class Problem>
struct Rule {
  const char* sentence;  // a part of it: the argument and the value
  void (*break_it)(Problem&);
  Code code = Code::invalid_argument;
};

void expect_refused(const Status& status, Code code, const char* sentence, const OwnedMatrix& written) {
  EXPECT_EQ(status.code, code) << status.sentence;
  EXPECT_THAT(status.sentence, HasSubstr(sentence));
  EXPECT_TRUE(is_poison(written)) << "something was written";
}

// bf16 3 x 32 times nvfp4 8 x 32 with a bias and a residual.
struct Product {
  GemmCase c{.b = kNvfp4, .d = kF32, .m = 3, .n = 8, .k = 32, .b_global = GlobalScale::one, .bias = kF32, .residual = kF32};
  GemmProblem tags = gemm_tags(c);
  GemmOperands<OwnedMatrix> operands = make_gemm_operands(c, tags, cpu_device());
  GemmProblem problem = gemm_problem(tags, operands, false);
};

constexpr Rule<GemmProblem> kGemmRules[] = {
    // One matrix by itself.
    {"a.format: is not set", [](GemmProblem& p) { p.a = {}; }},
    {"a.rows = -1: a size is not negative", [](GemmProblem& p) { p.a.rows = -1; }},
    {"b.cols = 9223372036854775807: a size is at most 2^61", [](GemmProblem& p) { p.b.cols = std::numeric_limits<std::int64_t>::max(); }},
    {"a.batch = -3: a size is not negative", [](GemmProblem& p) { p.a.batch = -3; }},
    {"b.row_stride = 16: a row of cols = 32 nvfp4 codes needs at least 32 elements", [](GemmProblem& p) { p.b.row_stride = 16; }},
    {"b.row_stride = 35: must be even", [](GemmProblem& p) { p.b.row_stride = 35; }},
    {"b.batch_stride = 301: must be even", [](GemmProblem& p) { p.b.batch_stride = 301; }},
    {"b.col_stride = 2: must be 1 for nvfp4 codes", [](GemmProblem& p) { p.b.col_stride = 2; }},
    {"a.row_stride = -7: a stride is not negative", [](GemmProblem& p) { p.a.row_stride = -7; }},
    {"a.row_stride = 1: a row of cols = 32 bf16 codes", [](GemmProblem& p) { p.a.row_stride = 1; }},
    {"a.col_stride = 3: the elements inside it need at least 5", [](GemmProblem& p) { p.a.row_stride = 2, p.a.col_stride = 3; }},
    {"b.scale_col_stride = 1: the block scales inside it need at least 8",
     [](GemmProblem& p) { p.b.scale_row_stride = p.b.scale_col_stride = 1; }},
    {"b.scale_layout = 9: is not a known layout", [](GemmProblem& p) { p.b.scale_layout = static_cast<ScaleLayout>(9); }},
    {"b.scale_row_stride = 8: is for linear scales",
     [](GemmProblem& p) { p.b.scale_layout = ScaleLayout::scale_128x4, p.b.scale_row_stride = 8; }},
    {"b.codes = 7: is not a known layout of codes", [](GemmProblem& p) { p.b.codes = static_cast<CodeLayout>(7); }},
    {"b.codes = 999: is not a known prepared layout", [](GemmProblem& p) { p.b.codes = static_cast<CodeLayout>(999); }},
    {"a.codes = high_nibble_first: is for 4-bit codes", [](GemmProblem& p) { p.a.codes = CodeLayout::high_nibble_first; }},
    {"a.alignment = 12: must be a power of two", [](GemmProblem& p) { p.a.alignment = 12; }},
    {"b.global_kind = 77: must be none, one, per_batch or per_row", [](GemmProblem& p) { p.b.global_kind = static_cast<GlobalScale>(77); }},
    {"b.format = {e8m0, none scales, 1x1 blocks}: its element", [](GemmProblem& p) { p.b.format = {Element::e8m0}; }},
    {"b.format = {e4m3, e2m1 scales, 1x16 blocks}: its scale",
     [](GemmProblem& p) {
       p.b.format = {Element::e4m3, Element::e2m1, 1, 16};
     }},
    {"b.format = {e4m3, e4m3 scales, 1x0 blocks}: a block has",
     [](GemmProblem& p) {
       p.b.format = {Element::e4m3, Element::e4m3, 1, 0};
     }},
    {"a.format = {bf16, e8m0 scales, 1x32 blocks}: f32, f16 and bf16",
     [](GemmProblem& p) {
       p.a.format = {Element::bf16, Element::e8m0, 1, 32};
     }},
    {"b.scale_layout = scale_128x4: is for one-byte scales",
     [](GemmProblem& p) { p.b.format = kFp8E4m3Row128, p.b.global_kind = GlobalScale::none, p.b.scale_layout = ScaleLayout::scale_128x4; }},
    {"b: batch = 1, rows = 8, cols = 576460752303423488: a matrix has at most 2^60 elements",
     [](GemmProblem& p) { p.b.cols = std::int64_t{1} << 59; }},
    {"a: batch = 1, rows = 3, cols = 32: the codes take more than 2^63 - 1 bytes",
     [](GemmProblem& p) { p.a.row_stride = std::int64_t{1} << 62; }},
    // Operands against each other.
    {"b.format = bf16: must be a block format", [](GemmProblem& p) { p.b.format = kBf16, p.b.global_kind = GlobalScale::none; }},
    {"b.cols = 48: must be 32, K, the columns of a", [](GemmProblem& p) { p.b.cols = 48; }},
    {"b.rows = 9: must be 8, N, the columns of d", [](GemmProblem& p) { p.b.rows = 9; }},
    {"d.rows = 4: must be 3, M, the rows of a", [](GemmProblem& p) { p.d.rows = 4; }},
    {"a.batch = 2: must be 1, the batches of d", [](GemmProblem& p) { p.a.batch = 2; }},
    {"b.batch = 2: must be 1, the batches of d", [](GemmProblem& p) { p.b.batch = 2; }},
    {"a.scale_layout = scale_128x4_per_group: needs the groups",
     [](GemmProblem& p) { p.a.format = kNvfp4, p.a.scale_layout = ScaleLayout::scale_128x4_per_group; }},
    {"b2.format = nvfp4: must not be set", [](GemmProblem& p) { p.b2 = p.b; }},
    {"b2.format: is not set; gate = second_matrix",
     [](GemmProblem& p) { p.epilogue.gate = Gate::second_matrix, p.epilogue.bias.cols = 16; }},
    {"b2.format = mxfp4: must be that of b, nvfp4",
     [](GemmProblem& p) { p.epilogue.gate = Gate::second_matrix, p.b2 = p.b, p.b2.format = kMxfp4; }},
    {"b.rows = 8: must be 16, 2 N", [](GemmProblem& p) { p.epilogue.gate = Gate::halves_up_first; }},
    {"epilogue.gate = 9: is not a known order", [](GemmProblem& p) { p.epilogue.gate = static_cast<Gate>(9); }},
    {"epilogue.activation = 9: is not a known activation", [](GemmProblem& p) { p.epilogue.activation = static_cast<Activation>(9); }},
    {"epilogue.bias.cols = 64: must be 8, N", [](GemmProblem& p) { p.epilogue.bias.cols = 64; }},
    {"epilogue.bias.rows = 3: must be 1, a row vector", [](GemmProblem& p) { p.epilogue.bias.rows = 3; }},
    {"epilogue.bias.format = nvfp4: must be f32, f16 or bf16", [](GemmProblem& p) { p.epilogue.bias.format = kNvfp4; }},
    {"epilogue.bias.global_kind = one: must be none", [](GemmProblem& p) { p.epilogue.bias.global_kind = GlobalScale::one; }},
    {"epilogue.residual.rows = 4: must be 3, M", [](GemmProblem& p) { p.epilogue.residual.rows = 4; }},
    {"epilogue.residual.cols = 7: must be 8, N", [](GemmProblem& p) { p.epilogue.residual.cols = 7; }},
    // D, which is written.
    {"d.row_stride = 0: a matrix that is written does not broadcast", [](GemmProblem& p) { p.d.row_stride = 0; }},
    {"d.row_stride = 4: a row of cols = 8 f32 codes", [](GemmProblem& p) { p.d.row_stride = 4; }},
    {"d.codes = panel16_v1: only prepare writes", [](GemmProblem& p) { p.d.format = kMxfp4, p.d.codes = CodeLayout::first_prepared; }},
    {"d.global_kind = one: must be none: a plain matrix", [](GemmProblem& p) { p.d.global_kind = GlobalScale::one; }},
    {"d.global_kind = one: must be none: mxfp4 is quantized without",
     [](GemmProblem& p) { p.d.format = kMxfp4, p.d.global_kind = GlobalScale::one; }},
    {"d.global_kind = none: fp8_e4m3_tensor has no other scale", [](GemmProblem& p) { p.d.format = kFp8E4m3Tensor; }},
    {"recipe: a product quantizes d by profile finescale", [](GemmProblem& p) { p.d.format = kNvfp4, p.recipe.search = ScaleSearch::mse; },
     Code::unsupported},
    {"recipe.power = even: is a rule of E8M0 scales", [](GemmProblem& p) { p.d.format = kNvfp4, p.recipe.power = PowerRule::even; }},
    {"recipe.pow2 = true: is a rule of FP32 scales", [](GemmProblem& p) { p.d.format = kMxfp4, p.recipe.pow2 = true; }},
    // Pointers.
    {"a.data is null: the matrix is not empty", [](GemmProblem& p) { p.a.data = nullptr; }},
    {"b.scales is null", [](GemmProblem& p) { p.b.scales = nullptr; }},
    {"b.global is null", [](GemmProblem& p) { p.b.global = nullptr; }},
    {"d.data is null", [](GemmProblem& p) { p.d.data = nullptr; }},
    {"epilogue.residual.data is null", [](GemmProblem& p) { p.epilogue.residual.data = nullptr; }},
    {"must be a multiple of 16, its promised alignment", [](GemmProblem& p) { p.a.data += 2; }},
    {"d.data = 0x", [](GemmProblem& p) { p.a.data = p.d.data; }},
    {"is epilogue.residual.data too", [](GemmProblem& p) { p.epilogue.residual.data = p.d.data, p.epilogue.residual.format = kBf16; }},
};

TEST(Validate, every_rule_of_gemm_names_the_argument_and_writes_nothing) {
  for (const Rule<GemmProblem>& rule : kGemmRules) {
    SCOPED_TRACE(rule.sentence);
    Product product;
    rule.break_it(product.problem);
    expect_refused(gemm(product.problem, cpu_execution()), rule.code, rule.sentence, product.operands.d);
  }
}

TEST(Validate, a_scale_batch_stride_under_the_tile_size_is_refused) {
  GemmCase c{.a = kNvfp4, .b = kNvfp4, .batch = 2, .m = 16, .n = 8, .k = 128, .a_scales = ScaleLayout::scale_128x4};
  const GemmProblem tags = gemm_tags(c);
  const auto operands = make_gemm_operands(c, tags, cpu_device());
  GemmProblem problem = gemm_problem(tags, operands, false);
  problem.a.scale_batch_stride = 1024;
  EXPECT_TRUE(plan(problem, cpu_device()));
  problem.a.scale_batch_stride = 1023;
  expect_refused(gemm(problem, cpu_execution()), Code::invalid_argument, "a.scale_batch_stride = 1023: each batch of scale_128x4 scales",
                 operands.d);
}

TEST(Validate, a_given_global_scale_of_d_must_be_usable) {
  for (const float g : {0.0f, -1.0f, 0x1p-127f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 1e38f}) {
    GemmCase c{.d = kNvfp4, .m = 2, .n = 16, .k = 16, .d_global = GlobalScale::one};
    const GemmProblem tags = gemm_tags(c);
    const auto operands = make_gemm_operands(c, tags, cpu_device());
    operands.d.view().global[0] = g;
    expect_refused(gemm(gemm_problem(tags, operands, false), cpu_execution()), Code::invalid_argument, "d.global[0] = ", operands.d);
  }
}

TEST(Validate, what_is_not_read_need_not_be_there) {
  Product product;
  product.problem.epilogue.beta = 0.0f;
  product.problem.epilogue.residual.data = nullptr;
  EXPECT_TRUE(gemm(product.problem, cpu_execution()));
  GemmProblem empty = fewer_rows(product.problem, 0);
  empty.a.data = empty.b.data = empty.b.scales = empty.epilogue.bias.data = nullptr;
  empty.d.data = nullptr;
  empty.b.global = nullptr;
  EXPECT_TRUE(gemm(empty, cpu_execution()));
}

TEST(Validate, strides_of_dimensions_without_a_second_element_are_free) {
  Product product;
  GemmProblem one_row = fewer_rows(product.problem, 1);
  one_row.a.row_stride = 2;
  one_row.a.batch_stride = 0;
  EXPECT_TRUE(gemm(one_row, cpu_execution()));
}

// with_strides fills an empty matrix with zeros, which elsewhere would broadcast.
TEST(Validate, strides_of_a_matrix_without_elements_are_free) {
  for (const auto& [rows, cols] : {std::pair{0, 64}, std::pair{4, 0}}) {
    const QuantizeProblem packed{.from = {.format = kF32, .batch = 2, .rows = rows, .cols = cols},
                                 .to = {.format = kMxfp4, .batch = 2, .rows = rows, .cols = cols}};
    EXPECT_EQ(quantize(packed, cpu_execution()).sentence, "");
    EXPECT_EQ(quantize(with_strides(packed), cpu_execution()).sentence, "");
    QuantizeProblem strided = packed;
    strided.from.col_stride = 3;
    strided.from.row_stride = 3 * 64;
    strided.from.batch_stride = rows * strided.from.row_stride;
    EXPECT_EQ(quantize(strided, cpu_execution()).sentence, "");
  }
}

struct Conversion {
  OwnedMatrix from = *random_matrix({.format = kF32, .rows = 4, .cols = 64}, 1);
  OwnedMatrix to = *OwnedMatrix::make({.format = kNvfp4, .rows = 4, .cols = 64, .global_kind = GlobalScale::one});
  QuantizeProblem problem{.from = from.view(), .to = to.view()};
};

constexpr Rule<QuantizeProblem> kQuantizeRules[] = {
    {"from.format = mxfp4: must be f32, f16 or bf16", [](QuantizeProblem& p) { p.from.format = kMxfp4; }},
    {"to.format = bf16: must be a block format", [](QuantizeProblem& p) { p.to.format = kBf16; }},
    {"to.rows = 5: must be 4, the rows of from", [](QuantizeProblem& p) { p.to.rows = 5; }},
    {"to.batch = 2: must be 1, the batches of from", [](QuantizeProblem& p) { p.to.batch = 2; }},
    {"from.cols = 64: must be 32, K", [](QuantizeProblem& p) { p.to.cols = 32; }},
    {"from.cols = 64: must be 128, 2 K",
     [](QuantizeProblem& p) { p.producer.kind = Producer::silu_mul, p.producer.order = Gate::halves_gate_first; }},
    {"to.global_kind = one: must be none: mxfp4 is quantized without a global scale", [](QuantizeProblem& p) { p.to.format = kMxfp4; }},
    {"to.global_kind = none: fp4_tensor has no other scale",
     [](QuantizeProblem& p) { p.to.format = kFp4Tensor, p.to.global_kind = GlobalScale::none; }},
    {"global_given = true: to.global_kind = none", [](QuantizeProblem& p) { p.global_given = true, p.to.global_kind = GlobalScale::none; }},
    {"producer.order = 0: must say where gate and up lie", [](QuantizeProblem& p) { p.producer.kind = Producer::silu_mul; }},
    {"producer.order = 4: must say where",
     [](QuantizeProblem& p) { p.producer.kind = Producer::silu_mul, p.producer.order = Gate::second_matrix; }},
    {"producer.order = 1: must be none", [](QuantizeProblem& p) { p.producer.order = Gate::halves_gate_first; }},
    {"producer.kind = 99: is not a known producer", [](QuantizeProblem& p) { p.producer.kind = static_cast<Producer>(99); }},
    {"producer.intermediate = 4: must be f32, f16 or bf16", [](QuantizeProblem& p) { p.producer.intermediate = Element::e4m3; }},
    {"producer.weight.format = f32: must not be set: only rms_norm",
     [](QuantizeProblem& p) { p.producer.weight = {.format = kF32, .rows = 1, .cols = 64}; }},
    {"producer.weight.cols = 63: must be 64, K",
     [](QuantizeProblem& p) { p.producer.kind = Producer::rms_norm, p.producer.weight = {.format = kF32, .rows = 1, .cols = 63}; }},
    {"producer.eps = -1: must be finite and not negative",
     [](QuantizeProblem& p) { p.producer.kind = Producer::rms_norm, p.producer.eps = -1.0f; }},
    {"producer.weight_offset = 0.5: must be 0 or 1",
     [](QuantizeProblem& p) { p.producer.kind = Producer::rms_norm, p.producer.weight_offset = 0.5f; }},
    {"producer.residual.rows = 3: must be 4, the rows of from",
     [](QuantizeProblem& p) { p.producer.kind = Producer::rms_norm, p.producer.residual = {.format = kF32, .rows = 3, .cols = 64}; }},
    {"segments.count = 2: must be 0", [](QuantizeProblem& p) { p.segments.count = 2; }},
    {"segments.count = -2: must not be negative", [](QuantizeProblem& p) { p.segments.count = -2; }},
    {"segments.ends is null", [](QuantizeProblem& p) { p.segments.count = 2, p.to.global_kind = GlobalScale::per_row; }},
    {"recipe.profile = 99: is not a known profile", [](QuantizeProblem& p) { p.recipe.profile = static_cast<Profile>(99); }},
    {"recipe: profile flashrt writes nvfp4 without a global scale", [](QuantizeProblem& p) { p.recipe.profile = Profile::flashrt; },
     Code::unsupported},
    {"recipe: four_six and mse are for nvfp4 blocks (from.format = f32, to.format = mxfp4",
     [](QuantizeProblem& p) { p.to.format = kMxfp4, p.to.global_kind = GlobalScale::none, p.recipe.search = ScaleSearch::mse; },
     Code::unsupported},
    {"recipe.pow2 = true: is a rule of FP32 scales; nvfp4", [](QuantizeProblem& p) { p.recipe.pow2 = true; }},
    {"recipe.power = ocp_floor: is a rule of E8M0 scales; nvfp4", [](QuantizeProblem& p) { p.recipe.power = PowerRule::ocp_floor; }},
    {"to.scale_layout = scale_128x4_per_group: needs the groups",
     [](QuantizeProblem& p) { p.to.scale_layout = ScaleLayout::scale_128x4_per_group; }},
    {"to.codes = panel16_v1: only prepare writes", [](QuantizeProblem& p) { p.to.codes = CodeLayout::first_prepared; }},
    {"to.scale_row_stride = 0: block scales that are written do not broadcast", [](QuantizeProblem& p) { p.to.scale_row_stride = 0; }},
    {"to.global is null", [](QuantizeProblem& p) { p.to.global = nullptr; }},
    {"from.data is null", [](QuantizeProblem& p) { p.from.data = nullptr; }},
    {"to.global[0] = 0", [](QuantizeProblem& p) { p.global_given = true, p.to.global[0] = 0.0f; }},
};

TEST(Validate, every_rule_of_quantize_names_the_argument_and_writes_nothing) {
  for (const Rule<QuantizeProblem>& rule : kQuantizeRules) {
    SCOPED_TRACE(rule.sentence);
    Conversion conversion;
    rule.break_it(conversion.problem);
    expect_refused(quantize(conversion.problem, cpu_execution()), rule.code, rule.sentence, conversion.to);
  }
}

TEST(Validate, the_other_ops_name_the_argument_too) {
  const OwnedMatrix from = *random_matrix({.format = kNvfp4, .rows = 4, .cols = 64}, 1);
  const OwnedMatrix to = *OwnedMatrix::make({.format = kNvfp4, .rows = 4, .cols = 64}),
                    plain = *OwnedMatrix::make({.format = kF32, .rows = 4, .cols = 64});
  MutableMatrix other = to.view();
  other.format = kMxfp4;
  expect_refused(repack({.from = from.view(), .to = other}, cpu_execution()), Code::invalid_argument,
                 "to.format = mxfp4: must be that of from, nvfp4", to);
  other = to.view();
  other.cols = 62;
  expect_refused(repack({.from = from.view(), .to = other}, cpu_execution()), Code::invalid_argument, "to.cols = 62: must be 64", to);
  expect_refused(prepare({.from = from.view(), .to = to.view()}, cpu_execution()), Code::invalid_argument,
                 "to.codes = row_major: must be a prepared layout", to);
  expect_refused(dequantize({.from = from.view(), .to = to.view()}, cpu_execution()), Code::invalid_argument,
                 "to.format = nvfp4: must be f32, f16 or bf16", to);
  MutableMatrix short_rows = plain.view();
  short_rows.rows = 3;
  expect_refused(dequantize({.from = from.view(), .to = short_rows}, cpu_execution()), Code::invalid_argument, "to.rows = 3: must be 4",
                 plain);
}

}  // namespace
}  // namespace finescale::test
