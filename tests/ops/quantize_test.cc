// Every quantize row of the CPU against the reference, byte for byte.
#include "support/quantize_sweep.h"

namespace finescale::test {
namespace {

TEST(Quantize, every_row_writes_the_reference_bytes_for_every_shape) { sweep_quantize(cpu_device(), shape_cases()); }
TEST(Quantize, every_row_writes_the_reference_bytes_for_batches_gaps_and_segments) { sweep_quantize(cpu_device(), layout_cases()); }
TEST(Quantize, every_row_writes_the_reference_bytes_for_every_recipe) { sweep_quantize(cpu_device(), recipe_cases()); }
TEST(Quantize, every_row_writes_the_reference_bytes_for_every_producer) { sweep_quantize(cpu_device(), producer_cases()); }

}  // namespace
}  // namespace finescale::test
