#include "ops/validate_operand.h"

#include "ops/validate.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace finescale {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 60;  // a count of bits or of FP32 bytes stays inside int64

// Empty dimensions count as one, so that every partial product is bounded too.
Status validate_count(std::string_view name, const Matrix& m) {
  std::int64_t elements = 1;
  for (const std::int64_t size : {m.batch, m.rows, m.cols}) {
    if (__builtin_mul_overflow(elements, std::max<std::int64_t>(size, 1), &elements)) elements = kMostElements + 1;
  }
  if (elements <= kMostElements) return {};
  return invalid_argument(
      fmt::format("{}: batch = {}, rows = {}, cols = {}: a matrix has at most 2^60 elements", name, m.batch, m.rows, m.cols));
}

// Every element and block scale of a written matrix has a place of its own.
Status validate_written(std::string_view name, const Matrix& m) {
  if (is_prepared(m.codes)) return refused(name, "codes", layout_name(m.codes), "only prepare writes a prepared layout");
  if (m.batch == 0 || m.rows == 0 || m.cols == 0) return {};
  for (const auto& [field, size, stride] : {std::tuple{"row_stride", m.rows, m.row_stride}, std::tuple{"col_stride", m.cols, m.col_stride},
                                            std::tuple{"batch_stride", m.batch, m.batch_stride}}) {
    if (stride == 0 && size > 1) return refused(name, field, stride, "a matrix that is written does not broadcast");
  }
  if (!m.format.has_scales()) return {};
  const bool linear = m.scale_layout == ScaleLayout::linear;
  for (const auto& [field, size, stride] : {std::tuple{"scale_row_stride", linear ? m.scale_rows() : 1, m.scale_row_stride},
                                            std::tuple{"scale_col_stride", linear ? m.scale_cols() : 1, m.scale_col_stride},
                                            std::tuple{"scale_batch_stride", m.batch, m.scale_batch_stride}}) {
    if (stride == 0 && size > 1) return refused(name, field, stride, "block scales that are written do not broadcast");
  }
  return {};
}

}  // namespace

Status validate_operand(std::string_view name, const Matrix& m, Access access, PerGroup per_group, std::int64_t groups) {
  if (m.absent()) return invalid_argument(fmt::format("{}.format: is not set; this operand is needed", name));
  FINESCALE_TRY(validate_matrix(name, m));
  if (access == Access::written) FINESCALE_TRY(validate_written(name, m));
  if (per_group == PerGroup::refused && !is_prepared(m.codes) && m.format.has_scales() &&
      m.scale_layout == ScaleLayout::scale_128x4_per_group) {
    return refused(name, "scale_layout", layout_name(m.scale_layout), "needs the groups of a grouped_gemm that is routed by offsets");
  }
  FINESCALE_TRY(validate_count(name, m));
  return status_of(storage_of(name, m, groups));
}

Status validate_plain(std::string_view name, const Matrix& m, Access access) {
  FINESCALE_TRY(validate_operand(name, m, access));
  if (!m.format.is_plain()) return refused(name, "format", describe(m.format), "must be f32, f16 or bf16");
  if (m.global_kind != GlobalScale::none) {
    return refused(name, "global_kind", describe(m.global_kind), "must be none: a plain matrix here has no global scale");
  }
  return {};
}

Status require_block_format(std::string_view name, const Matrix& m, std::string_view why) {
  return m.format.is_plain() ? refused(name, "format", describe(m.format), why) : Status{};
}

Status validate_quantized_global(std::string_view name, const Matrix& m) {
  if (m.global_kind == GlobalScale::none) {
    if (m.format.has_scales()) return {};
    return refused(name, "global_kind", describe(m.global_kind), fmt::format("{} has no other scale", describe(m.format)));
  }
  if (!m.format.global)
    return refused(name, "global_kind", describe(m.global_kind),
                   fmt::format("must be none: {} is quantized without a global scale", describe(m.format)));
  if (m.global_kind == GlobalScale::per_row && m.format.block_rows != 1) {
    return refused(name, "global_kind", describe(m.global_kind), fmt::format("a block of {} lies in several rows", describe(m.format)));
  }
  return {};
}

Status require_size(std::string_view name, std::string_view field, std::int64_t value, std::int64_t wanted, std::string_view meaning) {
  return value == wanted ? Status{} : refused(name, field, value, fmt::format("must be {}, {}", wanted, meaning));
}

}  // namespace finescale
