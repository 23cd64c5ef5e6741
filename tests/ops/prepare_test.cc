// prepare: every row against the reference, prepared_like, and the way back.
#include "support/layout_sweep.h"

#include <gmock/gmock.h>

namespace finescale::test {
namespace {

using testing::HasSubstr;

TEST(Prepare, every_row_writes_the_reference_bytes) { sweep_prepare(cpu_device()); }

TEST(Prepare, repacking_gives_the_codes_back) {
  const Execution execution{.device = &cpu_device()};
  for (const Format& format : block_formats()) {
    for (const Shape& shape : kLayoutShapes) {
      SCOPED_TRACE(std::string(format_name(format)) + " " + std::to_string(shape.rows) + "x" + std::to_string(shape.cols));
      const OwnedMatrix start = coded_matrix(arranged(format, shape, {}), 4);
      const auto like = prepared_like(start.view(), cpu_device());
      ASSERT_TRUE(like) << like.status().sentence;
      const OwnedMatrix prepared = detail::owned(*like), back = detail::owned(arranged(format, shape, {})),
                        same = detail::owned(arranged(format, shape, {}));
      const Status status = prepare({.from = start.view(), .to = prepared.view()}, execution);
      ASSERT_TRUE(status) << status.sentence;
      ASSERT_TRUE(repack({.from = prepared.view(), .to = back.view()}, execution));
      ASSERT_TRUE(repack({.from = start.view(), .to = same.view()}, execution));
      expect_same(same, back);
      EXPECT_TRUE(prepared.guards_intact());
    }
  }
}

TEST(Prepare, a_broadcast_batch_is_prepared_once) {
  Matrix tags = arranged(kNvfp4, {3, 20, 40}, {});
  tags.batch_stride = 0;
  tags.scale_batch_stride = 0;
  const OwnedMatrix start = coded_matrix(tags, 4);
  const auto like = prepared_like(start.view(), cpu_device());
  ASSERT_TRUE(like);
  const auto bytes = storage(*like), one = storage(*prepared_like(coded_matrix(arranged(kNvfp4, {1, 20, 40}, {}), 4).view(), cpu_device()));
  ASSERT_TRUE(bytes && one);
  EXPECT_EQ(bytes->data, one->data);
  const OwnedMatrix prepared = detail::owned(*like);
  ASSERT_TRUE(prepare({.from = start.view(), .to = prepared.view()}, {.device = &cpu_device()}));
  EXPECT_TRUE(prepared.guards_intact());
  EXPECT_EQ(code_at(with_strides(Matrix(prepared.view())), 2, 19, 39), code_at(with_strides(Matrix(start.view())), 0, 19, 39));
}

TEST(Prepare, prepared_like_takes_a_layout_by_name_and_keeps_the_globals) {
  float g = 2;
  Matrix from{.format = kNvfp4, .rows = 16, .cols = 64};
  from.global_kind = GlobalScale::one;
  from.global = &g;
  const auto like = prepared_like(from, cpu_device(), "panel16_v1");
  ASSERT_TRUE(like);
  EXPECT_EQ(layout_name(like->codes), "panel16_v1");
  EXPECT_EQ(like->global, &g);
  EXPECT_EQ(like->data, nullptr);
  EXPECT_EQ(storage(*like)->data, 576);
}

TEST(Prepare, prepared_like_refuses_with_a_sentence) {
  const auto unknown = prepared_like({.format = kNvfp4, .rows = 16, .cols = 64}, cpu_device(), "panel17");
  EXPECT_EQ(unknown.status().code, Code::invalid_argument);
  EXPECT_THAT(unknown.status().sentence, HasSubstr("panel16_v1"));
  const auto plain = prepared_like({.format = kBf16, .rows = 16, .cols = 64}, cpu_device());
  EXPECT_EQ(plain.status().code, Code::unsupported);
  EXPECT_THAT(plain.status().sentence, HasSubstr("bf16"));
}

}  // namespace
}  // namespace finescale::test
