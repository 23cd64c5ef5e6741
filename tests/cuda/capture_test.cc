// Every op can be captured in a graph: nothing is allocated, nothing waits, nothing is read on the host. A captured grouped
// product follows the routing that lies on the device when it is replayed.
#include "cuda/cuda_test.h"
#include "support/grouped_gemm_sweep.h"
#include "support/quantize_sweep.h"

#include <finescale/dequantize.h>
#include <finescale/prepare.h>
#include <finescale/repack.h>

#include <cuda_runtime_api.h>

#include <cstring>

namespace finescale::test {
namespace {

// What a stream did between begin and end, to be replayed.
class Graph {
 public:
  ~Graph() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }

  template <class Enqueue>
  void capture(cudaStream_t stream, const Enqueue& enqueue) {
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
    const Status status = enqueue();
    const cudaError_t ended = cudaStreamEndCapture(stream, &graph_);
    ASSERT_TRUE(status) << status.sentence;
    ASSERT_EQ(ended, cudaSuccess) << cudaGetErrorString(ended);
    ASSERT_EQ(cudaGraphInstantiate(&executable_, graph_, 0), cudaSuccess);
  }

  void replay(cudaStream_t stream) {
    ASSERT_EQ(cudaGraphLaunch(executable_, stream), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  }

 private:
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

class Capture : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    auto made = DeviceStream::create(gpu());
    ASSERT_TRUE(made) << made.status().sentence;
    stream_ = *std::move(made);
  }

  cudaStream_t stream() const { return static_cast<cudaStream_t>(stream_.get()); }

  // Plans, makes room, captures one call, poisons `to` again and replays: the bytes must be those of a direct call.
  template <class Problem>
  void expect_replay_repeats(const Problem& problem, const PlacedMatrix& to) {
    const auto planned = plan(problem, gpu());
    ASSERT_TRUE(planned) << planned.status().sentence;
    const auto scratch = DeviceMemory::allocate(gpu(), planned->choice.scratch_bytes);
    ASSERT_TRUE(scratch);
    Execution execution{.device = &gpu(), .stream = stream()};
    execution.workspace = {.scratch = scratch->data(), .scratch_bytes = planned->choice.scratch_bytes};
    Graph graph;
    graph.capture(stream(), [&] { return run(*planned, problem, execution); });
    if (HasFatalFailure()) return;
    const std::vector<std::byte> captured = bytes_of(to);
    for (const std::byte byte : captured) ASSERT_EQ(byte, std::byte{0xFF}) << "a captured call ran at once";
    graph.replay(stream());
    const std::vector<std::byte> replayed = bytes_of(to);
    const Status status = run(*planned, problem, execution);
    ASSERT_TRUE(status) << status.sentence;
    ASSERT_TRUE(synchronize(gpu(), stream()));
    EXPECT_EQ(replayed, bytes_of(to));
    EXPECT_NE(replayed, captured);
  }

  PlacedMatrix placed(OwnedMatrix host) {
    auto matrix = PlacedMatrix::place(gpu(), std::move(host));
    EXPECT_TRUE(matrix) << matrix.status().sentence;
    return *std::move(matrix);
  }

 private:
  std::vector<std::byte> bytes_of(const PlacedMatrix& matrix) {
    EXPECT_TRUE(matrix.fetch(gpu()));
    const GuardedBuffer& data = matrix.host().data();
    return {data.data(), data.data() + data.bytes()};
  }

  DeviceStream stream_;
};

TEST_F(Capture, quantize_with_a_computed_global_and_a_producer) {
  const PlacedMatrix from = placed(*random_matrix({.format = kBf16, .rows = 33, .cols = 96}, 1));
  const PlacedMatrix to = placed(detail::owned({.format = kNvfp4, .rows = 33, .cols = 96, .global_kind = GlobalScale::one}));
  QuantizeProblem problem{.from = from.view(), .to = to.view()};
  problem.producer.kind = Producer::rms_norm;
  expect_replay_repeats(problem, to);
}

TEST_F(Capture, dequantize_repack_and_prepare) {
  const Matrix tags{.format = kNvfp4, .rows = 20, .cols = 64};
  const PlacedMatrix from = placed(*random_matrix(tags, 1));
  const PlacedMatrix values = placed(detail::owned({.format = kBf16, .rows = 20, .cols = 64}));
  expect_replay_repeats(DequantizeProblem{.from = from.view(), .to = values.view()}, values);
  Matrix tiled = tags;
  tiled.scale_layout = ScaleLayout::scale_128x4;
  const PlacedMatrix repacked = placed(detail::owned(tiled));
  expect_replay_repeats(RepackProblem{.from = from.view(), .to = repacked.view()}, repacked);
  const auto prepared_tags = prepared_like(tags, gpu(), "panel16_v1");
  ASSERT_TRUE(prepared_tags) << prepared_tags.status().sentence;
  const PlacedMatrix prepared = placed(detail::owned(*prepared_tags));
  expect_replay_repeats(PrepareProblem{.from = from.view(), .to = prepared.view()}, prepared);
}

TEST_F(Capture, gemm_with_a_plain_and_a_block_output) {
  const PlacedMatrix a = placed(*random_matrix({.format = kBf16, .rows = 18, .cols = 80}, 1));
  const PlacedMatrix b = placed(*random_matrix({.format = kMxfp4, .rows = 40, .cols = 80}, 2));
  for (const Format& format : {kBf16, kMxfp8E4m3}) {
    const PlacedMatrix d = placed(detail::owned({.format = format, .rows = 18, .cols = 40}));
    expect_replay_repeats(GemmProblem{.a = a.view(), .b = b.view(), .d = d.view()}, d);
  }
}

TEST_F(Capture, a_replayed_grouped_product_follows_a_changing_routing) {
  const GroupedCase c{.gemm = {.a = kNvfp4, .b = kNvfp4, .d = kBf16, .n = 33, .k = 64}, .sizes = {6, 0, 11, 3}, .tail = 5};
  const GroupedGemmProblem tags = grouped_tags(c);
  auto host = make_grouped_operands(c, tags, gpu());
  auto operands = place(gpu(), make_grouped_operands(c, tags, gpu()));
  ASSERT_TRUE(operands) << operands.status().sentence;
  const GroupedGemmProblem problem = grouped_problem(tags, *operands);
  const auto planned = plan(problem, gpu());
  ASSERT_TRUE(planned) << planned.status().sentence;
  Graph graph;
  graph.capture(stream(), [&] { return run(*planned, problem, {.device = &gpu(), .stream = stream()}); });
  ASSERT_FALSE(HasFatalFailure());
  for (const std::vector<std::int32_t>& ends :
       {std::vector<std::int32_t>{6, 6, 17, 20}, {0, 0, 0, 25}, {25, 25, 25, 25}, {1, 2, 3, 4}, {0, 0, 0, 0}}) {
    std::memcpy(host.index.data(), ends.data(), ends.size() * 4);
    ASSERT_TRUE(copy_to_device(gpu(), operands->index.data(), host.index.data(), host.index.bytes()));
    graph.replay(stream());
    ASSERT_TRUE(operands->gemm.d.fetch(gpu()));
    EXPECT_TRUE(within_bound(grouped_problem(tags, host), operands->gemm.d.host().view(), planned->kernel->adds(with_strides(problem))));
  }
}

}  // namespace
}  // namespace finescale::test
