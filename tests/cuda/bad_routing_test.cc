// Bad routing on a GPU, which cannot ask first: a bad id or gather entry makes its own row NaN, a bad offset or count makes
// every row NaN, and nothing is read or written out of bounds (docs/products.md).
#include "cuda/cuda_test.h"
#include "support/grouped_gemm_sweep.h"

#include <climits>

namespace finescale::test {
namespace {

class BadRouting : public CudaTest {
 protected:
  // D of the case under this routing.
  OwnedMatrix run_with(const GroupedCase& c, const RoutingArrays& arrays) {
    const GroupedGemmProblem tags = grouped_tags(c);
    auto placed = place(gpu(), make_grouped_operands(c, tags, gpu()));
    EXPECT_TRUE(placed) << placed.status().sentence;
    const GroupedGemmProblem problem = grouped_problem(tags, *placed);
    overwrite(placed->index, arrays.index);
    overwrite(placed->gather, arrays.gather);
    const auto planned = plan(problem, gpu());
    EXPECT_TRUE(planned) << planned.status().sentence;
    const Status status = run_kernel(*planned->kernel, problem, gpu());
    EXPECT_TRUE(status) << status.sentence;
    EXPECT_TRUE(placed->gemm.d.fetch(gpu()));
    EXPECT_TRUE(placed->gemm.d.host().guards_intact());
    return std::move(placed->gemm.d).release();
  }

  void expect_every_output_nan(const GroupedCase& c, const RoutingArrays& arrays) {
    const OwnedMatrix d = run_with(c, arrays);
    const Matrix m = with_strides(Matrix(d.view()));
    for (std::int64_t b = 0; b < m.batch; ++b) {
      for (std::int64_t r = 0; r < m.rows; ++r) {
        for (std::int64_t n = 0; n < m.cols; ++n) {
          ASSERT_TRUE(is_nan(element_at(m, b, r, n) * block_scale_at(m, b, r, n))) << "batch " << b << ", row " << r << ", column " << n;
        }
      }
    }
  }

 private:
  void overwrite(const PlacedArray& array, const std::vector<std::int32_t>& values) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(std::int32_t));
    if (bytes == 0) return;
    EXPECT_TRUE(copy_to_device(gpu(), array.data(), reinterpret_cast<const std::byte*>(values.data()), bytes));
  }
};

// The rows of `bad` are NaN, the others as they are under good routing.
void expect_only_rows_nan(const OwnedMatrix& good, const OwnedMatrix& actual, const std::vector<std::int64_t>& bad) {
  const Matrix expected = with_strides(Matrix(good.view())), m = with_strides(Matrix(actual.view()));
  for (std::int64_t r = 0; r < m.rows; ++r) {
    const bool is_bad = std::find(bad.begin(), bad.end(), r) != bad.end();
    for (std::int64_t n = 0; n < m.cols; ++n) {
      if (is_bad) {
        ASSERT_TRUE(is_nan(element_at(m, 0, r, n))) << "row " << r << ", column " << n;
      } else {
        ASSERT_EQ(code_at(m, 0, r, n), code_at(expected, 0, r, n)) << "row " << r << ", column " << n;
      }
    }
  }
}

constexpr GemmCase kProduct{.a = kBf16, .b = kNvfp4, .d = kF32, .n = 70, .k = 48};

TEST_F(BadRouting, a_bad_id_makes_its_own_row_nan) {
  const GroupedCase c{.gemm = kProduct, .kind = Routing::Kind::row_groups, .sizes = {14, 0, 9}, .tail = 2};
  const RoutingArrays good = routing_arrays(c);
  RoutingArrays bad = good;
  bad.index[1] = 3;
  bad.index[15] = -2;
  bad.index[16] = INT_MAX;
  bad.index[22] = INT_MIN;
  expect_only_rows_nan(run_with(c, good), run_with(c, bad), {1, 15, 16, 22});
}

