#include "check/operands.h"

#include <finescale/access.h>

#include <algorithm>
#include <cmath>

namespace finescale {
namespace {

// Streams of one seed, so that codes, scales and globals are independent.
enum class Stream : std::uint64_t { codes, scales, globals };

class Random {
 public:
  Random(std::uint64_t seed, Stream stream) : seed_(seed * 4 + static_cast<std::uint64_t>(stream)) {}

  std::uint64_t below(std::uint64_t bound) { return hash_bits(seed_, index_++) % bound; }
  double unit() { return hash_unit(seed_, index_++); }
  // Sum of twelve uniforms minus six: deviation 1, no library function whose last bit may differ.
  double bell() {
    double sum = -6;
    for (int term = 0; term < 12; ++term) sum += unit();
    return sum;
  }
  double significand() { return 1 + unit(); }

 private:
  std::uint64_t seed_, index_ = 0;
};

std::uint32_t random_code(Random& random, Element element, Values values) {
  const std::uint64_t sign = random.below(2);
  switch (element) {
    case Element::e2m1: return static_cast<std::uint32_t>(sign << 3 | random.below(8));
    case Element::e4m3: return static_cast<std::uint32_t>(sign << 7 | random.below(E4M3::kMax + 1));
    case Element::e5m2: return static_cast<std::uint32_t>(sign << 7 | random.below(E5M2::kMax + 1));
    default: break;
  }
  const double usual = random.bell();
  const double wide = std::ldexp(sign != 0 ? -random.significand() : random.significand(), static_cast<int>(random.below(41)) - 20);
  return encode(element, static_cast<float>(values == Values::usual ? usual : wide));
}

std::uint32_t random_scale(Random& random, Element element, Values values) {
  const bool usual = values == Values::usual;
  switch (element) {
    case Element::e4m3: return static_cast<std::uint32_t>(usual ? 0x28 + random.below(0x20) : random.below(E4M3::kMax + 1));
    case Element::e8m0: return static_cast<std::uint32_t>(usual ? 120 + random.below(12) : 107 + random.below(41));
    default:
      return encode(element, static_cast<float>(std::ldexp(random.significand(), usual ? -6 : static_cast<int>(random.below(41)) - 20)));
  }
}

}  // namespace

void fill_random(const MutableMatrix& given, std::uint64_t seed, Values values, std::span<const std::int64_t> padded_rows) {
  const MutableMatrix m = with_strides(given);
  Random codes(seed, Stream::codes), scales(seed, Stream::scales), globals(seed, Stream::globals);
  for (std::int64_t b = 0; b < m.batch; ++b) {
    for (std::int64_t r = 0; r < m.rows; ++r) {
      for (std::int64_t c = 0; c < m.cols; ++c) set_code(m, b, r, c, random_code(codes, m.format.element, values));
    }
    if (!m.format.has_scales()) continue;
    for (std::int64_t r = 0; r < m.rows; r += m.format.block_rows) {
      for (std::int64_t c = 0; c < m.cols; c += m.format.block_cols) {
        const std::uint32_t code = random_scale(scales, m.format.scale, values);
        // A prepared layout repeats the scale for each row of a block.
        const std::int64_t copies = is_prepared(m.codes) ? std::min<std::int64_t>(m.format.block_rows, m.rows - r) : 1;
        for (std::int64_t i = 0; i < copies; ++i) {
          set_scale_code(m, b, padded_rows.empty() ? r + i : padded_rows[static_cast<std::size_t>(r)], c, code);
        }
      }
    }
  }
  for (std::int64_t i = 0; i < global_count(m); ++i) m.global[i] = static_cast<float>(std::ldexp(globals.significand(), -7));
}

Result<OwnedMatrix> random_matrix(const Matrix& tags, std::uint64_t seed, Values values) {
  auto matrix = OwnedMatrix::make(tags);
  FINESCALE_TRY(matrix);
  fill_random(matrix->view(), seed, values);
  return matrix;
}

}  // namespace finescale
