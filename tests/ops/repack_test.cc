// repack: every row against the reference, and the way there and back.
#include "support/layout_sweep.h"

namespace finescale::test {
namespace {

TEST(Repack, every_row_writes_the_reference_bytes) { sweep_repack(cpu_device()); }

TEST(Repack, undoes_itself_between_all_layouts) {
  const Execution execution{.device = &cpu_device()};
  for (const Format& format : block_formats()) {
    for (const Shape& shape : {Shape{2, 17, 33}, Shape{1, 130, 257}}) {
      const OwnedMatrix start = coded_matrix(arranged(format, shape, {}), 9);
      for (const Arrangement& a : arrangements(format, false)) {
        for (const Arrangement& b : arrangements(format, false)) {
          const OwnedMatrix there = detail::owned(arranged(format, shape, a)), further = detail::owned(arranged(format, shape, b)),
                            back = detail::owned(arranged(format, shape, {}));
          ASSERT_TRUE(repack({.from = start.view(), .to = there.view()}, execution));
          ASSERT_TRUE(repack({.from = there.view(), .to = further.view()}, execution));
          ASSERT_TRUE(repack({.from = further.view(), .to = back.view()}, execution));
          SCOPED_TRACE(std::string(format_name(format)) + " " + a.label() + " " + b.label());
          // An odd row ends in a nibble that belongs to nobody: compared as written, not as made up.
          const OwnedMatrix same = detail::owned(arranged(format, shape, {}));
          ASSERT_TRUE(repack({.from = start.view(), .to = same.view()}, execution));
          expect_same(same, back);
        }
      }
      const MutableMatrix view = with_strides(start.view());
      const OwnedMatrix same = detail::owned(arranged(format, shape, {}));
      ASSERT_TRUE(repack({.from = view, .to = same.view()}, execution));
      for (std::int64_t c = 0; c < shape.cols; ++c) {
        EXPECT_EQ(code_at(Matrix(view), 0, shape.rows - 1, c), code_at(with_strides(Matrix(same.view())), 0, shape.rows - 1, c));
      }
    }
  }
}

}  // namespace
}  // namespace finescale::test