TEST_F(BadRouting, a_bad_gather_entry_makes_its_own_row_nan) {
  const GroupedCase c{.gemm = kProduct, .kind = Routing::Kind::end_offsets, .sizes = {5, 4}, .tail = 2, .tokens = 6};
  const RoutingArrays good = routing_arrays(c);
  RoutingArrays bad = good;
  bad.gather[0] = 6;
  bad.gather[3] = -1;
  bad.gather[8] = INT_MAX;
  bad.gather[10] = INT_MIN;  // of no group: never read
  expect_only_rows_nan(run_with(c, good), run_with(c, bad), {0, 3, 8});
}

TEST_F(BadRouting, bad_offsets_make_every_row_nan) {
  const GroupedCase ends{.gemm = kProduct, .kind = Routing::Kind::end_offsets, .sizes = {4, 3, 20}, .tail = 2};
  for (const std::vector<std::int32_t>& index :
       {std::vector<std::int32_t>{7, 4, 27}, {-1, 7, 27}, {4, 7, 30}, {4, INT_MAX, 27}, {INT_MIN, 7, 27}}) {
    RoutingArrays arrays = routing_arrays(ends);
    arrays.index = index;
    expect_every_output_nan(ends, arrays);
  }
  GroupedCase from_zero = ends;
  from_zero.kind = Routing::Kind::offsets_from_zero;
  for (const std::vector<std::int32_t>& index : {std::vector<std::int32_t>{1, 4, 7, 27}, {0, 7, 4, 27}, {0, 4, 7, 30}}) {
    RoutingArrays arrays = routing_arrays(from_zero);
    arrays.index = index;
    expect_every_output_nan(from_zero, arrays);
  }
}

TEST_F(BadRouting, bad_counts_make_every_row_nan) {
  const GroupedCase c{.gemm = kProduct, .kind = Routing::Kind::counts, .sizes = {4, 3, 20}, .tail = 2};
  for (const std::vector<std::int32_t>& index : {std::vector<std::int32_t>{4, -1, 20}, {4, 3, 23}, {INT_MAX, 3, 20}}) {
    RoutingArrays arrays = routing_arrays(c);
    arrays.index = index;
    expect_every_output_nan(c, arrays);
  }
}

TEST_F(BadRouting, bad_offsets_make_every_sum_nan) {
  GroupedCase c{.gemm = kProduct, .kind = Routing::Kind::end_offsets, .sizes = {4, 3}, .tail = 1, .tokens = 3, .summed = true};
  c.weighted = true;
  RoutingArrays arrays = routing_arrays(c);
  arrays.index = {4, 100};
  expect_every_output_nan(c, arrays);
}

TEST_F(BadRouting, a_bad_id_makes_the_sum_of_its_token_nan) {
  const GroupedCase c{.gemm = kProduct, .kind = Routing::Kind::row_groups, .sizes = {6, 5}, .tokens = 4, .summed = true};
  const RoutingArrays good = routing_arrays(c);
  RoutingArrays bad = good;
  bad.index[2] = 9;
  expect_only_rows_nan(run_with(c, good), run_with(c, bad), {good.gather[2]});
}

TEST_F(BadRouting, bad_offsets_make_every_block_scale_nan) {
  GroupedCase c{.gemm = kProduct, .kind = Routing::Kind::end_offsets, .sizes = {4, 3, 20}, .tail = 2};
  c.gemm.d = kNvfp4;
  c.gemm.d_global = GlobalScale::one;
  RoutingArrays arrays = routing_arrays(c);
  arrays.index = {7, 4, 27};
  expect_every_output_nan(c, arrays);
  c.gemm.d_scales = ScaleLayout::scale_128x4_per_group;
  const OwnedMatrix d = run_with(c, arrays);
  const GuardedBuffer& scales = d.scales();
  for (std::int64_t i = 0; i < scales.bytes(); ++i) ASSERT_EQ(scales.data()[i], std::byte{0x7F}) << "scale byte " << i;
}

}  // namespace
}  // namespace finescale::test
