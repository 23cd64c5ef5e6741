// The rules on the ops that rewrite one matrix: quantize, dequantize, repack, prepare (docs/quantizers.md).
#include "backends/quantize_rules.h"
#include "ops/validate.h"
#include "ops/validate_operand.h"

#include <finescale/access.h>
#include <finescale/formats/recipe.h>

#include <algorithm>
#include <iterator>

namespace finescale {
namespace {

Status require_shape(std::string_view name, const Matrix& matrix, std::string_view of_name, const Matrix& of) {
  if (matrix.batch == of.batch && matrix.rows == of.rows && matrix.cols == of.cols) return {};
  FINESCALE_TRY(require_size(name, "batch", matrix.batch, of.batch, fmt::format("the batches of {}", of_name)));
  FINESCALE_TRY(require_size(name, "rows", matrix.rows, of.rows, fmt::format("the rows of {}", of_name)));
  return require_size(name, "cols", matrix.cols, of.cols, fmt::format("the columns of {}", of_name));
}

Status validate_recipe(const QuantizeProblem& problem) {
  const Recipe& recipe = problem.recipe;
  const auto names_it = [&](const NamedProfile& row) { return row.profile == recipe.profile; };
  if (std::none_of(std::begin(kProfiles), std::end(kProfiles), names_it)) {
    return refused("recipe", "profile", static_cast<int>(recipe.profile), "is not a known profile");
  }
  if (recipe.search > ScaleSearch::mse) return refused("recipe", "search", static_cast<int>(recipe.search), "is not a known search");
  if (recipe.rounding > Rounding::stochastic)
    return refused("recipe", "rounding", static_cast<int>(recipe.rounding), "is not a known rounding");
  FINESCALE_TRY(validate_scale_rules("recipe", recipe, problem.to.format));
  if (const Refusal refusal = recipe_refusal(problem)) {
    return unsupported(fmt::format("recipe: {} (from.format = {}, to.format = {}, to.global_kind = {})", refusal.rule,
                                   describe(problem.from.format), describe(problem.to.format), describe(problem.to.global_kind)));
  }
  return {};
}

Status validate_order(const ProducerParameters& producer) {
  const Gate order = producer.order;
  if (!is_gated(producer.kind)) {
    return order == Gate::none ? Status{}
                               : refused("producer", "order", static_cast<int>(order), "must be none: this producer reads no gate");
  }
  if (order == Gate::halves_gate_first || order == Gate::halves_up_first || order == Gate::alternating_rows) return {};
  return refused("producer", "order", static_cast<int>(order),
                 "must say where gate and up lie: halves_gate_first, halves_up_first or alternating_rows");
}

Status validate_norm(const ProducerParameters& producer, const QuantizeProblem& problem) {
  if (producer.kind != Producer::rms_norm) {
    const bool weight = !producer.weight.absent();
    if (!weight && producer.residual.absent()) return {};
    return refused(weight ? "producer.weight" : "producer.residual", "format",
                   describe(weight ? producer.weight.format : producer.residual.format), "must not be set: only rms_norm reads it");
  }
  if (!(producer.eps >= 0.0f) || !is_finite(producer.eps))
    return refused("producer", "eps", producer.eps, "must be finite and not negative");
  if (producer.weight_offset != 0.0f && producer.weight_offset != 1.0f) {
    return refused("producer", "weight_offset", producer.weight_offset, "must be 0 or 1");
  }
  if (!producer.weight.absent()) {
    FINESCALE_TRY(validate_plain("producer.weight", producer.weight, Access::read));
    FINESCALE_TRY(require_size("producer.weight", "batch", producer.weight.batch, 1, "one weight for each column"));
    FINESCALE_TRY(require_size("producer.weight", "rows", producer.weight.rows, 1, "one weight for each column"));
    FINESCALE_TRY(require_size("producer.weight", "cols", producer.weight.cols, problem.to.cols, "K, the columns of to"));
  }
  if (producer.residual.absent()) return {};
  FINESCALE_TRY(validate_plain("producer.residual", producer.residual, Access::written));
  return require_shape("producer.residual", producer.residual, "from", problem.from);
}

Status validate_producer(const QuantizeProblem& problem) {
  const ProducerParameters& producer = problem.producer;
  if (producer.kind > Producer::rms_norm) return refused("producer", "kind", static_cast<int>(producer.kind), "is not a known producer");
  FINESCALE_TRY(validate_order(producer));
  if (!Format{producer.intermediate}.is_plain()) {
    return refused("producer", "intermediate", static_cast<int>(producer.intermediate), "must be f32, f16 or bf16");
  }
  FINESCALE_TRY(validate_norm(producer, problem));
  const bool gated = is_gated(producer.kind);
  return require_size("from", "cols", problem.from.cols, gated ? 2 * problem.to.cols : problem.to.cols,
                      gated ? "2 K: gate and up for each column of to" : "K, the columns of to");
}

Status validate_segments(const QuantizeProblem& problem) {
  const std::int32_t count = problem.segments.count;
  if (count < 0) return refused("segments", "count", count, "must not be negative");
  if (count == 0 || problem.to.global_kind == GlobalScale::per_row) return {};
  return refused("segments", "count", count, "must be 0: only to.global_kind = per_row has row segments");
}

// The two sides of repack and prepare: one format, one shape.
Status validate_copy(const Matrix& from, const Matrix& to) {
  FINESCALE_TRY(validate_operand("from", from, Access::read));
  FINESCALE_TRY(require_shape("to", to, "from", from));
  if (to.format == from.format) return {};
  return refused("to", "format", describe(to.format), fmt::format("must be that of from, {}", describe(from.format)));
}

}  // namespace

Status validate_scale_rules(std::string_view name, const Recipe& recipe, const Format& format) {
  if (recipe.power > PowerRule::even) return refused(name, "power", static_cast<int>(recipe.power), "is not a known rule");
  if (recipe.power != PowerRule::round_up && format.scale != Element::e8m0) {
    return refused(name, "power", recipe.power == PowerRule::even ? "even" : "ocp_floor",
                   fmt::format("is a rule of E8M0 scales; {} has none", describe(format)));
  }
  if (recipe.pow2 && format.scale != Element::f32 && recipe.profile == Profile::finescale) {
    return refused(name, "pow2", "true", fmt::format("is a rule of FP32 scales; {} has none", describe(format)));
  }
  return {};
}

Status validate(const QuantizeProblem& problem) {
  FINESCALE_TRY(validate_plain("from", problem.from, Access::read));
  FINESCALE_TRY(validate_operand("to", problem.to, Access::written));
  FINESCALE_TRY(require_block_format("to", problem.to, "must be a block format"));
  FINESCALE_TRY(validate_quantized_global("to", problem.to));
  if (problem.global_given && problem.to.global_kind == GlobalScale::none) {
    return invalid_argument("global_given = true: to.global_kind = none says that there is no global scale");
  }
  FINESCALE_TRY(require_size("to", "batch", problem.to.batch, problem.from.batch, "the batches of from"));
  FINESCALE_TRY(require_size("to", "rows", problem.to.rows, problem.from.rows, "the rows of from"));
  FINESCALE_TRY(validate_producer(problem));
  FINESCALE_TRY(validate_recipe(problem));
  return validate_segments(problem);
}

Status validate(const DequantizeProblem& problem) {
  FINESCALE_TRY(validate_operand("from", problem.from, Access::read));
  FINESCALE_TRY(require_block_format("from", problem.from, "must be a block format"));
  FINESCALE_TRY(validate_plain("to", problem.to, Access::written));
  return require_shape("to", problem.to, "from", problem.from);
}

Status validate(const RepackProblem& problem) {
  FINESCALE_TRY(validate_copy(problem.from, problem.to));
  return validate_operand("to", problem.to, Access::written);
}

Status validate(const PrepareProblem& problem) {
  FINESCALE_TRY(validate_copy(problem.from, problem.to));
  if (!is_prepared(problem.to.codes))
    return refused("to", "codes", layout_name(problem.to.codes), "must be a prepared layout; prepared_like() gives one");
  FINESCALE_TRY(validate_operand("to", problem.to, Access::read));
  if (problem.to.batch_stride != 0 || problem.to.batch <= 1 || is_broadcast(problem.from)) return {};
  return refused("to", "batch_stride", problem.to.batch_stride, "a matrix that is written does not broadcast, unless from does");
}

}  // namespace finescale
