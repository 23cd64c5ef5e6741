// A format that no row names: E2M1 elements, an E5M2 scale for each 1x8 block. It takes part in every op as a value. Rows tuned
// for other formats refuse it, as any row may.
#include "support/gemm_sweep.h"
#include "support/grouped_gemm_sweep.h"
#include "support/quantize_sweep.h"

#include <finescale/dequantize.h>
#include <finescale/formats/format.h>

#include <gtest/gtest.h>

#include <string>

namespace finescale::test {
namespace {

constexpr Format kToy{Element::e2m1, Element::e5m2, 1, 8};

// A format is a value: a template argument, and what functions on formats take.
template <Format kFormat>
constexpr float largest = max_value(kFormat.element) * max_value(kFormat.scale);
static_assert(largest<kToy> == 6.0f * 57344.0f);
static_assert(bits(kToy.element) == 4 && kToy.has_scales() && !kToy.is_plain() && Panel16::supports(kToy));

TEST(MadeUpFormat, has_no_row_in_the_list_here) { EXPECT_EQ(format_name(kToy), "unnamed"); }

TEST(MadeUpFormat, is_quantized_by_every_row) {
  std::vector<QuantizeCase> cases;
  for (const ScaleLayout scales : {ScaleLayout::linear, ScaleLayout::scale_128x4, ScaleLayout::scale_8x4}) {
    for (const std::int64_t cols : {1, 7, 8, 9, 65}) {
      cases.push_back({.to = kToy, .batch = 2, .rows = 5, .cols = cols, .scales = scales, .special = cols > 9, .values = Values::wide});
      cases.push_back({.from = kBf16, .to = kToy, .rows = 3, .cols = cols, .recipe = {.rounding = Rounding::stochastic, .seed = 5}});
    }
  }
  cases.push_back({.to = kToy, .rows = 3, .cols = 40, .producer = Producer::silu_mul, .order = Gate::halves_up_first});
  sweep_quantize(cpu_device(), cases, false);
}

TEST(MadeUpFormat, comes_back_from_dequantize) {
  const OwnedMatrix from = *random_matrix({.format = kToy, .rows = 4, .cols = 21}, 3);
  const OwnedMatrix to = *OwnedMatrix::make({.format = kF32, .rows = 4, .cols = 21});
  ASSERT_TRUE(dequantize({.from = from.view(), .to = to.view()}, {.device = &cpu_device()}));
  const Matrix x = with_strides(from.view()), y = with_strides(to.view());
  for (std::int64_t r = 0; r < 4; ++r) {
    for (std::int64_t c = 0; c < 21; ++c) EXPECT_EQ(element_at(y, 0, r, c), element_at(x, 0, r, c) * block_scale_at(x, 0, r, c));
  }
}

TEST(MadeUpFormat, is_multiplied_within_the_bound_by_every_row) {
  std::vector<GemmCase> cases;
  for (const Format& other : {kToy, kNvfp4, kMxfp8E4m3, kFp8E4m3Block128}) {
    for (const bool prepared : {false, true}) {
      cases.push_back({.a = other, .b = kToy, .m = 5, .n = 19, .k = 70, .prepared = prepared});
      cases.push_back(
          {.a = kToy, .b = other, .d = kToy, .m = 5, .n = 19, .k = 70, .a_scales = ScaleLayout::scale_128x4, .prepared = prepared});
    }
  }
  cases.push_back({.a = kBf16, .b = kToy, .m = 1, .n = 64, .k = 256, .b_scales = ScaleLayout::scale_8x4, .prepared = true});
  cases.push_back(
      {.a = kToy, .b = kToy, .d = kBf16, .n = 16, .k = 33, .gate = Gate::alternating_rows, .activation = Activation::silu, .bias = kF32});
  sweep_gemm(cpu_device(), cases, false);
}

TEST(MadeUpFormat, is_multiplied_by_group) {
  std::vector<GroupedCase> cases;
  for (const Routing::Kind kind : kRoutingKinds) {
    GroupedCase c{.gemm = {.a = kToy, .b = kToy, .d = kToy, .n = 21, .k = 50, .d_scales = ScaleLayout::scale_128x4}};
    c.kind = kind;
    c.sizes = {3, 0, 9};
    c.tail = 2;
    cases.push_back(c);
    c.gemm.prepared = true;
    cases.push_back(c);
  }
  sweep_grouped_gemm(cpu_device(), cases, false);
}

}  // namespace
}  // namespace finescale::test
