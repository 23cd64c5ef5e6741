#include "op_operands.h"

#include "checkpoint_weights.h"

#include "check/operands.h"

#include <finescale/access.h>
#include <finescale/routing.h>

#include <algorithm>
#include <cmath>

namespace finescale::tools {
namespace {

// Which operand a random stream belongs to.
enum class Stream : std::uint64_t { a, b, b2, bias, residual, routing, gather, weight };

std::uint64_t stream(const OperandOptions& options, Stream which) { return hash_bits(options.seed, static_cast<std::uint64_t>(which)); }

// Points a matrix that is there at seeded host memory.
Status fill(Matrix& matrix, std::uint64_t seed, OperandStore& store) {
  if (matrix.absent()) return {};
  const auto random = store.random(matrix, seed);
  FINESCALE_TRY(random);
  matrix = *random;
  return {};
}

// Root mean square of up to 4096 seeded elements, as stored values times the global scale.
double typical_magnitude(const Matrix& given, std::uint64_t seed) {
  const Matrix m = with_strides(given);
  if (m.batch == 0 || m.rows == 0 || m.cols == 0 || m.scale_layout == ScaleLayout::scale_128x4_per_group) return 1;
  double sum = 0;
  constexpr int kSamples = 4096;
  for (std::uint64_t sample = 0; sample < kSamples; ++sample) {
    const auto pick = [&](std::int64_t count, std::uint64_t axis) {
      return static_cast<std::int64_t>(hash_bits(seed, 3 * sample + axis) % static_cast<std::uint64_t>(count));
    };
    const std::int64_t batch = pick(m.batch, 0), row = pick(m.rows, 1), col = pick(m.cols, 2);
    const double value =
        static_cast<double>(element_at(m, batch, row, col)) * block_scale_at(m, batch, row, col) * global_at(m, batch, row);
    if (std::isfinite(value)) sum += value * value;
  }
  return std::sqrt(sum / kSamples);
}

// alpha that brings D near 1, and a global scale of a block-format D that leaves headroom over that.
Status set_output_scale(const OperandOptions& options, GemmProblem& problem, OperandStore& store) {
  const double product = typical_magnitude(problem.a, options.seed) * typical_magnitude(problem.b, options.seed) *
                         std::sqrt(static_cast<double>(std::max<std::int64_t>(problem.a.cols, 1)));
  if (options.choose_alpha && product > 0) problem.epilogue.alpha = std::exp2(-std::round(std::log2(static_cast<float>(product))));
  if (problem.d.global_kind == GlobalScale::none) return {};
  const double scale_max = problem.d.format.has_scales() ? max_value(problem.d.format.scale) : 1.0;
  const std::span<float> global = store.floats(global_count(problem.d));
  const double headroom = problem.d.format.element == Element::e2m1 && !problem.d.format.has_scales() ? 4 : 16;
  const double magnitude = std::abs(problem.epilogue.alpha) * std::max(product, 1e-30);
  std::fill(global.begin(), global.end(), static_cast<float>(headroom * magnitude / (max_value(problem.d.format.element) * scale_max)));
  problem.d.global = global.data();
  return {};
}

Status fill_product(GemmProblem& problem, const OperandOptions& options, OperandStore& store) {
  FINESCALE_TRY(options.weights != nullptr ? options.weights->fill(problem.b, store) : fill(problem.b, stream(options, Stream::b), store));
  FINESCALE_TRY(fill(problem.b2, stream(options, Stream::b2), store));
  FINESCALE_TRY(fill(problem.epilogue.bias, stream(options, Stream::bias), store));
  FINESCALE_TRY(fill(problem.epilogue.residual, stream(options, Stream::residual), store));
  return set_output_scale(options, problem, store);
}

// Offsets and counts leave some groups empty and some rows without a group, as real routings do.
void fill_index(const GroupedGemmProblem& problem, std::uint64_t seed, std::span<std::int32_t> index) {
  const auto groups = static_cast<std::uint64_t>(groups_of(problem));
  const std::int64_t rows = grouped_rows(problem);
  const auto group_of_pick = [&](std::int64_t row) {  // one row in sixteen has no group
    const std::uint64_t pick = hash_bits(seed, static_cast<std::uint64_t>(row));
    return groups == 0 || pick % 16 == 0 ? std::int32_t{-1} : static_cast<std::int32_t>((pick >> 8) % groups);
  };
  if (problem.routing.kind == Routing::Kind::row_groups) {
    for (std::int64_t row = 0; row < rows; ++row) index[static_cast<std::size_t>(row)] = group_of_pick(row);
    return;
  }
  std::fill(index.begin(), index.end(), 0);
  if (problem.routing.kind == Routing::Kind::counts) {
    const auto most = static_cast<std::uint64_t>(problem.gemm.a.rows) + 1;
    for (std::size_t group = 0; group < index.size(); ++group) index[group] = static_cast<std::int32_t>(hash_bits(seed, group) % most);
    return;
  }
  const std::size_t first = problem.routing.kind == Routing::Kind::offsets_from_zero ? 1 : 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (const std::int32_t group = group_of_pick(row); group >= 0) ++index[first + static_cast<std::size_t>(group)];
  }
  for (std::size_t entry = 1; entry < index.size(); ++entry) index[entry] += index[entry - 1];
}

void fill_routing(GroupedGemmProblem& problem, const OperandOptions& options, OperandStore& store) {
  Routing& routing = problem.routing;
  const std::span<std::int32_t> index = store.integers(index_entries(problem));
  fill_index(problem, stream(options, Stream::routing), index);
  routing.index = index.data();
  if (routing.gather_length == 0) return;
  const std::span<std::int32_t> gather = store.integers(routing.gather_length);
  for (std::size_t row = 0; row < gather.size(); ++row) {
    gather[row] =
        static_cast<std::int32_t>(hash_bits(stream(options, Stream::gather), row) % static_cast<std::uint64_t>(problem.gemm.a.rows));
  }
  routing.gather = gather.data();
  if (routing.summed_rows == 0) return;
  const std::span<float> weight = store.floats(routing.gather_length);
  for (std::size_t row = 0; row < weight.size(); ++row) weight[row] = static_cast<float>(hash_unit(stream(options, Stream::weight), row));
  routing.weight = weight.data();
}

// A grouped A: under scale_128x4_per_group each row's scales lie where its group's padded start puts them.
Status fill_grouped_a(GroupedGemmProblem& problem, const OperandOptions& options, OperandStore& store) {
  const auto matrix = store.poisoned(problem.gemm.a, groups_of(problem));
  FINESCALE_TRY(matrix);
  problem.gemm.a = *matrix;
  std::vector<std::int64_t> padded;
  if (matrix->scale_layout == ScaleLayout::scale_128x4_per_group) {
    std::vector<std::int64_t> starts;
    for (std::int64_t group = 0; group < groups_of(problem); ++group) starts.push_back(padded_group_start(problem.routing, group));
    for (std::int64_t row = 0; row < matrix->rows; ++row) {
      const std::int64_t group = group_of(problem, row);
      const std::int64_t start = group < 0 ? 0 : starts[static_cast<std::size_t>(group)] - offset_range(problem.routing, group).begin;
      padded.push_back(group < 0 ? 0 : start + row);  // a row of no group has no scale: row 0's is written again
    }
  }
  fill_random(*matrix, stream(options, Stream::a), Values::usual, padded);
  return {};
}

Result<MutableMatrix> output_on_device(const MutableMatrix& tags, OperandStore& store, std::int64_t groups = 1) {
  const auto host = store.poisoned(tags, groups);
  FINESCALE_TRY(host);
  return store.on_host() ? host : store.upload(*host, groups);
}

// Input on the device; a CPU reads the host's own bytes.
Status upload_input(Matrix& matrix, OperandStore& store, std::int64_t groups = 1) {
  if (matrix.absent() || store.on_host()) return {};
  const auto copy = store.upload(matrix, groups);
  FINESCALE_TRY(copy);
  matrix = *copy;
  return {};
}

Status upload_product(GemmProblem& problem, OperandStore& store, std::int64_t groups) {
  FINESCALE_TRY(upload_input(problem.a, store, groups));
  FINESCALE_TRY(upload_input(problem.b, store));
  FINESCALE_TRY(upload_input(problem.b2, store));
  FINESCALE_TRY(upload_input(problem.epilogue.bias, store));
  FINESCALE_TRY(upload_input(problem.epilogue.residual, store));
  const auto global = store.upload(static_cast<const float*>(problem.d.global), global_count(problem.d));
  FINESCALE_TRY(global);
  const auto output = output_on_device(problem.d, store, groups);
  FINESCALE_TRY(output);
  problem.d = *output;
  problem.d.global = const_cast<float*>(*global);
  return {};
}

Status prepare_matrix(Matrix& matrix, OperandStore& store) {
  if (matrix.absent()) return {};
  const auto shape = prepared_like(matrix, store.device());
  FINESCALE_TRY(shape);
  auto to = output_on_device(*shape, store);
  FINESCALE_TRY(to);
  to->global = shape->global;
  FINESCALE_TRY(prepare({matrix, *to}, {&store.device()}));
  FINESCALE_TRY(synchronize(store.device()));
  matrix = *to;
  return {};
}

}  // namespace

