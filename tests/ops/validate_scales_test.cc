// validate_scales finds the first block whose scale no quantizer writes, and says where it is.
#include "check/operands.h"

#include <finescale/access.h>
#include <finescale/validate_scales.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace finescale {
namespace {

using ::testing::HasSubstr;

OwnedMatrix good(const Format& format, ScaleLayout layout) {
  auto matrix = random_matrix({.format = format, .batch = 2, .rows = 5, .cols = 200, .scale_layout = layout}, 7);
  EXPECT_TRUE(matrix);
  const MutableMatrix m = with_strides(matrix->view());
  for (std::int64_t c = 0; c < m.cols; ++c) set_code(m, 1, 3, c, 2);  // codes of value, not of zero
  return std::move(*matrix);
}

TEST(ValidateScales, passes_what_quantizers_write) {
  for (const Format& format : {kNvfp4, kMxfp4, kFp8E4m3Row128, kFp8E4m3Tensor}) {
    EXPECT_TRUE(validate_scales("b", good(format, ScaleLayout::linear).view())) << format_name(format);
  }
  EXPECT_TRUE(validate_scales("b", good(kNvfp4, ScaleLayout::scale_128x4).view()));
}

TEST(ValidateScales, names_the_block_of_a_sign_bit_a_nan_and_a_zero_over_codes) {
  for (const auto layout : {ScaleLayout::linear, ScaleLayout::scale_128x4, ScaleLayout::scale_8x4}) {
    for (const std::uint32_t code : {0xB8u, 0x7Fu, 0x00u}) {
      const OwnedMatrix matrix = good(kNvfp4, layout);
      set_scale_code(with_strides(matrix.view()), 1, 3, 3 * 16, code);
      const Status status = validate_scales("weights", matrix.view());
      EXPECT_EQ(status.code, Code::invalid_argument);
      EXPECT_THAT(status.sentence, HasSubstr("weights"));
      EXPECT_THAT(status.sentence, HasSubstr("3"));
    }
  }
}

TEST(ValidateScales, lets_a_zero_scale_stand_over_zero_codes) {
  const OwnedMatrix matrix = good(kNvfp4, ScaleLayout::linear);
  const MutableMatrix m = with_strides(matrix.view());
  for (std::int64_t c = 16; c < 32; ++c) set_code(m, 0, 0, c, c % 2 == 0 ? 0 : 8);
  set_scale_code(m, 0, 0, 16, 0);
  EXPECT_TRUE(validate_scales("b", matrix.view()));
}

TEST(ValidateScales, refuses_a_null_pointer_of_a_matrix_that_is_not_empty) {
  const OwnedMatrix matrix = good(kNvfp4, ScaleLayout::linear);
  Matrix without_codes = matrix.view(), without_scales = matrix.view();
  without_codes.data = without_scales.scales = nullptr;
  EXPECT_EQ(validate_scales("b", without_codes).sentence, "b.data is null: the matrix is not empty");
  EXPECT_EQ(validate_scales("b", without_scales).sentence, "b.scales is null: the matrix is not empty");
  EXPECT_TRUE(validate_scales("b", Matrix{.format = kNvfp4, .rows = 5, .cols = 0}));
}

TEST(ValidateScales, finds_the_nan_of_e8m0_and_of_fp32_scales) {
  const OwnedMatrix mx = good(kMxfp4, ScaleLayout::linear), fp8 = good(kFp8E4m3Row128, ScaleLayout::linear);
  set_scale_code(with_strides(mx.view()), 1, 3, 64, 0xFF);
  set_scale_code(with_strides(fp8.view()), 1, 3, 128, 0x7F800000u);
  EXPECT_EQ(validate_scales("b", mx.view()).code, Code::invalid_argument);
  EXPECT_EQ(validate_scales("b", fp8.view()).code, Code::invalid_argument);
}

}  // namespace
}  // namespace finescale
