// The pointers of a problem against what its tags promise: there where something is read or written, aligned. On a CPU the
// values that must be right before anything is written are read too. Strides are filled in; the tags have been validated.
#include "backends/quantize_rules.h"
#include "ops/validate.h"
#include "ops/validate_operand.h"
#include "ops/validate_routing.h"

#include <finescale/access.h>

#include <string>

namespace finescale {
namespace {

Status check_pointer(std::string_view name, std::string_view field, const void* pointer, std::int64_t alignment, std::string_view promise) {
  if (pointer == nullptr) return invalid_argument(fmt::format("{}.{} is null: the matrix is not empty", name, field));
  if (reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(alignment) == 0) return {};
  return refused(name, field, fmt::ptr(pointer), fmt::format("must be a multiple of {}, {}", alignment, promise));
}

Status check_global(std::string_view name, const Matrix& m) {
  return global_count(m) == 0 ? Status{} : check_pointer(name, "global", m.global, alignof(float), "the size of a float");
}

bool is_empty(const Matrix& m) { return m.absent() || m.batch == 0 || m.rows == 0 || m.cols == 0; }

// Codes and block scales. Repack and prepare leave global scales alone; the other ops read or write them even for K = 0.
Status check_operand(std::string_view name, const Matrix& m) {
  if (is_empty(m)) return {};
  FINESCALE_TRY(check_pointer(name, "data", m.data, m.alignment, "its promised alignment"));
  if (!m.format.has_scales() || is_prepared(m.codes)) return {};
  return check_pointer(name, "scales", m.scales, m.alignment, "its promised alignment");
}

bool same_place(const Matrix& x, const Matrix& y) {
  return x.format == y.format && x.row_stride == y.row_stride && x.col_stride == y.col_stride && x.batch_stride == y.batch_stride;
}

Status check_aliases(const std::string& prefix, const GemmProblem& p) {
  for (const auto& [name, m] :
       {std::pair<const char*, const Matrix*>{"a", &p.a}, {"b", &p.b}, {"b2", &p.b2}, {"epilogue.bias", &p.epilogue.bias}}) {
    if (is_empty(*m) || m->data != p.d.data) continue;
    return refused(prefix + "d", "data", fmt::ptr(p.d.data), fmt::format("is {}.data too; only the residual may be d", name));
  }
  const Matrix& residual = p.epilogue.residual;
  if (is_empty(residual) || p.epilogue.beta == 0.0f || residual.data != p.d.data || same_place(residual, p.d)) return {};
  return refused(prefix + "d", "data", fmt::ptr(p.d.data), "is epilogue.residual.data too; then their types and strides must be equal");
}

// Nothing is read or written where D has no elements.
Status check_product(const std::string& prefix, const GemmProblem& p, const Device& device) {
  if (is_empty(p.d)) return {};
  for (const auto& [name, m] : {std::pair<const char*, Matrix>{"a", p.a}, {"b", p.b}, {"b2", p.b2}, {"d", p.d}}) {
    FINESCALE_TRY(check_operand(prefix + name, m));
    FINESCALE_TRY(check_global(prefix + name, m));
  }
  FINESCALE_TRY(check_operand(prefix + "epilogue.bias", p.epilogue.bias));
  if (p.epilogue.beta != 0.0f) FINESCALE_TRY(check_operand(prefix + "epilogue.residual", p.epilogue.residual));
  FINESCALE_TRY(check_aliases(prefix, p));
  return device.info().kind == DeviceKind::cpu ? check_given_globals(prefix + "d", p.d) : Status{};
}

}  // namespace

Status check_pointers(const QuantizeProblem& p, const Device& device) {
  FINESCALE_TRY(check_operand("from", p.from));
  FINESCALE_TRY(check_operand("to", p.to));
  FINESCALE_TRY(check_global("to", p.to));
  FINESCALE_TRY(check_operand("producer.weight", p.producer.weight));
  FINESCALE_TRY(check_operand("producer.residual", p.producer.residual));
  if (p.segments.count > 0) {
    FINESCALE_TRY(check_pointer("segments", "ends", p.segments.ends, alignof(std::int32_t), "the size of an int32"));
  }
  return device.info().kind == DeviceKind::cpu ? check_quantize_values(p) : Status{};
}

Status check_pointers(const DequantizeProblem& p, const Device&) {
  FINESCALE_TRY(check_operand("from", p.from));
  if (!is_empty(p.from)) FINESCALE_TRY(check_global("from", p.from));
  return check_operand("to", p.to);
}

Status check_pointers(const RepackProblem& p, const Device&) {
  FINESCALE_TRY(check_operand("from", p.from));
  return check_operand("to", p.to);
}

Status check_pointers(const PrepareProblem& p, const Device&) {
  FINESCALE_TRY(check_operand("from", p.from));
  return check_operand("to", p.to);
}

Status check_pointers(const GemmProblem& p, const Device& device) { return check_product("", p, device); }

Status check_pointers(const GroupedGemmProblem& p, const Device& device) {
  if (is_empty(p.gemm.d)) return {};
  FINESCALE_TRY(check_product("gemm.", p.gemm, device));
  const Routing& routing = p.routing;
  constexpr std::string_view kSize = "the size of an int32";
  if (routing.index_length != 0) FINESCALE_TRY(check_pointer("routing", "index", routing.index, alignof(std::int32_t), kSize));
  if (routing.gather_length != 0) FINESCALE_TRY(check_pointer("routing", "gather", routing.gather, alignof(std::int32_t), kSize));
  if (routing.weight != nullptr && routing.summed_rows == 0) {
    return invalid_argument("routing.weight is set: summed_rows = 0 says that no rows are weighted and summed");
  }
  return device.info().kind == DeviceKind::cpu ? check_routing(p) : Status{};
}

}  // namespace finescale
