#include <finescale/check.h>

#include "backends/float_environment.h"
#include "check/arguments.h"
#include "check/checked_product.h"
#include "check/judge.h"
#include "check/walk.h"
#include "ops/validate.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <tuple>

namespace finescale {
namespace {

// What no kernel can declare would give a bound that every number meets.
Status check_accumulation(const Accumulation& accumulation) {
  for (const auto& [field, value, least] :
       {std::tuple{"fraction_bits", accumulation.fraction_bits, 2}, std::tuple{"exact_run", accumulation.exact_run, 1}}) {
    if (value < least) return invalid_argument(fmt::format("accumulation.{} = {}: must be at least {}", field, value, least));
  }
  return {};
}

// Rounded once: `odd` is rounded to odd, and stays so in FP32, where two bits are left to any narrower element.
float rounded(Element element, double odd) {
  float nearest = static_cast<float>(odd);
  if (element == Element::f32) return nearest;
  if (static_cast<double>(nearest) != odd) {
    if (std::fabs(static_cast<double>(nearest)) > std::fabs(odd)) nearest = std::nextafter(nearest, 0.0f);
    nearest = bits_float(float_bits(nearest) | 1);
  }
  return decode(element, encode(element, nearest));
}

ExactOutput to_output(const ExactValue& exact, const Format& d) {
  const Element element = d.is_plain() ? d.element : Element::f32;
  ExactOutput output;
  output.bound = d.is_plain() ? output_bound(exact, d.element) : static_cast<double>(exact.error);
  if (!exact.finite) {
    output.low = output.high = output.rounded = static_cast<double>(exact.special);
    return output;
  }
  output.low = lower_double(exact.value.low);
  output.high = upper_double(exact.value.high);
  const float low = rounded(element, exact.exact ? exact.point.rounded_to_odd() : output.low);
  const float high = exact.exact ? low : rounded(element, output.high);
  output.rounded = low == high ? low : std::numeric_limits<double>::quiet_NaN();
  return output;
}

}  // namespace

Result<CheckReport> check(const GemmProblem& given, const Matrix& observed, const Accumulation& accumulation, const CheckOptions& options) {
  FINESCALE_TRY(check_arguments(given, observed, options));
  FINESCALE_TRY(check_accumulation(accumulation));
  const FloatEnvironment environment;
  const GemmProblem problem = with_strides(given);
  Evaluator evaluator(problem, accumulation, cached_rows(problem));
  CheckReport report = walk_outputs(plain_product(problem, evaluator), with_strides(observed), options);
  report.factor = evaluator.factor();
  return report;
}

Result<CheckReport> check(const GroupedGemmProblem& given, const Matrix& observed, const Accumulation& accumulation,
                          const CheckOptions& options) {
  FINESCALE_TRY(check_arguments(given, observed, options));
  FINESCALE_TRY(check_accumulation(accumulation));
  const FloatEnvironment environment;
  const GroupedGemmProblem problem = with_strides(given);
  Evaluator evaluator(problem.gemm, accumulation, cached_rows(problem.gemm));
  CheckReport report = walk_outputs(grouped_product(problem, evaluator), with_strides(observed), options);
  report.factor = evaluator.factor();
  return report;
}

Result<ExactOutput> exact_output(const GemmProblem& given, std::int64_t batch, std::int64_t row, std::int64_t col,
                                 const Accumulation& accumulation) {
  FINESCALE_TRY(check_operands(given));
  FINESCALE_TRY(check_index(given.d, batch, row, col));
  FINESCALE_TRY(check_accumulation(accumulation));
  const FloatEnvironment environment;
  const GemmProblem problem = with_strides(given);
  Evaluator evaluator(problem, accumulation, 1);
  return to_output(plain_product(problem, evaluator).exact(batch, row, col), problem.d.format);
}

Result<ExactOutput> exact_output(const GroupedGemmProblem& given, std::int64_t batch, std::int64_t row, std::int64_t col,
                                 const Accumulation& accumulation) {
  FINESCALE_TRY(check_operands(given));
  FINESCALE_TRY(check_index(given.gemm.d, batch, row, col));
  FINESCALE_TRY(check_accumulation(accumulation));
  const FloatEnvironment environment;
  const GroupedGemmProblem problem = with_strides(given);
  Evaluator evaluator(problem.gemm, accumulation, 1);
  return to_output(grouped_product(problem, evaluator).exact(batch, row, col), problem.gemm.d.format);
}

}  // namespace finescale
