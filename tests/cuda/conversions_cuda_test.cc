// Every dequantize, repack and prepare row of a GPU against the reference, byte for byte.
#include "cuda/cuda_test.h"
#include "support/layout_sweep.h"

namespace finescale::test {
namespace {

class ConversionsOnGpu : public CudaTest {};

TEST_F(ConversionsOnGpu, every_dequantize_row_writes_the_reference_bytes) { sweep_dequantize(gpu()); }
TEST_F(ConversionsOnGpu, every_repack_row_writes_the_reference_bytes) { sweep_repack(gpu()); }
TEST_F(ConversionsOnGpu, every_prepare_row_writes_the_reference_bytes) { sweep_prepare(gpu()); }

}  // namespace
}  // namespace finescale::test
