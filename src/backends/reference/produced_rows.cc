#include "backends/reference/produced_rows.h"

namespace finescale::reference {

ProducedValues::ProducedValues(const QuantizeProblem& problem) : problem_(problem) {
  if (problem.producer.kind != Producer::rms_norm || problem.producer.residual.absent()) return;
  for (std::int64_t b = 0; b < problem.to.batch; ++b) {
    for (std::int64_t r = 0; r < problem.to.rows; ++r) {
      for (std::int64_t c = 0; c < problem.to.cols; ++c) add_residual(problem, b, r, c);
    }
  }
}

float ProducedValues::operator()(std::int64_t batch, std::int64_t row, std::int64_t col) {
  if (problem_.producer.kind == Producer::rms_norm && (batch != batch_ || row != row_)) {
    factor_ = row_factor(batch, row);
    batch_ = batch;
    row_ = row;
  }
  return produced_value(problem_, batch, row, col, factor_);
}

float ProducedValues::row_factor(std::int64_t batch, std::int64_t row) const {
  double sum = 0;
  for (std::int64_t c = 0; c < problem_.to.cols; ++c) {
    const double x = rms_input(problem_, batch, row, c);
    sum += x * x;
  }
  return rms_factor(sum, problem_.to.cols, problem_.producer.eps);
}

}  // namespace finescale::reference
