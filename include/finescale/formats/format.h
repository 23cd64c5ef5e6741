// Formats: what the bits of a matrix mean. X[i,j] = decode(code[i,j]) * block_scale[i / block_rows, j / block_cols] * global.
//
// A format is a value; a row of kFormats gives one a name. To add one made of known elements, add a row.
#pragma once

#include <finescale/formats/element.h>

#include <cstdint>
#include <string_view>

namespace finescale {

struct Format {
  Element element = Element::none;  // none: the operand is absent
  Element scale = Element::none;    // none: no block scales
  std::int32_t block_rows = 1, block_cols = 1;
  bool global = false;  // quantizers make a global scale; without it a matrix may still carry one

  bool operator==(const Format&) const = default;
  FINESCALE_HD constexpr bool has_scales() const { return scale != Element::none; }
  // Elements without scales of any kind: f32, f16, bf16.
  FINESCALE_HD constexpr bool is_plain() const { return element == Element::f32 || element == Element::f16 || element == Element::bf16; }
};

inline constexpr Format kF32{Element::f32}, kF16{Element::f16}, kBf16{Element::bf16};
inline constexpr Format kNvfp4{Element::e2m1, Element::e4m3, 1, 16, true};
inline constexpr Format kMxfp4{Element::e2m1, Element::e8m0, 1, 32};
inline constexpr Format kMxfp8E4m3{Element::e4m3, Element::e8m0, 1, 32};
inline constexpr Format kMxfp8E5m2{Element::e5m2, Element::e8m0, 1, 32};
inline constexpr Format kFp8E4m3Row128{Element::e4m3, Element::f32, 1, 128};
inline constexpr Format kFp8E4m3Block128{Element::e4m3, Element::f32, 128, 128};
inline constexpr Format kFp8E4m3Tensor{Element::e4m3, Element::none, 1, 1, true};
inline constexpr Format kFp4Tensor{Element::e2m1, Element::none, 1, 1, true};

struct NamedFormat {
  std::string_view name;
  Format format;
};

// The names are stable for ever.
inline constexpr NamedFormat kFormats[] = {
    {"f32", kF32},
    {"f16", kF16},
    {"bf16", kBf16},
    {"nvfp4", kNvfp4},
    {"mxfp4", kMxfp4},
    {"mxfp8_e4m3", kMxfp8E4m3},
    {"mxfp8_e5m2", kMxfp8E5m2},
    {"fp8_e4m3_1x128", kFp8E4m3Row128},
    {"fp8_e4m3_128x128", kFp8E4m3Block128},
    {"fp8_e4m3_tensor", kFp8E4m3Tensor},
    {"fp4_tensor", kFp4Tensor},
};

// The name of a listed format, or "unnamed".
constexpr std::string_view format_name(const Format& format) {
  for (const NamedFormat& row : kFormats) {
    if (row.format == format) return row.name;
  }
  return "unnamed";
}

// The listed format of that name, or null.
constexpr const Format* find_format(std::string_view name) {
  for (const NamedFormat& row : kFormats) {
    if (row.name == name) return &row.format;
  }
  return nullptr;
}

// Calls visitor.template operator()<kFormat>() with the listed format as a compile-time value: the one way from a
// run-time format to a type. False, and no call, where the format is in no row.
template <int kRow = 0, class Visitor>
constexpr bool visit_format(const Format& format, Visitor&& visitor) {
  if constexpr (kRow == static_cast<int>(sizeof(kFormats) / sizeof(kFormats[0]))) {
    return false;
  } else {
    if (format != kFormats[kRow].format) return visit_format<kRow + 1>(format, visitor);
    visitor.template operator()<kFormats[kRow].format>();
    return true;
  }
}

}  // namespace finescale
