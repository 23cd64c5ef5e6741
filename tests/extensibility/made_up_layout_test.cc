// A prepared layout that is not in the library: a struct with maps joins a list, and the list finds it by its id.
#include <finescale/layouts/layout.h>

#include <gtest/gtest.h>

#include <string>

namespace finescale::test {
namespace {

// Codes column by column.
struct ByColumns {
  static constexpr std::uint32_t kId = 4096;
  static constexpr std::string_view kName = "by_columns_v1";

  FINESCALE_HD static constexpr bool supports(const Format& format) { return bits(format.element) == 8 && !format.has_scales(); }
  FINESCALE_HD static constexpr std::int64_t bytes(const Format&, std::int64_t rows, std::int64_t cols) { return rows * cols; }
  FINESCALE_HD static constexpr std::int64_t code_index(const Format&, std::int64_t, std::int64_t row, std::int64_t col) {
    return col * 100 + row;
  }
  FINESCALE_HD static constexpr std::int64_t scale_byte(const Format&, std::int64_t, std::int64_t, std::int64_t) { return 0; }
};

using Layouts = LayoutList<Panel16, ByColumns>;

TEST(MadeUpLayout, is_found_by_its_id) {
  std::int64_t index = 0;
  EXPECT_TRUE(Layouts::visit(static_cast<CodeLayout>(4096), [&](auto layout) { index = layout.code_index(kFp8E4m3Tensor, 8, 3, 2); }));
  EXPECT_EQ(index, 203);
  EXPECT_FALSE(Layouts::visit(static_cast<CodeLayout>(4097), [](auto) {}));
  std::string names;
  Layouts::for_each([&](auto layout) { names.append(layout.kName).append(" "); });
  EXPECT_EQ(names, "panel16_v1 by_columns_v1 ");
}

}  // namespace
}  // namespace finescale::test
