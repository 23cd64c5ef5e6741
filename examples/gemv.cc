// Weights to nvfp4, one product, and its distance from the exact sum in units of the derived bound.
#include <finescale/check.h>
#include <finescale/gemm.h>
#include <finescale/quantize.h>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  using namespace finescale;
  const auto cpu = Device::open("cpu");
  std::vector<float> weights(256 * 512), x(512), y(256);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = std::sin(0.37f * static_cast<float>(i));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(0.11f * static_cast<float>(i));

  MutableMatrix b{.format = kNvfp4, .rows = 256, .cols = 512, .global_kind = GlobalScale::one};
  std::vector<std::byte> codes(storage(b)->data), scales(storage(b)->scales);
  float global = 0;
  b.data = codes.data(), b.scales = scales.data(), b.global = &global;
  const Matrix from{.format = kF32, .rows = 256, .cols = 512, .data = reinterpret_cast<std::byte*>(weights.data())};
  Execution execution{.device = &*cpu};
  if (const Status status = quantize({.from = from, .to = b}, execution); !status) return std::puts(status.sentence.c_str()), 1;

  const GemmProblem product{.a = {.format = kF32, .rows = 1, .cols = 512, .data = reinterpret_cast<std::byte*>(x.data())},
                            .b = b,
                            .d = {.format = kF32, .rows = 1, .cols = 256, .data = reinterpret_cast<std::byte*>(y.data())}};
  const Choice needs = workspace_bound(product, *cpu);
  std::vector<std::byte> scratch(static_cast<std::size_t>(needs.scratch_bytes) + 256);
  execution.workspace.scratch = scratch.data() + (256 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 256);
  execution.workspace.scratch_bytes = needs.scratch_bytes;
  if (const Status status = gemm(product, execution); !status) return std::puts(status.sentence.c_str()), 1;

  const auto report = check(product, product.d);
  std::printf("y[0] = %g, worst error %.3f of the bound over %lld outputs\n", y[0], report->worst, static_cast<long long>(report->outputs));
  return report->ok ? 0 : 1;
}
