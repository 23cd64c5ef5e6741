#include "backends/quantize_rules.h"

#include <finescale/access.h>
#include <finescale/formats/block_quantizer.h>

#include <fmt/format.h>

namespace finescale {
namespace {

// Other profiles bring their own rounding and take their own formats and inputs; each pair is proven by tests/golden.
Refusal profile_refusal(const QuantizeProblem& p) {
  const Format& format = p.to.format;
  Recipe fixed{.profile = p.recipe.profile};
  if (p.recipe.profile == Profile::deepgemm && format.scale == Element::f32) fixed.pow2 = p.recipe.pow2;
  if (p.recipe != fixed) return {"a profile other than finescale fixes power rule, scale search and rounding"};
  if (p.producer.kind != Producer::none) return {"a profile other than finescale takes no producer"};
  const bool with_global = p.to.global_kind != GlobalScale::none;
  switch (p.recipe.profile) {
    case Profile::finescale: return {};
    case Profile::flashrt:
      if (format != kNvfp4 || with_global) return {"profile flashrt writes nvfp4 without a global scale"};
      if (p.from.format == kF32) return {"profile flashrt reads f16 or bf16"};
      return {};
    case Profile::modelopt:
    case Profile::compressed_tensors:
      if (format != kNvfp4 || !with_global) return {"profiles modelopt and compressed_tensors write nvfp4 with a global scale"};
      return {};
    case Profile::torchao:
      if (format != kNvfp4) return {"profile torchao writes nvfp4"};
      if (p.from.format == kF16) return {"profile torchao reads f32 or bf16"};
      return {};
    case Profile::deepgemm:
      if (format != kFp8E4m3Row128 && format != kFp8E4m3Block128 && format != kMxfp4) {
        return {"profile deepgemm writes fp8_e4m3_1x128, fp8_e4m3_128x128 or mxfp4"};
      }
      return {};
  }
  return {"unknown profile", static_cast<std::int64_t>(p.recipe.profile)};
}

Status check_segments(const RowSegments& segments, std::int64_t rows) {
  std::int32_t before = 0;
  for (std::int32_t i = 0; i < segments.count; ++i) {
    const std::int32_t end = segments.ends[i];
    if (end < before || end > rows) {
      return invalid_argument(
          fmt::format("segments.ends[{}] = {}: must be at least the end before, {}, and at most rows = {}", i, end, before, rows));
    }
    before = end;
  }
  if (segments.count != 0 && before != rows) {
    return invalid_argument(
        fmt::format("segments.ends[{}] = {}: the last segment must end at rows = {}", segments.count - 1, before, rows));
  }
  return {};
}

}  // namespace

Refusal recipe_refusal(const QuantizeProblem& p) {
  const Format& format = p.to.format;
  if (!format.global && p.to.global_kind != GlobalScale::none) return {"quantize gives this format no global scale"};
  if (p.to.global_kind == GlobalScale::per_row && format.block_rows != 1)
    return {"a global scale per row needs blocks of one row", format.block_rows, 1};
  if (p.recipe.search != ScaleSearch::max && !may_search(format)) return {"four_six and mse are for nvfp4 blocks"};
  if (p.recipe.pow2 && format.scale != Element::f32) return {"pow2 is for FP32 block scales"};
  return p.recipe.profile == Profile::finescale ? Refusal{} : profile_refusal(p);
}

Status check_given_globals(std::string_view name, const Matrix& matrix) {
  for (std::int64_t i = 0; i < global_count(matrix); ++i) {
    if (is_valid_global(matrix.format, matrix.global[i])) continue;
    return invalid_argument(fmt::format("{}.global[{}] = {}: must be finite and at least 2^-126, and {} times it must be finite", name, i,
                                        matrix.global[i], largest_value(matrix.format)));
  }
  return {};
}

Status check_quantize_values(const QuantizeProblem& problem) {
  if (problem.to.global_kind == GlobalScale::per_row) FINESCALE_TRY(check_segments(problem.segments, problem.to.rows));
  return problem.global_given ? check_given_globals("to", problem.to) : Status{};
}

}  // namespace finescale
