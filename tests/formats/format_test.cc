// The list of formats: the table of docs/formats.md, names that find their format, one way to a type.
#include <finescale/formats/format.h>

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace finescale {
namespace {

TEST(Formats, mean_what_the_table_says) {
  constexpr struct {
    std::string_view name;
    Element element, scale;
    int block_rows, block_cols;
    bool global;
  } kRows[] = {
      {"f32", Element::f32, Element::none, 1, 1, false},
      {"f16", Element::f16, Element::none, 1, 1, false},
      {"bf16", Element::bf16, Element::none, 1, 1, false},
      {"nvfp4", Element::e2m1, Element::e4m3, 1, 16, true},
      {"mxfp4", Element::e2m1, Element::e8m0, 1, 32, false},
      {"mxfp8_e4m3", Element::e4m3, Element::e8m0, 1, 32, false},
      {"mxfp8_e5m2", Element::e5m2, Element::e8m0, 1, 32, false},
      {"fp8_e4m3_1x128", Element::e4m3, Element::f32, 1, 128, false},
      {"fp8_e4m3_128x128", Element::e4m3, Element::f32, 128, 128, false},
      {"fp8_e4m3_tensor", Element::e4m3, Element::none, 1, 1, true},
      {"fp4_tensor", Element::e2m1, Element::none, 1, 1, true},
  };
  for (const auto& row : kRows) {
    const Format* format = find_format(row.name);
    ASSERT_NE(format, nullptr) << row.name;
    EXPECT_EQ(format->element, row.element) << row.name;
    EXPECT_EQ(format->scale, row.scale) << row.name;
    EXPECT_EQ(format->block_rows, row.block_rows) << row.name;
    EXPECT_EQ(format->block_cols, row.block_cols) << row.name;
    EXPECT_EQ(format->global, row.global) << row.name;
    EXPECT_EQ(format->has_scales(), row.scale != Element::none) << row.name;
    EXPECT_EQ(format->is_plain(), row.element != Element::e2m1 && row.element != Element::e4m3 && row.element != Element::e5m2) << row.name;
  }
}

TEST(Formats, are_listed_once) {
  std::set<std::string_view> names;
  for (const NamedFormat& row : kFormats) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(format_name(row.format), row.name);  // fails too where two rows have one value
  }
}

TEST(Formats, unknown_ones_have_no_name) {
  EXPECT_EQ(find_format("nvfp5"), nullptr);
  EXPECT_EQ(format_name(Format{Element::e2m1, Element::e4m3, 1, 64}), "unnamed");
}

TEST(Formats, visit_gives_the_listed_value) {
  for (const NamedFormat& row : kFormats) {
    int calls = 0;
    EXPECT_TRUE(visit_format(row.format, [&]<Format kFormat>() {
      ++calls;
      EXPECT_EQ(kFormat, row.format);
    }));
    EXPECT_EQ(calls, 1);
  }
  EXPECT_FALSE(visit_format(Format{Element::e5m2, Element::e4m3, 1, 8}, []<Format>() { FAIL(); }));
}

}  // namespace
}  // namespace finescale
