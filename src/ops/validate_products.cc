// The rules on gemm and grouped_gemm (docs/products.md). Names in sentences: "a", "epilogue.bias"; of a grouped product "gemm.a".
#include "ops/validate.h"
#include "ops/validate_operand.h"

#include <finescale/routing.h>

#include <string>

namespace finescale {
namespace {

// How a sentence calls the members of one product, and which rules a grouped one changes.
struct Names {
  std::string_view prefix;
  bool grouped = false;

  std::string operator()(std::string_view member) const { return std::string(prefix).append(member); }
};

struct Shape {
  std::int64_t m, n, k, batch;  // of D and of A; rows of A may differ from m where they are gathered
};

Status validate_gate(const Names& names, const GemmProblem& problem) {
  const Epilogue& e = problem.epilogue;
  if (e.activation > Activation::relu2) {
    return refused(names("epilogue"), "activation", static_cast<int>(e.activation), "is not a known activation");
  }
  if (e.gate > Gate::second_matrix)
    return refused(names("epilogue"), "gate", static_cast<int>(e.gate), "is not a known order of gate and up");
  const bool second = e.gate == Gate::second_matrix;
  if (second && problem.b2.absent()) {
    return invalid_argument(fmt::format("{}.format: is not set; gate = second_matrix takes its up rows from it", names("b2")));
  }
  if (!second && !problem.b2.absent()) {
    return refused(names("b2"), "format", describe(problem.b2.format), "must not be set: only gate = second_matrix reads it");
  }
  return {};
}

Status validate_weights(const Names& names, std::string_view member, const Matrix& b, std::int64_t rows, std::string_view rows_are,
                        const Shape& shape, std::int64_t batch) {
  const std::string name = names(member);
  FINESCALE_TRY(validate_operand(name, b, Access::read));
  FINESCALE_TRY(require_block_format(name, b, "must be a block format: weights are quantized"));
  FINESCALE_TRY(require_size(name, "cols", b.cols, shape.k, "K, the columns of a"));
  FINESCALE_TRY(require_size(name, "rows", b.rows, rows, rows_are));
  return require_size(name, "batch", b.batch, batch,
                      names.grouped ? "the number of groups" : "the batches of d (a batch_stride of 0 broadcasts)");
}

Status validate_all_weights(const Names& names, const GemmProblem& problem, const Shape& shape, std::int64_t batch) {
  const Gate gate = problem.epilogue.gate;
  const bool fused = gate != Gate::none && gate != Gate::second_matrix;
  FINESCALE_TRY(validate_weights(names, "b", problem.b, fused ? 2 * shape.n : shape.n,
                                 fused ? "2 N: gate and up for each column of d" : "N, the columns of d", shape, batch));
  if (gate != Gate::second_matrix) return {};
  FINESCALE_TRY(validate_weights(names, "b2", problem.b2, shape.n, "N, the columns of d", shape, batch));
  if (problem.b2.format == problem.b.format) return {};
  return refused(names("b2"), "format", describe(problem.b2.format), fmt::format("must be that of b, {}", describe(problem.b.format)));
}

Status validate_bias(const Names& names, const GemmProblem& problem, const Shape& shape, std::int64_t batch) {
  const Matrix& bias = problem.epilogue.bias;
  if (bias.absent()) return {};
  const bool gated = problem.epilogue.gate != Gate::none;
  const std::string name = names("epilogue.bias");
  FINESCALE_TRY(validate_plain(name, bias, Access::read));
  FINESCALE_TRY(require_size(name, "rows", bias.rows, 1, "a row vector"));
  FINESCALE_TRY(require_size(name, "cols", bias.cols, gated ? 2 * shape.n : shape.n,
                             gated ? "2 N: an entry for each row of gate and up" : "N, the columns of d"));
  return require_size(name, "batch", bias.batch, batch,
                      names.grouped ? "the number of groups" : "the batches of d (a batch_stride of 0 broadcasts)");
}

Status validate_residual(const Names& names, const GemmProblem& problem, const Shape& shape) {
  const Matrix& residual = problem.epilogue.residual;
  if (residual.absent()) return {};
  const std::string name = names("epilogue.residual");
  FINESCALE_TRY(validate_plain(name, residual, Access::read));
  FINESCALE_TRY(require_size(name, "rows", residual.rows, shape.m, "M, the rows of d"));
  FINESCALE_TRY(require_size(name, "cols", residual.cols, shape.n, "N, the columns of d"));
  return require_size(name, "batch", residual.batch, shape.batch, "the batches of d (a batch_stride of 0 broadcasts)");
}

// D in a block format: profile finescale, max scales, rounded to nearest even; the rules of its scale encoding are free.
Status validate_output(const Names& names, const GemmProblem& problem, PerGroup per_group, std::int64_t groups) {
  const MutableMatrix& d = problem.d;
  FINESCALE_TRY(validate_operand(names("d"), d, Access::written, per_group, groups));
  if (d.format.is_plain()) return validate_plain(names("d"), d, Access::written);
  FINESCALE_TRY(validate_quantized_global(names("d"), d));
  const Recipe& recipe = problem.recipe;
  if (recipe.profile != Profile::finescale || recipe.search != ScaleSearch::max || recipe.rounding != Rounding::nearest_even) {
    return unsupported(fmt::format("{}: a product quantizes d by profile finescale, with max scales, to nearest even", names("recipe")));
  }
  return validate_scale_rules(names("recipe"), recipe, d.format);
}

Status validate_product(const Names& names, const GemmProblem& problem, const Shape& shape, std::int64_t weight_batch) {
  FINESCALE_TRY(validate_gate(names, problem));
  FINESCALE_TRY(require_size(names("a"), "batch", problem.a.batch, shape.batch,
                             names.grouped ? "the batches of d" : "the batches of d (a batch_stride of 0 broadcasts)"));
  FINESCALE_TRY(validate_all_weights(names, problem, shape, weight_batch));
  FINESCALE_TRY(validate_bias(names, problem, shape, weight_batch));
  return validate_residual(names, problem, shape);
}

Status validate_lengths(const GroupedGemmProblem& problem) {
  const Routing& routing = problem.routing;
  if (routing.kind > Routing::Kind::counts)
    return refused("routing", "kind", static_cast<int>(routing.kind), "is not a known kind of routing");
  for (const auto& [field, value] : {std::pair{"gather_length", routing.gather_length}, std::pair{"summed_rows", routing.summed_rows},
                                     std::pair{"expected_rows", routing.expected_rows}}) {
    if (value < 0) return refused("routing", field, value, "must not be negative");
  }
  if (is_gathered(routing) && routing.kind == Routing::Kind::counts) {
    return refused("routing", "gather_length", routing.gather_length, "must be 0: with counts each group has its own rows of a");
  }
  if (is_summed(routing) && !is_gathered(routing)) {
    return refused("routing", "summed_rows", routing.summed_rows,
                   "needs gather, which names the row of d that each grouped row is added to");
  }
  constexpr const char* kMeanings[] = {"M, a group for each grouped row", "the number of groups", "the number of groups and one",
                                       "the number of groups"};
  return require_size("routing", "index_length", routing.index_length, index_entries(problem), kMeanings[static_cast<int>(routing.kind)]);
}

Status validate_grouped_rows(const GroupedGemmProblem& problem) {
  const GemmProblem& gemm = problem.gemm;
  const Routing& routing = problem.routing;
  if (routing.kind == Routing::Kind::counts) {
    FINESCALE_TRY(require_size("gemm.d", "batch", gemm.d.batch, groups_of(problem), "the number of groups, the batches of b"));
    return require_size("gemm.d", "rows", gemm.d.rows, gemm.a.rows, "max_m, the rows of a");
  }
  FINESCALE_TRY(require_size("gemm.d", "batch", gemm.d.batch, 1, "for rows that are routed by groups or offsets"));
  if (!is_summed(routing)) return require_size("gemm.d", "rows", gemm.d.rows, grouped_rows(problem), "M, the grouped rows");
  FINESCALE_TRY(require_size("gemm.d", "rows", gemm.d.rows, routing.summed_rows, "summed_rows of the routing"));
  FINESCALE_TRY(require_size("gemm.a", "rows", gemm.a.rows, routing.summed_rows, "summed_rows: gather names a row of a and of d at once"));
  if (gemm.epilogue.residual.absent()) return {};
  return refused("gemm.epilogue.residual", "format", describe(gemm.epilogue.residual.format), "must not be set where rows are summed");
}

}  // namespace

Status validate(const GemmProblem& problem) {
  const Names names{"", false};
  FINESCALE_TRY(validate_operand("a", problem.a, Access::read));
  FINESCALE_TRY(validate_output(names, problem, PerGroup::refused, 1));
  FINESCALE_TRY(require_size("d", "rows", problem.d.rows, problem.a.rows, "M, the rows of a"));
  return validate_product(names, problem, {problem.d.rows, problem.d.cols, problem.a.cols, problem.d.batch}, problem.d.batch);
}

Status validate(const GroupedGemmProblem& problem) {
  const Names names{"gemm.", true};
  const GemmProblem& gemm = problem.gemm;
  const Routing& routing = problem.routing;
  const std::int64_t groups = groups_of(problem);
  if (groups < 0) return refused("gemm.b", "batch", groups, "a size is not negative");
  const PerGroup for_a = has_offsets(routing) && !is_gathered(routing) ? PerGroup::allowed : PerGroup::refused;
  const PerGroup for_d = has_offsets(routing) && !is_summed(routing) ? PerGroup::allowed : PerGroup::refused;
  FINESCALE_TRY(validate_operand("gemm.a", gemm.a, Access::read, for_a, groups));
  FINESCALE_TRY(validate_output(names, gemm, for_d, groups));
  FINESCALE_TRY(validate_lengths(problem));
  FINESCALE_TRY(validate_grouped_rows(problem));
  return validate_product(names, gemm, {gemm.d.rows, gemm.d.cols, gemm.a.cols, gemm.d.batch}, groups);
}

}  // namespace finescale
