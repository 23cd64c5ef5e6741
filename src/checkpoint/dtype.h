// Element types of a safetensors file: the names of its header, the width of each, and the Element it is, where it is one.
#pragma once

#include <finescale/formats/element.h>

#include <cstdint>
#include <string_view>

namespace finescale::checkpoint {

enum class Dtype : std::uint8_t {
  boolean,
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  u64,
  i64,
  f4,
  f6_e2m3,
  f6_e3m2,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  f16,
  bf16,
  f32,
  f64,
  c64,
};

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  int bits;
  Element element;  // none: no op reads it
};

// In the order of the enum. F4 is E2M1, two to a byte.
inline constexpr DtypeRow kDtypes[] = {
    {Dtype::boolean, "BOOL", 8, Element::none},
    {Dtype::u8, "U8", 8, Element::none},
    {Dtype::i8, "I8", 8, Element::none},
    {Dtype::u16, "U16", 16, Element::none},
    {Dtype::i16, "I16", 16, Element::none},
    {Dtype::u32, "U32", 32, Element::none},
    {Dtype::i32, "I32", 32, Element::none},
    {Dtype::u64, "U64", 64, Element::none},
    {Dtype::i64, "I64", 64, Element::none},
    {Dtype::f4, "F4", 4, Element::e2m1},
    {Dtype::f6_e2m3, "F6_E2M3", 6, Element::none},
    {Dtype::f6_e3m2, "F6_E3M2", 6, Element::none},
    {Dtype::f8_e4m3, "F8_E4M3", 8, Element::e4m3},
    {Dtype::f8_e5m2, "F8_E5M2", 8, Element::e5m2},
    {Dtype::f8_e8m0, "F8_E8M0", 8, Element::e8m0},
    {Dtype::f8_e4m3fnuz, "F8_E4M3FNUZ", 8, Element::none},
    {Dtype::f8_e5m2fnuz, "F8_E5M2FNUZ", 8, Element::none},
    {Dtype::f16, "F16", 16, Element::f16},
    {Dtype::bf16, "BF16", 16, Element::bf16},
    {Dtype::f32, "F32", 32, Element::f32},
    {Dtype::f64, "F64", 64, Element::none},
    {Dtype::c64, "C64", 64, Element::none},
};

constexpr bool dtypes_are_in_order() {
  for (std::size_t i = 0; i < std::size(kDtypes); ++i) {
    if (static_cast<std::size_t>(kDtypes[i].dtype) != i) return false;
  }
  return true;
}
static_assert(dtypes_are_in_order());

constexpr const DtypeRow& row_of(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)]; }
constexpr std::string_view dtype_name(Dtype dtype) { return row_of(dtype).name; }
constexpr int bits(Dtype dtype) { return row_of(dtype).bits; }
constexpr Element element_of(Dtype dtype) { return row_of(dtype).element; }

// f32, f16, bf16: what quantize reads and dequantize writes.
constexpr bool is_plain(Dtype dtype) { return dtype == Dtype::f32 || dtype == Dtype::f16 || dtype == Dtype::bf16; }

// The dtype of that name, or null.
constexpr const DtypeRow* find_dtype(std::string_view name) {
  for (const DtypeRow& row : kDtypes) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace finescale::checkpoint
