// Opening a GPU: the facts, the errors, and the caller's current device left alone.
#include "cuda/cuda_test.h"

#include "check/operands.h"
#include "support/placed_matrix.h"

#include <finescale/dequantize.h>

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <cstring>

namespace finescale::test {
namespace {

using testing::HasSubstr;

TEST(OpenDevice, without_a_gpu_the_error_names_the_cuda_call) {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) GTEST_SKIP() << "this machine has a GPU";
  const auto device = Device::open("cuda:0");
  ASSERT_FALSE(device);
  EXPECT_EQ(device.status().code, Code::device_error);
  EXPECT_THAT(device.status().sentence, HasSubstr("cudaGetDeviceCount"));
}

class OpenDeviceOnGpu : public CudaTest {};

TEST_F(OpenDeviceOnGpu, reads_the_facts_of_the_chip) {
  EXPECT_EQ(gpu().name(), "cuda:0");
  EXPECT_EQ(gpu().info().kind, DeviceKind::cuda);
  EXPECT_GE(gpu().info().capability, 80);
  EXPECT_GT(gpu().info().multiprocessors, 0);
  EXPECT_GE(gpu().info().shared_bytes, 48 * 1024);
  EXPECT_FALSE(gpu().model().empty());
}

TEST_F(OpenDeviceOnGpu, a_gpu_that_is_not_there_is_an_error) {
  const auto device = Device::open("cuda:1000");
  ASSERT_FALSE(device);
  EXPECT_EQ(device.status().code, Code::device_error);
  EXPECT_THAT(device.status().sentence, HasSubstr("cuda:1000"));
}

TEST_F(OpenDeviceOnGpu, a_failing_call_reports_its_name_and_the_reason) {
  const auto memory = DeviceMemory::allocate(gpu(), std::int64_t{1} << 50);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.status().code, Code::out_of_memory);
  EXPECT_THAT(memory.status().sentence, HasSubstr("cudaMalloc"));
}

TEST_F(OpenDeviceOnGpu, ops_run_on_their_device_and_leave_the_current_one) {
  int count = 0;
  ASSERT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  if (count < 2) GTEST_SKIP() << "needs two GPUs, this machine has " << count;
  const auto second = Device::open("cuda:1");
  ASSERT_TRUE(second) << second.status().sentence;
  auto host = random_matrix({.format = kNvfp4, .rows = 7, .cols = 40}, 1);
  ASSERT_TRUE(host);
  const OwnedMatrix expected = *OwnedMatrix::make({.format = kF32, .rows = 7, .cols = 40});
  const Device cpu = *Device::open("cpu");
  ASSERT_TRUE(dequantize({.from = host->view(), .to = expected.view()}, {.device = &cpu}));
  const auto from = PlacedMatrix::place(*second, *std::move(host));
  const auto to = PlacedMatrix::place(*second, *OwnedMatrix::make({.format = kF32, .rows = 7, .cols = 40}));
  ASSERT_TRUE(from && to);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  const Status status = dequantize({.from = from->view(), .to = to->view()}, {.device = &*second});
  ASSERT_TRUE(status) << status.sentence;
  int current = -1;
  ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 0);
  ASSERT_TRUE(to->fetch(*second));
  EXPECT_EQ(std::memcmp(expected.data().data(), to->host().data().data(), static_cast<std::size_t>(expected.data().bytes())), 0);
}

}  // namespace
}  // namespace finescale::test
