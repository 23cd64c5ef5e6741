#include "op_problem.h"

namespace finescale::tools {
namespace {

struct Shape {
  std::int64_t batch, rows, cols;
};

MutableMatrix operand(const Format& format, const Shape& shape, ScaleLayout layout = ScaleLayout::linear) {
  MutableMatrix matrix{format, shape.batch, shape.rows, shape.cols};
  if (format.has_scales()) matrix.scale_layout = layout;
  if (format.global) matrix.global_kind = shape.batch == 1 ? GlobalScale::one : GlobalScale::per_batch;
  return matrix;
}

void set_epilogue(const OpOptions& options, std::int64_t batch, GemmProblem& problem) {
  const std::int64_t bias_length = options.gate == Gate::none ? options.n : 2 * options.n;
  problem.epilogue.alpha = options.alpha;
  problem.epilogue.beta = options.beta;
  problem.epilogue.activation = options.activation;
  problem.epilogue.gate = options.gate;
  if (options.bias.element != Element::none) problem.epilogue.bias = operand(options.bias, {batch, 1, bias_length});
  if (options.residual.element != Element::none) {
    problem.epilogue.residual = operand(options.residual, {problem.d.batch, problem.d.rows, problem.d.cols});
  }
}

void set_weights(const OpOptions& options, std::int64_t batch, ScaleLayout layout, GemmProblem& problem) {
  const bool one_matrix = options.gate != Gate::none && options.gate != Gate::second_matrix;
  problem.b = operand(options.b, {batch, one_matrix ? 2 * options.n : options.n, options.k}, layout);
  if (options.gate == Gate::second_matrix) problem.b2 = problem.b;
}

}  // namespace

QuantizeProblem quantize_shape(const OpOptions& options) {
  QuantizeProblem problem;
  const std::int64_t produced = is_gated(options.producer) ? 2 * options.k : options.k;
  problem.from = operand(options.a, {options.batch, options.m, produced});
  problem.to = operand(options.d, {options.batch, options.m, options.k}, options.scale_layout);
  if (options.recipe.profile == Profile::flashrt) problem.to.global_kind = GlobalScale::none;
  problem.recipe = options.recipe;
  problem.producer.kind = options.producer;
  if (is_gated(options.producer)) problem.producer.order = Gate::halves_gate_first;
  problem.kernel = options.forced_kernel();
  return problem;
}

DequantizeProblem dequantize_shape(const OpOptions& options) {
  DequantizeProblem problem;
  MutableMatrix from = operand(options.a, {options.batch, options.m, options.k}, options.scale_layout);
  from.codes = options.codes;
  problem.from = from;
  problem.to = operand(options.d, {options.batch, options.m, options.k});
  problem.kernel = options.forced_kernel();
  return problem;
}

RepackProblem repack_shape(const OpOptions& options) {
  RepackProblem problem;
  MutableMatrix from = operand(options.a, {options.batch, options.m, options.k}, options.scale_layout);
  from.codes = options.codes;
  problem.from = from;
  problem.to = operand(options.a, {options.batch, options.m, options.k}, options.to_scale_layout);
  problem.to.codes = options.to_codes;
  problem.kernel = options.forced_kernel();
  return problem;
}

GemmProblem gemm_shape(const OpOptions& options) {
  GemmProblem problem;
  problem.a = operand(options.a, {options.batch, options.m, options.k}, options.scale_layout);
  set_weights(options, options.batch, options.scale_layout, problem);
  problem.d = operand(options.d, {options.batch, options.m, options.n}, options.scale_layout);
  set_epilogue(options, options.batch, problem);
  problem.batch_invariant = options.batch_invariant;
  problem.kernel = options.forced_kernel();
  return problem;
}

GroupedGemmProblem grouped_gemm_shape(const OpOptions& options) {
  GroupedGemmProblem grouped;
  GemmProblem& problem = grouped.gemm;
  const bool counts = options.routing == Routing::Kind::counts, gathers = options.tokens != 0;
  const bool per_group = options.scale_layout == ScaleLayout::scale_128x4_per_group;
  const ScaleLayout others = per_group ? ScaleLayout::scale_128x4 : options.scale_layout;
  const std::int64_t padded = counts ? options.groups : 1;
  problem.a = operand(options.a, {padded, gathers ? options.tokens : options.m, options.k}, options.scale_layout);
  set_weights(options, options.groups, others, problem);
  problem.d = operand(options.d, {padded, options.weighted ? options.tokens : options.m, options.n}, others);
  set_epilogue(options, options.groups, problem);
  problem.batch_invariant = options.batch_invariant;
  problem.kernel = options.forced_kernel();
  grouped.routing.kind = options.routing;
  grouped.routing.index_length = options.routing == Routing::Kind::row_groups          ? options.m
                                 : options.routing == Routing::Kind::offsets_from_zero ? options.groups + 1
                                                                                       : options.groups;
  grouped.routing.gather_length = gathers ? options.m : 0;
  grouped.routing.summed_rows = options.weighted ? options.tokens : 0;
  return grouped;
}

Status set_prepared_tags(const OpOptions& options, const Device& device, GemmProblem& problem) {
  for (Matrix* matrix : {&problem.b, &problem.b2}) {
    if (!options.prepared || matrix->absent()) continue;
    const auto tags = prepared_like(*matrix, device);
    FINESCALE_TRY(tags);
    *matrix = *tags;
  }
  return {};
}

Status set_prepared_tags(const OpOptions& options, const Device& device, GroupedGemmProblem& problem) {
  return set_prepared_tags(options, device, problem.gemm);
}

}  // namespace finescale::tools
