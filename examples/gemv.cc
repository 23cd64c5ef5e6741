// Weights to nvfp4, one product, and its distance from the exact sum in units of the derived bound.
#include <finescale/check.h>
#include <finescale/gemm.h>
#include <finescale/quantize.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

int main() {
  using namespace finescale;
  std::vector<float> weights(256 * 512), x(512), y(256), global(1);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = std::sin(0.37f * static_cast<float>(i));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(0.11f * static_cast<float>(i));
  const auto bytes = [](auto& values) { return reinterpret_cast<std::byte*>(values.data()); };

  MutableMatrix b{.format = kNvfp4, .rows = 256, .cols = 512, .global_kind = GlobalScale::one, .global = global.data()};
  std::vector<std::byte> codes(storage(b)->data), scales(storage(b)->scales);
  b.data = codes.data(), b.scales = scales.data();
  const auto cpu = Device::open("cpu");
  Status status = quantize({.from = {.format = kF32, .rows = 256, .cols = 512, .data = bytes(weights)}, .to = b}, {.device = &*cpu});
  if (!status) return std::puts(status.sentence.c_str()), 1;

  const GemmProblem product{.a = {.format = kF32, .rows = 1, .cols = 512, .data = bytes(x)},
                            .b = b,
                            .d = {.format = kF32, .rows = 1, .cols = 256, .data = bytes(y)}};
  const std::int64_t needs = round_up(workspace_bound(product, *cpu).scratch_bytes, 256);
  const auto scratch = static_cast<std::byte*>(std::aligned_alloc(256, static_cast<std::size_t>(needs)));
  status = gemm(product, {.device = &*cpu, .workspace = {.scratch = scratch, .scratch_bytes = needs}});
  std::free(scratch);
  if (!status) return std::puts(status.sentence.c_str()), 1;
  const auto report = check(product, product.d);
  std::printf("y[0] = %g, worst error %.3f of the bound\n", y[0], report->worst);
  return report->ok ? 0 : 1;
}