Status fill_inputs(QuantizeProblem& problem, const OperandOptions& options, OperandStore& store) {
  return fill(problem.from, stream(options, Stream::a), store);
}

Status fill_inputs(DequantizeProblem& problem, const OperandOptions& options, OperandStore& store) {
  return fill(problem.from, stream(options, Stream::a), store);
}

Status fill_inputs(RepackProblem& problem, const OperandOptions& options, OperandStore& store) {
  return fill(problem.from, stream(options, Stream::a), store);
}

Status fill_inputs(GemmProblem& problem, const OperandOptions& options, OperandStore& store) {
  FINESCALE_TRY(fill(problem.a, stream(options, Stream::a), store));
  return fill_product(problem, options, store);
}

Status fill_inputs(GroupedGemmProblem& problem, const OperandOptions& options, OperandStore& store) {
  fill_routing(problem, options, store);
  FINESCALE_TRY(fill_grouped_a(problem, options, store));
  return fill_product(problem.gemm, options, store);
}

Result<QuantizeProblem> on_device(const QuantizeProblem& host, OperandStore& store) {
  QuantizeProblem problem = host;
  FINESCALE_TRY(upload_input(problem.from, store));
  const auto output = output_on_device(problem.to, store);
  FINESCALE_TRY(output);
  problem.to = *output;
  return problem;
}

