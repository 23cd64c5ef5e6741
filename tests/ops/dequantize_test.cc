// dequantize: every row against the reference, and the reference against arithmetic of its own.
#include "support/layout_sweep.h"

#include <cmath>
#include <cstring>

#include <sys/mman.h>

namespace finescale::test {
namespace {

TEST(Dequantize, every_row_writes_the_reference_bytes) { sweep_dequantize(cpu_device()); }

// sign * fraction * 2^exponent, from the fields of a code; no help from element.h.
double value_of(std::uint32_t code, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(code >> mantissa_bits & ((1u << exponent_bits) - 1));
  const double fraction = static_cast<double>(code & ((1u << mantissa_bits) - 1)) / (1 << mantissa_bits);
  const double magnitude = exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return code >> (exponent_bits + mantissa_bits) & 1 ? -magnitude : magnitude;
}

double element_value(const Format& format, std::uint32_t code) {
  switch (format.element) {
    case Element::e2m1: return value_of(code, 2, 1);
    case Element::e4m3: return value_of(code, 4, 3);
    default: return value_of(code, 5, 2);
  }
}

double scale_value(const Format& format, std::uint32_t code) {
  switch (format.scale) {
    case Element::none: return 1;
    case Element::e4m3: return value_of(code, 4, 3);
    case Element::e5m2: return value_of(code, 5, 2);
    case Element::e8m0: return std::ldexp(1.0, static_cast<int>(code) - 127);
    default: {
      float value;
      std::memcpy(&value, &code, 4);
      return value;
    }
  }
}

// Products of two FP32 numbers are exact in FP64: one rounding each, as promised.
TEST(Dequantize, is_element_times_scale_times_global_each_rounded_once) {
  for (const Format& format : block_formats()) {
    Matrix tags{.format = format, .rows = 130, .cols = 259};
    tags.global_kind = GlobalScale::per_row;
    const auto random = random_matrix(tags, 11, Values::wide);
    ASSERT_TRUE(random);
    const Matrix from = with_strides(Matrix(random->view()));
    for (const Format& out : {kF32, kF16, kBf16}) {
      const OwnedMatrix to = detail::owned({.format = out, .rows = 130, .cols = 259});
      ASSERT_TRUE(dequantize({.from = from, .to = to.view()}, {.device = &cpu_device()}));
      for (std::int64_t r = 0; r < from.rows; ++r) {
        for (std::int64_t c = 0; c < from.cols; ++c) {
          const double scale = format.has_scales() ? scale_value(format, scale_code_at(from, 0, r, c)) : 1;
          const float scaled = static_cast<float>(element_value(format, code_at(from, 0, r, c)) * scale);
          const float expected = static_cast<float>(static_cast<double>(scaled) * from.global[r]);
          const float actual = element_at(with_strides(Matrix(to.view())), 0, r, c);
          if (out == kF32) {
            ASSERT_EQ(float_bits(actual), float_bits(expected)) << format_name(format) << " " << r << " " << c;
          } else {
            // Half the distance between two numbers of the output type around the exact value.
            const double step =
                std::ldexp(1.0, std::max(std::ilogb(expected == 0 ? 1e-30f : expected), out == kF16 ? -14 : -126) - (out == kF16 ? 10 : 7));
            if (out == kF16 && std::abs(expected) >= 65520) {
              ASSERT_TRUE(std::isinf(actual));
            } else {
              ASSERT_LE(std::abs(static_cast<double>(actual) - expected), step / 2) << format_name(format) << " " << expected;
            }
          }
        }
      }
    }
  }
}

TEST(Dequantize, a_nan_has_one_form) {
  Matrix tags{.format = kNvfp4, .rows = 1, .cols = 32};
  const OwnedMatrix from = detail::owned(tags);  // scales 0xFF: NaN with its sign set
  const OwnedMatrix to = detail::owned({.format = kF32, .rows = 1, .cols = 32});
  ASSERT_TRUE(dequantize({.from = from.view(), .to = to.view()}, {.device = &cpu_device()}));
  const auto* words = reinterpret_cast<const std::uint32_t*>(to.data().data());
  for (int i = 0; i < 32; ++i) EXPECT_EQ(words[i], 0x7FC00000u);
}

// Untouched pages of an anonymous mapping take no memory.
class Sparse {
 public:
  explicit Sparse(std::size_t bytes) : bytes_(bytes) {
    start_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~Sparse() {
    if (ok()) munmap(start_, bytes_);
  }
  bool ok() const { return start_ != MAP_FAILED; }
  std::byte* data() const { return static_cast<std::byte*>(start_); }

 private:
  void* start_;
  std::size_t bytes_;
};

TEST(Dequantize, offsets_may_pass_two_to_the_thirty_one) {
  constexpr std::int64_t kStride = (std::int64_t{1} << 31) + 64;
  const Sparse codes(static_cast<std::size_t>(2 * kStride + 4096)), values(static_cast<std::size_t>(2 * kStride + 4096) * 2);
  if (!codes.ok() || !values.ok()) GTEST_SKIP() << "no address space for a sparse mapping";
  const float scales[] = {1, 1, 2};
  Matrix from{.format = kFp8E4m3Row128, .rows = 3, .cols = 100, .row_stride = kStride};
  from.data = codes.data();
  from.scales = reinterpret_cast<const std::byte*>(scales);
  MutableMatrix to{.format = kBf16, .rows = 3, .cols = 100, .row_stride = kStride};
  to.data = values.data();
  for (std::int64_t c = 0; c < 100; ++c) codes.data()[2 * kStride + c] = std::byte{0x38};
  ASSERT_TRUE(dequantize({.from = from, .to = to}, {.device = &cpu_device()}));
  for (std::int64_t c = 0; c < 100; ++c) {
    EXPECT_EQ(element_at(Matrix(to), 0, 2, c), 2.0f);
    EXPECT_EQ(element_at(Matrix(to), 0, 0, c), 0.0f);
  }
}

}  // namespace
}  // namespace finescale::test
