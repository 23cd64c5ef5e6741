#include "check/arguments.h"

#include "check/owned_matrix.h"
#include "ops/validate.h"
#include "ops/validate_routing.h"

#include <fmt/format.h>

#include <string_view>

namespace finescale {
namespace {

Status require_pointer(std::string_view name, const char* field, const void* pointer) {
  if (pointer != nullptr) return {};
  return invalid_argument(fmt::format("{}.{} is null: check reads it on the host", name, field));
}

Status require_readable(std::string_view name, const Matrix& matrix) {
  if (matrix.absent()) return {};
  if (matrix.batch != 0 && matrix.rows != 0 && matrix.cols != 0) {
    FINESCALE_TRY(require_pointer(name, "data", matrix.data));
    if (matrix.format.has_scales() && !is_prepared(matrix.codes)) FINESCALE_TRY(require_pointer(name, "scales", matrix.scales));
  }
  return global_count(matrix) == 0 ? Status{} : require_pointer(name, "global", matrix.global);
}

Status check_pointers_of(const GemmProblem& problem) {
  FINESCALE_TRY(require_readable("a", problem.a));
  FINESCALE_TRY(require_readable("b", problem.b));
  if (problem.epilogue.gate == Gate::second_matrix) FINESCALE_TRY(require_readable("b2", problem.b2));
  FINESCALE_TRY(require_readable("epilogue.bias", problem.epilogue.bias));
  if (problem.epilogue.beta != 0.0f) FINESCALE_TRY(require_readable("epilogue.residual", problem.epilogue.residual));
  return problem.d.global_kind == GlobalScale::none ? Status{} : require_pointer("d", "global", problem.d.global);
}

Status require_routing(const GroupedGemmProblem& problem) {
  if (problem.routing.index_length != 0) FINESCALE_TRY(require_pointer("routing", "index", problem.routing.index));
  if (problem.routing.gather_length != 0) FINESCALE_TRY(require_pointer("routing", "gather", problem.routing.gather));
  return check_routing(problem);
}

Status check_observed(const MutableMatrix& d, const Matrix& observed, const CheckOptions& options) {
  if (observed.format != d.format) {
    return invalid_argument(
        fmt::format("observed.format = {}: must be that of d, {}", format_name(observed.format), format_name(d.format)));
  }
  if (observed.batch != d.batch || observed.rows != d.rows || observed.cols != d.cols) {
    return invalid_argument(fmt::format("observed is {} x {} x {}: must have the shape of d, {} x {} x {}", observed.batch, observed.rows,
                                        observed.cols, d.batch, d.rows, d.cols));
  }
  if (options.max_products <= 0) return invalid_argument(fmt::format("options.max_products = {}: must be positive", options.max_products));
  FINESCALE_TRY(validate_matrix("observed", observed));
  Matrix codes = observed;
  codes.global_kind = GlobalScale::none;  // d's global is read
  return require_readable("observed", codes);
}

}  // namespace

Status check_operands(const GemmProblem& problem) {
  FINESCALE_TRY(validate(problem));
  return check_pointers_of(problem);
}

Status check_operands(const GroupedGemmProblem& problem) {
  FINESCALE_TRY(validate(problem));
  FINESCALE_TRY(check_pointers_of(problem.gemm));
  return require_routing(problem);
}

Status check_arguments(const GemmProblem& problem, const Matrix& observed, const CheckOptions& options) {
  FINESCALE_TRY(check_operands(problem));
  return check_observed(problem.d, observed, options);
}

Status check_arguments(const GroupedGemmProblem& problem, const Matrix& observed, const CheckOptions& options) {
  FINESCALE_TRY(check_operands(problem));
  return check_observed(problem.gemm.d, observed, options);
}

Status check_index(const MutableMatrix& d, std::int64_t batch, std::int64_t row, std::int64_t col) {
  if (batch >= 0 && batch < d.batch && row >= 0 && row < d.rows && col >= 0 && col < d.cols) return {};
  return invalid_argument(fmt::format("output ({}, {}, {}): outside of d, {} x {} x {}", batch, row, col, d.batch, d.rows, d.cols));
}

}  // namespace finescale
