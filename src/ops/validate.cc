#include "ops/validate.h"

namespace finescale {

Status validate_matrix(std::string_view, const Matrix&) { return {}; }

Status validate(const QuantizeProblem&) { return {}; }
Status validate(const DequantizeProblem&) { return {}; }
Status validate(const RepackProblem&) { return {}; }
Status validate(const PrepareProblem&) { return {}; }
Status validate(const GemmProblem&) { return {}; }
Status validate(const GroupedGemmProblem&) { return {}; }

QuantizeProblem with_strides(QuantizeProblem p) {
  p.from = with_strides(p.from);
  p.to = with_strides(p.to);
  p.producer.weight = with_strides(p.producer.weight);
  p.producer.residual = with_strides(p.producer.residual);
  return p;
}
DequantizeProblem with_strides(DequantizeProblem p) {
  p.from = with_strides(p.from);
  p.to = with_strides(p.to);
  return p;
}
RepackProblem with_strides(RepackProblem p) {
  p.from = with_strides(p.from);
  p.to = with_strides(p.to);
  return p;
}
PrepareProblem with_strides(PrepareProblem p) {
  p.from = with_strides(p.from);
  p.to = with_strides(p.to);
  return p;
}
GemmProblem with_strides(GemmProblem p) {
  p.a = with_strides(p.a);
  p.b = with_strides(p.b);
  p.b2 = with_strides(p.b2);
  p.d = with_strides(p.d);
  p.epilogue.bias = with_strides(p.epilogue.bias);
  p.epilogue.residual = with_strides(p.epilogue.residual);
  return p;
}
GroupedGemmProblem with_strides(GroupedGemmProblem p) {
  p.gemm = with_strides(p.gemm);
  return p;
}

Status check_pointers(const QuantizeProblem&, const Device&) { return {}; }
Status check_pointers(const DequantizeProblem&, const Device&) { return {}; }
Status check_pointers(const RepackProblem&, const Device&) { return {}; }
Status check_pointers(const PrepareProblem&, const Device&) { return {}; }
Status check_pointers(const GemmProblem&, const Device&) { return {}; }
Status check_pointers(const GroupedGemmProblem&, const Device&) { return {}; }

QuantizeProblem fewer_rows(QuantizeProblem p, std::int64_t) { return p; }
DequantizeProblem fewer_rows(DequantizeProblem p, std::int64_t) { return p; }
RepackProblem fewer_rows(RepackProblem p, std::int64_t) { return p; }
PrepareProblem fewer_rows(PrepareProblem p, std::int64_t) { return p; }
GemmProblem fewer_rows(GemmProblem p, std::int64_t) { return p; }
GroupedGemmProblem fewer_rows(GroupedGemmProblem p, std::int64_t) { return p; }

}  // namespace finescale
