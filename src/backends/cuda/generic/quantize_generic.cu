// to = Q(producer(from))                                                     (docs/quantizers.md; formats/block_quantizer.h)
//
// Every format, layout, recipe and producer, in kernels that follow each other on the stream:
//   row_factors     rms_norm only: adds the residual, sums the squares of a row in FP64
//   global_amax     where g is computed: the largest magnitude of each set of rows that share one, gathered in to.global
//   finish_globals  amax -> g, in place
//   quantize_blocks amax, scale and codes of every block
//   decode_globals  profiles that keep g as an encode multiplier: back to a decode multiplier
// The largest of all magnitudes is the same in any order, so atomics keep the bytes repeatable.
#include "backends/cuda/generic/output_generic.h"
#include "backends/cuda/generic/quantize_block_kernel.h"
#include "backends/cuda/generic/rows.h"
#include "backends/cuda/host/launch.h"

namespace finescale::cuda {
namespace {

constexpr const char* kName = "quantize_any_any_generic";
constexpr std::int64_t kAmaxColumns = 1024;  // columns that one warp folds

// A warp a row.
__global__ void __launch_bounds__(kQuantizeThreads) row_factors(const __grid_constant__ QuantizeProblem problem, float* factors) {
  const std::int64_t rows = problem.to.rows, cols = problem.to.cols, items = problem.to.batch * rows;
#pragma unroll 1
  for (std::int64_t item = first_warp_item(); item < items; item += warp_item_step()) {
    const std::int64_t batch = item / rows, row = item % rows;
    double sum = 0;
#pragma unroll 1
    for (std::int64_t col = lane(); col < cols; col += kWarp) {
      if (!problem.producer.residual.absent()) add_residual(problem, batch, row, col);
      const double x = rms_input(problem, batch, row, col);
      sum += x * x;
    }
    for (int step = kWarp / 2; step > 0; step /= 2) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
    if (lane() == 0) factors[item] = rms_factor(sum, cols, problem.producer.eps);
  }
}

// Where the global scale of a row stands in to.global before rows of a segment are joined.
__device__ std::int64_t global_index(const MutableMatrix& to, std::int64_t batch, std::int64_t row) {
  switch (to.global_kind) {
    case GlobalScale::per_batch: return batch;
    case GlobalScale::per_row: return batch * to.rows + row;
    case GlobalScale::none:
    case GlobalScale::one: break;
  }
  return 0;
}

// A tensor-wide format without a NaN code shows an element that is not finite in g: there it must enter the amax.
__device__ bool shows_infinity_in_global(const Format& format) { return !format.has_scales() && format.element == Element::e2m1; }

// A warp a piece of a row; to.global starts as zeros.
__global__ void __launch_bounds__(kQuantizeThreads)
    global_amax_of_rows(const __grid_constant__ QuantizeProblem problem, const __grid_constant__ Produced produced, std::int64_t items) {
  const MutableMatrix& to = problem.to;
  const bool keep_infinity = shows_infinity_in_global(to.format);
#pragma unroll 1
  for (std::int64_t item = first_warp_item(); item < items; item += warp_item_step()) {
    const Position at = position_of(item, to.rows, ceil_div(to.cols, kAmaxColumns));
    const std::int64_t begin = at.col * kAmaxColumns, end = begin + kAmaxColumns < to.cols ? begin + kAmaxColumns : to.cols;
    float amax = 0.0f;
#pragma unroll 1
    for (std::int64_t col = begin + lane(); col < end; col += kWarp) {
      const float x = produced(problem, at.batch, at.row, col);
      amax = keep_infinity ? block_amax(amax, x) : global_amax(amax, x);
    }
    for (int step = kWarp / 2; step > 0; step /= 2) amax = larger_amax(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, step));
    // Magnitudes are not negative: their bits are ordered as they are.
    if (lane() == 0) atomicMax(reinterpret_cast<unsigned*>(to.global + global_index(to, at.batch, at.row)), float_bits(amax));
  }
}

__device__ float global_from_amax(const QuantizeProblem& problem, float amax) {
  const Format& format = problem.to.format;
  if (problem.recipe.profile != Profile::finescale)
    return profile_global(format, problem.recipe.profile, problem.from.format.element, amax);
  return global_scale(format, amax, is_finite(amax));
}

__global__ void __launch_bounds__(kQuantizeThreads) finish_globals(const __grid_constant__ QuantizeProblem problem, std::int64_t count) {
#pragma unroll 1
  for (std::int64_t item = first_item(); item < count; item += item_step()) {
    problem.to.global[item] = global_from_amax(problem, problem.to.global[item]);
  }
}

// Row segments: a warp joins the amax of its rows, then writes g to each. Ends that are not ascending cannot lead out of bounds.
__global__ void __launch_bounds__(kQuantizeThreads) finish_segment_globals(const __grid_constant__ QuantizeProblem problem) {
  const RowSegments& segments = problem.segments;
  const std::int64_t rows = problem.to.rows, items = problem.to.batch * segments.count;
  const auto clamped = [&](std::int64_t end) { return end < 0 ? 0 : end > rows ? rows : end; };
#pragma unroll 1
  for (std::int64_t item = first_warp_item(); item < items; item += warp_item_step()) {
    const std::int64_t segment = item % segments.count;
    const std::int64_t begin = segment == 0 ? 0 : clamped(segments.ends[segment - 1]), end = clamped(segments.ends[segment]);
    float* global = problem.to.global + item / segments.count * rows;
    float amax = 0.0f;
#pragma unroll 1
    for (std::int64_t row = begin + lane(); row < end; row += kWarp) amax = larger_amax(amax, global[row]);
    for (int step = kWarp / 2; step > 0; step /= 2) amax = larger_amax(amax, __shfl_xor_sync(0xFFFFFFFFu, amax, step));
    const float g = global_from_amax(problem, amax);
#pragma unroll 1
    for (std::int64_t row = begin + lane(); row < end; row += kWarp) global[row] = g;
  }
}

__global__ void __launch_bounds__(kQuantizeThreads) decode_globals(const __grid_constant__ QuantizeProblem problem, std::int64_t count) {
#pragma unroll 1
  for (std::int64_t item = first_item(); item < count; item += item_step()) {
    problem.to.global[item] = profile_decode_global(problem.recipe.profile, problem.to.global[item]);
  }
}

Status compute_globals(const QuantizeProblem& problem, const Produced& produced, cudaStream_t stream) {
  const MutableMatrix& to = problem.to;
  const std::int64_t count = global_count(to);
  if (count == 0) return {};
  FINESCALE_TRY(checked(cudaMemsetAsync(to.global, 0, static_cast<std::size_t>(count) * 4, stream), "cudaMemsetAsync"));
  if (const std::int64_t pieces = to.batch * to.rows * ceil_div(to.cols, kAmaxColumns); pieces != 0) {
    FINESCALE_TRY(launch(kName, global_amax_of_rows, grid_for(pieces * kWarp, kQuantizeThreads), kQuantizeThreads, stream, problem,
                         produced, pieces));
  }
  if (to.global_kind == GlobalScale::per_row && problem.segments.count != 0) {
    const std::int64_t threads = to.batch * problem.segments.count * kWarp;
    return launch(kName, finish_segment_globals, grid_for(threads, kQuantizeThreads), kQuantizeThreads, stream, problem);
  }
  return launch(kName, finish_globals, grid_for(count, kQuantizeThreads), kQuantizeThreads, stream, problem, count);
}

Status quantize_all_blocks(const QuantizeProblem& problem, const Produced& produced, const std::int64_t* scale_rows, cudaStream_t stream) {
  const MutableMatrix& to = problem.to;
  if (to.batch * to.rows * to.cols == 0) return {};
  ScaleExtent extent{ceil_div(to.rows, item_rows(to.format)), ceil_div(to.cols, item_cols(to.format))};
  if (to.format.has_scales() && scale_rows == nullptr) extent = padded_scale_extent(to);
  const int team = item_rows(to.format) * item_cols(to.format) <= kLongestForOneThread ? 1 : kWarp;
  const dim3 grid = grid_for(to.batch * extent.rows * extent.cols * team, kQuantizeThreads);
  return launch(kName, quantize_blocks, grid, kQuantizeThreads, stream, problem, produced, scale_rows, extent, team);
}

}  // namespace

