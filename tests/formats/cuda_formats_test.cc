// The element encodings against the host functions of the CUDA toolkit (cuda_fp4.h, cuda_fp8.h), an implementation of its
// own, in its saturating mode: every f16 and bf16 input and a sweep of floats give the same codes, NaN and Inf included,
// and every code the same value. There is no difference to list.
#include <finescale/formats/element.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

namespace finescale {
namespace {

template <class Ours, class Theirs>
void expect_equal_codes(Ours&& ours, Theirs&& theirs) {
  std::int64_t differences = 0;
  float first = 0;
  const auto compare = [&](float x) {
    if (static_cast<std::uint32_t>(ours(x)) != static_cast<std::uint32_t>(theirs(x)) && differences++ == 0) first = x;
  };
  for (std::uint32_t code = 0; code < 0x10000; ++code) {
    compare(F16::decode(code));
    compare(bits_float(code << 16));
  }
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 997) compare(bits_float(static_cast<std::uint32_t>(bits)));
  EXPECT_EQ(differences, 0) << std::hexfloat << "first at " << first;
}

TEST(CudaFormats, e2m1_codes_are_equal) {
  expect_equal_codes([](float x) { return E2M1::encode(x); },
                     [](float x) { return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest); });
}

TEST(CudaFormats, e4m3_codes_are_equal) {
  expect_equal_codes([](float x) { return E4M3::encode(x); }, [](float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E4M3); });
}

TEST(CudaFormats, e5m2_codes_are_equal) {
  expect_equal_codes([](float x) { return E5M2::encode(x); }, [](float x) { return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, __NV_E5M2); });
}

TEST(CudaFormats, e8m0_codes_rounded_up_are_equal) {
  expect_equal_codes([](float x) { return E8M0::encode_round_up(x); },
                     [](float x) { return __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf); });
}

TEST(CudaFormats, f16_and_bf16_codes_are_equal_but_for_nan) {  // theirs gives NaN a form of its own, 0x7FFF
  const auto or_nan = [](float x, std::uint32_t code) { return is_nan(x) ? 0x7FFFu : code; };
  expect_equal_codes([&](float x) { return or_nan(x, F16::encode(x)); },
                     [&](float x) { return or_nan(x, __half_raw(__float2half_rn(x)).x); });
  expect_equal_codes([&](float x) { return or_nan(x, BF16::encode(x)); },
                     [&](float x) { return or_nan(x, __nv_bfloat16_raw(__float2bfloat16_rn(x)).x); });
}

TEST(CudaFormats, every_code_decodes_to_the_same_value) {
  for (std::uint32_t code = 0; code < 16; ++code) {
    const __half_raw half = __nv_cvt_fp4_to_halfraw(static_cast<__nv_fp4_storage_t>(code), __NV_E2M1);
    EXPECT_EQ(F16::encode(E2M1::decode(code)), half.x) << code;
  }
  for (std::uint32_t code = 0; code < 256; ++code) {
    const auto byte = static_cast<unsigned char>(code);
    const float e4m3 = F16::decode(__nv_cvt_fp8_to_halfraw(byte, __NV_E4M3).x),
                e5m2 = F16::decode(__nv_cvt_fp8_to_halfraw(byte, __NV_E5M2).x);
    const float e8m0 = BF16::decode(__nv_cvt_e8m0_to_bf16raw(byte).x);
    EXPECT_TRUE(E4M3::decode(code) == e4m3 || (std::isnan(E4M3::decode(code)) && std::isnan(e4m3))) << code;
    EXPECT_TRUE(E5M2::decode(code) == e5m2 || (std::isnan(E5M2::decode(code)) && std::isnan(e5m2))) << code;
    EXPECT_TRUE(E8M0::decode(code) == e8m0 || (std::isnan(E8M0::decode(code)) && std::isnan(e8m0))) << code;
  }
}

}  // namespace
}  // namespace finescale
