// Work goes to the caller's stream: two streams that wait for nothing in common each get the right bytes.
#include "cuda/cuda_test.h"
#include "support/gemm_sweep.h"

namespace finescale::test {
namespace {

class Streams : public CudaTest {};

TEST_F(Streams, two_products_on_two_streams_have_the_bits_of_the_default_stream) {
  struct Product {
    GemmCase c;
    GemmOperands<PlacedMatrix> operands;
    DeviceStream stream;
    DeviceMemory scratch;
  };
  std::vector<Product> products;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    GemmCase c{.a = kBf16, .b = kNvfp4, .d = kMxfp8E4m3, .m = 65, .n = 96, .k = 512};
    c.seed = 10 * seed;
    auto operands = place(gpu(), make_gemm_operands(c, gemm_tags(c), gpu()));
    ASSERT_TRUE(operands) << operands.status().sentence;
    products.push_back({c, *std::move(operands), *DeviceStream::create(gpu()), {}});
  }
  for (Product& product : products) {
    const GemmProblem problem = gemm_problem(gemm_tags(product.c), product.operands, false);
    const auto planned = plan(problem, gpu());
    ASSERT_TRUE(planned) << planned.status().sentence;
    product.scratch = *DeviceMemory::allocate(gpu(), planned->choice.scratch_bytes);
    Execution execution{.device = &gpu(), .stream = product.stream.get()};
    execution.workspace = {.scratch = product.scratch.data(), .scratch_bytes = planned->choice.scratch_bytes};
    const Status status = run(*planned, problem, execution);
    ASSERT_TRUE(status) << status.sentence;
  }
  for (const Product& product : products) {
    ASSERT_TRUE(synchronize(gpu(), product.stream.get()));
    ASSERT_TRUE(product.operands.d.fetch(gpu()));
    const auto* kernel = find_kernel(kernel_tables<GemmProblem>(), "gemm_any_any_any_generic");
    ASSERT_NE(kernel, nullptr);
    const auto expected = run_case(product.c, *kernel, gpu());
    ASSERT_TRUE(expected) << expected.status().sentence;
    expect_same(*expected, product.operands.d.host());
  }
}

}  // namespace
}  // namespace finescale::test