Choice configure_quantize_generic(const QuantizeProblem& problem, const DeviceInfo&) {
  if (problem.producer.kind != Producer::rms_norm) return {};
  return {.scratch_bytes = round_up(problem.to.batch * problem.to.rows * 4, 256)};
}

Status quantize_generic(const QuantizeProblem& problem, const Choice&, const Execution& execution) {
  const CurrentDevice device(execution.device->ordinal());
  FINESCALE_TRY(device.status());
  const cudaStream_t stream = stream_of(execution);
  Produced produced;
  if (const std::int64_t rows = problem.to.batch * problem.to.rows; problem.producer.kind == Producer::rms_norm && rows != 0) {
    float* factors = reinterpret_cast<float*>(execution.workspace.scratch);
    FINESCALE_TRY(launch(kName, row_factors, grid_for(rows * kWarp, kQuantizeThreads), kQuantizeThreads, stream, problem, factors));
    produced.factors = factors;
  }
  if (!problem.global_given) FINESCALE_TRY(compute_globals(problem, produced, stream));
  FINESCALE_TRY(quantize_all_blocks(problem, produced, nullptr, stream));
  const std::int64_t count = global_count(problem.to);
  if (problem.global_given || problem.recipe.profile != Profile::compressed_tensors || count == 0) return {};
  return launch(kName, decode_globals, grid_for(count, kQuantizeThreads), kQuantizeThreads, stream, problem, count);
}

Status quantize_output(const MutableMatrix& d, const float* values, const std::int64_t* scale_rows, cudaStream_t stream) {
  QuantizeProblem problem;
  problem.from = with_strides(Matrix{.format = kF32, .batch = d.batch, .rows = d.rows, .cols = d.cols});
  problem.from.data = reinterpret_cast<const std::byte*>(values);
  problem.to = d;
  problem.global_given = true;
  return quantize_all_blocks(problem, {}, scale_rows, stream);
}

}  // namespace finescale::cuda
