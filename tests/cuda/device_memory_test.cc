// Memory, streams and timers on the CPU and, where there is one, on a GPU.
#include "ops/device_memory.h"

#include "cuda/cuda_test.h"

#include <cstring>
#include <numeric>

namespace finescale::test {
namespace {

void expect_bytes_survive(const Device& device) {
  std::vector<std::byte> sent(4099), received(sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7);
  const auto bytes = static_cast<std::int64_t>(sent.size());
  const auto memory = DeviceMemory::allocate(device, bytes);
  ASSERT_TRUE(memory) << memory.status().sentence;
  EXPECT_EQ(memory->bytes(), bytes);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 256, 0u);
  ASSERT_TRUE(copy_to_device(device, memory->data(), sent.data(), bytes));
  ASSERT_TRUE(copy_to_host(device, received.data(), memory->data(), bytes));
  EXPECT_EQ(sent, received);
}

void expect_no_bytes_are_fine(const Device& device) {
  const auto memory = DeviceMemory::allocate(device, 0);
  ASSERT_TRUE(memory) << memory.status().sentence;
  EXPECT_TRUE(copy_to_device(device, memory->data(), nullptr, 0));
  EXPECT_TRUE(copy_to_host(device, nullptr, memory->data(), 0));
}

void expect_timer_runs(const Device& device) {
  auto timer = DeviceTimer::create(device);
  ASSERT_TRUE(timer) << timer.status().sentence;
  const auto stream = DeviceStream::create(device);
  ASSERT_TRUE(stream) << stream.status().sentence;
  ASSERT_TRUE(timer->start(stream->get()));
  const auto milliseconds = timer->milliseconds(stream->get());
  ASSERT_TRUE(milliseconds) << milliseconds.status().sentence;
  EXPECT_GE(*milliseconds, 0.0);
  EXPECT_LT(*milliseconds, 10000.0);
  EXPECT_TRUE(synchronize(device, stream->get()));
}

TEST(DeviceMemory, bytes_survive_on_the_cpu) { expect_bytes_survive(*Device::open("cpu")); }
TEST(DeviceMemory, no_bytes_are_fine_on_the_cpu) { expect_no_bytes_are_fine(*Device::open("cpu")); }
TEST(DeviceMemory, a_timer_runs_on_the_cpu) { expect_timer_runs(*Device::open("cpu")); }

class DeviceMemoryOnGpu : public CudaTest {};

TEST_F(DeviceMemoryOnGpu, bytes_survive) { expect_bytes_survive(gpu()); }
TEST_F(DeviceMemoryOnGpu, no_bytes_are_fine) { expect_no_bytes_are_fine(gpu()); }
TEST_F(DeviceMemoryOnGpu, a_timer_runs) { expect_timer_runs(gpu()); }
TEST_F(DeviceMemoryOnGpu, a_stream_is_not_the_default_one) {
  const auto stream = DeviceStream::create(gpu());
  ASSERT_TRUE(stream) << stream.status().sentence;
  EXPECT_NE(stream->get(), nullptr);
}

}  // namespace
}  // namespace finescale::test
