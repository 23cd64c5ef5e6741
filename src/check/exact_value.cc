#include "check/exact_value.h"

#include "check/error_model.h"

#include <finescale/access.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

namespace finescale {
namespace {

ExactValue not_finite(long double special, bool may_overflow) {
  ExactValue value;
  value.finite = false;
  value.exact = false;
  value.special = special;
  value.may_overflow = may_overflow;
  return value;
}

long double nominal(const ExactValue& value) { return value.finite ? value.value.middle() : value.special; }

// A factor of an Inf that may be zero in FP32: Inf * 0 is NaN, so either is right.
bool may_be_zero(const ExactValue& value) { return value.finite && std::fabs(value.value.middle()) <= value.error && value.error != 0; }

// More FP32 steps follow: where this one overflows, so may they.
ExactValue before_more_steps(ExactValue value) {
  value.may_overflow = value.may_overflow || (value.finite && value.value.magnitude() + value.error > kLargest);
  return value;
}

Enclosure widened(const ExactValue& value) { return {value.value.low - value.error, value.value.high + value.error}; }

// The activation at -Inf is its limit 0. In FP32 the smooth ones may give NaN there: Inf * 0.
ExactValue activated(Activation activation, const ExactValue& z) {
  if (activation == Activation::none) return z;
  const bool clips = activation == Activation::relu || activation == Activation::relu2;
  if (!z.finite && !(z.special < 0)) return not_finite(z.special, z.may_overflow);
  ExactValue value;
  value.may_overflow = z.may_overflow;
  if (!z.finite) {
    value.may_overflow = value.may_overflow || !clips;
    return value;
  }
  value.value = activate(activation, z.value);
  value.error =
      activation_slope(activation, widened(z)) * z.error + activation_slack(activation, widened(z), activate(activation, widened(z)));
  value.exact = activation == Activation::relu && z.exact;
  if (value.exact && !z.point.is_negative()) value.point = z.point;
  return value;
}

ExactValue gated(const ExactValue& gate, const ExactValue& up) {
  const bool may_overflow = gate.may_overflow || up.may_overflow;
  if (!gate.finite || !up.finite) {
    return not_finite(nominal(gate) * nominal(up), may_overflow || may_be_zero(gate) || may_be_zero(up));
  }
  ExactValue value;
  value.value = gate.value * up.value;
  value.error = up.value.magnitude() * gate.error + gate.value.magnitude() * up.error + gate.error * up.error +
                kUnit * value.value.magnitude() + kFlush;
  value.may_overflow = may_overflow;
  value.exact = false;
  return value;
}

// value + beta * C, two FP32 roundings at most.
ExactValue with_residual(const ExactValue& before, float beta, float residual) {
  const ExactValue value = before_more_steps(before);
  const double addend = static_cast<double>(beta) * residual;
  const bool may_overflow = value.may_overflow || (std::isfinite(addend) && std::fabs(addend) > kLargest);
  if (!value.finite || !std::isfinite(addend)) return not_finite(nominal(value) + addend, may_overflow);
  ExactValue sum = value;
  sum.value = value.value + Enclosure{addend, addend};
  sum.error = value.error + kUnit * (std::fabs(addend) + sum.value.magnitude()) + kFlush;
  sum.may_overflow = may_overflow;
  if (sum.exact) {
    sum.point += addend;
    sum.value = enclose(sum.point);
  }
  return sum;
}

// What scaling by alpha, gA and gB, in any order, may lose below the smallest normal: each step loses nu, which grows by the
// factors that follow. A factor of 1 loses nothing.
long double scaling_loss(const float (&factors)[3]) {
  long double sizes[3] = {};
  for (int i = 0; i < 3; ++i) sizes[i] = factors[i] == 1.0f ? 0 : std::max(1.0L, std::fabs(static_cast<long double>(factors[i])));
  std::sort(std::begin(sizes), std::end(sizes), std::greater<>());
  long double loss = 0, growth = 1;
  for (const long double size : sizes) {
    if (size != 0) loss += kFlush * growth;
    growth *= size;
  }
  return loss;
}

}  // namespace

Evaluator::Evaluator(const GemmProblem& problem, const Accumulation& accumulation, std::int64_t rows)
    : problem_(problem), factor_(accumulation_factor(accumulation, problem.a.cols)), a_rows_(rows), b_rows_(rows) {}

// z = alpha gA gB acc + bias, and |z in FP32 - z| <= c S + t + u |z| (the last where a bias is added).
ExactValue Evaluator::linear(const OutputIndex& at, std::int64_t a_scale_row, bool second, std::int64_t b_row, std::int64_t bias_col) {
  const Matrix& b = second ? problem_.b2 : problem_.b;
  const OperandRow& a_row = a_rows_.get(0, problem_.a, at.a_batch, at.a_row, a_scale_row);
  const ExactDot dot = exact_dot(a_row, b_rows_.get(second ? 1 : 0, b, at.b_batch, b_row, b_row));
  const float factors[3] = {problem_.epilogue.alpha, global_at(problem_.a, at.a_batch, at.a_row), global_at(b, at.b_batch, b_row)};
  const bool biased = !problem_.epilogue.bias.absent();
  const float bias = biased ? element_at(problem_.epilogue.bias, at.b_batch, 0, bias_col) : 0.0f;

  const long double scale = static_cast<long double>(factors[0]) * factors[1] * factors[2];
  if (!dot.finite || !std::isfinite(scale) || !std::isfinite(bias)) {
    const long double acc = dot.finite ? enclose(dot.sum).middle() : dot.special;
    const bool vague = std::isinf(scale) && dot.finite && std::fabs(acc) <= factor_ * dot.magnitude + dot.underflow && dot.magnitude != 0;
    return not_finite(acc * scale + bias, dot.overflows || vague);
  }
  ExactValue z;
  z.point = dot.sum;
  for (const float factor : factors) z.point *= factor;
  if (biased) z.point += static_cast<double>(bias);
  z.value = enclose(z.point);
  z.error = std::fabs(scale) * (factor_ * static_cast<long double>(dot.magnitude) + dot.underflow) + scaling_loss(factors);
  z.may_overflow = dot.overflows;
  if (biased) {
    z.error += kUnit * z.value.magnitude();
    z.may_overflow = z.may_overflow || z.value.magnitude() + std::fabs(bias) > kLargest;
  }
  return z;
}

ExactValue Evaluator::activation(const OutputIndex& at, std::int64_t a_scale_row) {
  const Epilogue& epilogue = problem_.epilogue;
  if (epilogue.gate == Gate::none) {
    const ExactValue z = linear(at, a_scale_row, false, at.col, at.col);
    return activated(epilogue.activation, epilogue.activation == Activation::none ? z : before_more_steps(z));
  }
  const std::int64_t gate = gate_row(epilogue.gate, at.col, problem_.d.cols), up = up_row(epilogue.gate, at.col, problem_.d.cols);
  const bool second = epilogue.gate == Gate::second_matrix;
  const ExactValue z_gate = before_more_steps(linear(at, a_scale_row, false, gate, gate));
  const ExactValue z_up = before_more_steps(linear(at, a_scale_row, second, second ? at.col : up, up));
  return gated(before_more_steps(activated(epilogue.activation, z_gate)), z_up);
}

ExactValue Evaluator::output(const OutputIndex& at, std::int64_t a_scale_row) {
  ExactValue value = activation(at, a_scale_row);
  const Epilogue& epilogue = problem_.epilogue;
  if (!epilogue.residual.absent() && epilogue.beta != 0.0f) {
    value = with_residual(value, epilogue.beta, element_at(epilogue.residual, at.batch, at.row, at.col));
  }
  value.error *= kSecondOrder;
  return value;
}

void add_weighted(ExactValue& sum, const ExactValue& given, float weight) {
  const ExactValue term = before_more_steps(given), before = before_more_steps(sum);
  const bool may_overflow = term.may_overflow || before.may_overflow;
  if (!term.finite || !before.finite || !std::isfinite(weight)) {
    sum = not_finite(nominal(before) + nominal(term) * weight, may_overflow || (std::isinf(weight) && may_be_zero(term)));
    return;
  }
  const Enclosure product = term.value * Enclosure{weight, weight};
  sum.value = before.value + product;
  sum.error = before.error + std::fabs(static_cast<long double>(weight)) * term.error * kSecondOrder +
              kUnit * (product.magnitude() + sum.value.magnitude()) * kSecondOrder + kFlush;
  sum.may_overflow = may_overflow;
  sum.exact = before.exact && term.exact;
  if (!sum.exact) return;
  FixedPoint exact_product = term.point;
  sum.point += exact_product *= weight;
  sum.value = enclose(sum.point);
}

}  // namespace finescale
