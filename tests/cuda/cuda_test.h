// What the tests on a GPU share: the device, or a skip with the reason why there is none.
#pragma once

#include <finescale/device.h>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace finescale::test {

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Device::open("cuda:0");
    if (!opened) GTEST_SKIP() << opened.status().sentence;
    device_ = *std::move(opened);
  }

  const Device& gpu() const { return *device_; }

 private:
  std::optional<Device> device_;
};

// Every n-th case where FINESCALE_TEST_EVERY = n: under a memory checker a whole sweep takes too long.
template <class Case>
std::vector<Case> sampled(const std::vector<Case>& cases) {
  const char* every = std::getenv("FINESCALE_TEST_EVERY");
  const std::size_t step = every != nullptr && std::atoi(every) > 1 ? static_cast<std::size_t>(std::atoi(every)) : 1;
  std::vector<Case> kept;
  for (std::size_t i = 0; i < cases.size(); i += step) kept.push_back(cases[i]);
  return kept;
}

}  // namespace finescale::test
