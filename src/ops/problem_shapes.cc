// What dispatch derives from a problem: the same one with every stride filled in, and the same one with fewer rows.
#include "ops/validate.h"

#include <finescale/routing.h>

namespace finescale {

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

QuantizeProblem fewer_rows(QuantizeProblem p, std::int64_t rows) {
  p.from.rows = p.to.rows = rows;
  if (!p.producer.residual.absent()) p.producer.residual.rows = rows;
  return p;
}
DequantizeProblem fewer_rows(DequantizeProblem p, std::int64_t rows) {
  p.from.rows = p.to.rows = rows;
  return p;
}
RepackProblem fewer_rows(RepackProblem p, std::int64_t rows) {
  p.from.rows = p.to.rows = rows;
  return p;
}
PrepareProblem fewer_rows(PrepareProblem p, std::int64_t rows) {
  p.from.rows = p.to.rows = rows;
  return p;
}
GemmProblem fewer_rows(GemmProblem p, std::int64_t rows) {
  p.a.rows = p.d.rows = rows;
  if (!p.epilogue.residual.absent()) p.epilogue.residual.rows = rows;
  return p;
}

// `rows` counts grouped rows, under counts those of one group. Gathered rows of A are tokens, as many as before: where rows sum
// into tokens, some of these may have none.
GroupedGemmProblem fewer_rows(GroupedGemmProblem p, std::int64_t rows) {
  Routing& routing = p.routing;
  if (routing.kind == Routing::Kind::row_groups) routing.index_length = rows;
  if (!is_gathered(routing)) {
    p.gemm = fewer_rows(p.gemm, rows);
    return p;
  }
  routing.gather_length = rows;
  if (is_summed(routing)) return p;
  p.gemm.d.rows = rows;
  if (!p.gemm.epilogue.residual.absent()) p.gemm.epilogue.residual.rows = rows;
  return p;
}

}  // namespace finescale