Result<DequantizeProblem> on_device(const DequantizeProblem& host, OperandStore& store) {
  DequantizeProblem problem = host;
  FINESCALE_TRY(upload_input(problem.from, store));
  const auto output = output_on_device(problem.to, store);
  FINESCALE_TRY(output);
  problem.to = *output;
  return problem;
}

Result<RepackProblem> on_device(const RepackProblem& host, OperandStore& store) {
  RepackProblem problem = host;
  FINESCALE_TRY(upload_input(problem.from, store));
  const auto output = output_on_device(problem.to, store);
  FINESCALE_TRY(output);
  problem.to = *output;
  // repack leaves the global scales alone: they stand there before.
  const auto* global = reinterpret_cast<const std::byte*>(host.from.global);
  FINESCALE_TRY(copy_to_device(store.device(), reinterpret_cast<std::byte*>(problem.to.global), global, 4 * global_count(problem.to)));
  return problem;
}

Result<GemmProblem> on_device(const GemmProblem& host, OperandStore& store) {
  GemmProblem problem = host;
  FINESCALE_TRY(upload_product(problem, store, 1));
  return problem;
}

Result<GroupedGemmProblem> on_device(const GroupedGemmProblem& host, OperandStore& store) {
  GroupedGemmProblem problem = host;
  FINESCALE_TRY(upload_product(problem.gemm, store, groups_of(host)));
  const auto index = store.upload(host.routing.index, index_entries(host));
  FINESCALE_TRY(index);
  const auto gather = store.upload(host.routing.gather, host.routing.gather_length);
  FINESCALE_TRY(gather);
  const auto weight = store.upload(host.routing.weight, host.routing.gather_length);
  FINESCALE_TRY(weight);
  problem.routing.index = *index;
  problem.routing.gather = *gather;
  problem.routing.weight = *weight;
  return problem;
}

Status prepare_weights(GemmProblem& problem, OperandStore& store) {
  FINESCALE_TRY(prepare_matrix(problem.b, store));
  return prepare_matrix(problem.b2, store);
}

Status prepare_weights(GroupedGemmProblem& problem, OperandStore& store) { return prepare_weights(problem.gemm, store); }

}  // namespace finescale::tools
