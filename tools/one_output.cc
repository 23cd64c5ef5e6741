#include "one_output.h"

#include <finescale/access.h>

namespace finescale::tools {
namespace {

// A copy of one row, linear, with its global scale.
Result<OwnedMatrix> copy_row(const Matrix& m, std::int64_t batch, std::int64_t row, std::int64_t scale_row) {
  Matrix tags{m.format, 1, 1, m.cols};
  if (m.global_kind != GlobalScale::none) tags.global_kind = GlobalScale::one;
  auto copy = OwnedMatrix::make(tags);
  FINESCALE_TRY(copy);
  const MutableMatrix to = with_strides(copy->view());
  for (std::int64_t col = 0; col < m.cols; ++col) set_code(to, 0, 0, col, code_at(m, batch, row, col));
  for (std::int64_t col = 0; m.format.has_scales() && col < m.cols; col += m.format.block_cols) {
    set_scale_code(to, 0, 0, col, scale_code_at(m, batch, scale_row, col));
  }
  if (to.global != nullptr) to.global[0] = global_at(m, batch, row);
  return copy;
}

// The entries `first` and, of a pair, `second` of a row of a plain matrix.
Result<OwnedMatrix> copy_entries(const Matrix& m, std::int64_t batch, std::int64_t row, std::int64_t first, std::int64_t second,
                                 bool pair) {
  auto copy = OwnedMatrix::make(Matrix{m.format, 1, 1, pair ? 2 : 1});
  FINESCALE_TRY(copy);
  set_code(with_strides(copy->view()), 0, 0, 0, code_at(m, batch, row, first));
  if (pair) set_code(with_strides(copy->view()), 0, 0, 1, code_at(m, batch, row, second));
  return copy;
}

}  // namespace

Result<OneOutput> OneOutput::extract(const GemmProblem& problem, const OutputOrigin& at) {
  const Gate gate = problem.epilogue.gate;
  const bool gated = gate != Gate::none;
  const std::int64_t columns = problem.d.cols;
  const std::int64_t gate_at = gate_row(gate, at.col, columns), up_at = up_row(gate, at.col, columns);
  OneOutput one;
  one.problem_.epilogue = problem.epilogue;
  auto a = copy_row(problem.a, at.a_batch, at.a_row, at.a_scale_row);
  FINESCALE_TRY(a);
  one.a_ = *std::move(a);
  auto b = copy_row(problem.b, at.b_batch, gate_at, gate_at);
  FINESCALE_TRY(b);
  one.b_ = *std::move(b);
  if (gated) {
    const bool second = gate == Gate::second_matrix;
    const std::int64_t row = second ? at.col : up_at;
    auto up = copy_row(second ? problem.b2 : problem.b, at.b_batch, row, row);
    FINESCALE_TRY(up);
    one.up_ = *std::move(up);
    one.problem_.b2 = one.up_.view();
    one.problem_.epilogue.gate = Gate::second_matrix;
  }
  if (!problem.epilogue.bias.absent()) {
    auto bias = copy_entries(problem.epilogue.bias, at.b_batch, 0, gate_at, up_at, gated);
    FINESCALE_TRY(bias);
    one.bias_ = *std::move(bias);
    one.problem_.epilogue.bias = one.bias_.view();
  }
  if (!problem.epilogue.residual.absent()) {
    auto residual = copy_entries(problem.epilogue.residual, at.d_batch, at.d_row, at.col, 0, false);
    FINESCALE_TRY(residual);
    one.residual_ = *std::move(residual);
    one.problem_.epilogue.residual = one.residual_.view();
  }
  one.problem_.a = one.a_.view();
  one.problem_.b = one.b_.view();
  one.problem_.d = {problem.d.format.is_plain() ? problem.d.format : kF32, 1, 1, 1};
  return one;
}

Result<ExactOutput> OneOutput::exact(const Accumulation& accumulation) const { return exact_output(problem_, 0, 0, 0, accumulation); }

}  // namespace finescale::tools
