// Every quantize row of a GPU against the reference, byte for byte.
#include "cuda/cuda_test.h"
#include "support/quantize_golden.h"
#include "support/quantize_sweep.h"

namespace finescale::test {
namespace {

class QuantizeOnGpu : public CudaTest {};

TEST_F(QuantizeOnGpu, every_row_writes_the_reference_bytes_for_every_shape) { sweep_quantize(gpu(), sampled(shape_cases())); }
TEST_F(QuantizeOnGpu, every_row_writes_the_reference_bytes_for_batches_gaps_and_segments) {
  sweep_quantize(gpu(), sampled(layout_cases()));
}
TEST_F(QuantizeOnGpu, every_row_writes_the_reference_bytes_for_every_recipe) { sweep_quantize(gpu(), sampled(recipe_cases())); }
TEST_F(QuantizeOnGpu, every_row_writes_the_reference_bytes_for_every_producer) { sweep_quantize(gpu(), sampled(producer_cases())); }
TEST_F(QuantizeOnGpu, every_row_writes_the_golden_bytes) { check_golden(gpu()); }

TEST_F(QuantizeOnGpu, a_model_sized_matrix_has_the_reference_bytes) {
  SweepReport report;
  for (const Format& format : {kNvfp4, kMxfp8E4m3, kFp8E4m3Block128}) {
    QuantizeCase c{.from = kBf16, .to = format, .rows = 257, .cols = 7168};
    c.global = usual_global(format);
    if (takes_layout(format, ScaleLayout::scale_128x4)) c.scales = ScaleLayout::scale_128x4;
    expect_rows_write_reference_bytes(c, gpu(), report);
  }
  report.finish();
}

// A device cannot refuse a given global scale that it alone knows: the scales show it.
TEST_F(QuantizeOnGpu, a_bad_given_global_makes_every_scale_nan) {
  for (const float bad : {0.0f, -1.0f, 0x1p-127f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    auto from = random_matrix({.format = kBf16, .rows = 3, .cols = 40}, 1);
    auto to = OwnedMatrix::make({.format = kNvfp4, .rows = 3, .cols = 40, .global_kind = GlobalScale::one});
    ASSERT_TRUE(from && to);
    to->view().global[0] = bad;
    const auto placed_from = PlacedMatrix::place(gpu(), *std::move(from));
    const auto placed_to = PlacedMatrix::place(gpu(), *std::move(to));
    ASSERT_TRUE(placed_from && placed_to);
    const Status status = quantize({.from = placed_from->view(), .to = placed_to->view(), .global_given = true}, {.device = &gpu()});
    ASSERT_TRUE(status) << status.sentence;
    ASSERT_TRUE(placed_to->fetch(gpu()));
    const GuardedBuffer& scales = placed_to->host().scales();
    for (std::int64_t i = 0; i < scales.bytes(); ++i) EXPECT_EQ(scales.data()[i], std::byte{0x7F}) << "g = " << bad << ", scale " << i;
  }
}

}  // namespace
}  // namespace finescale::test
