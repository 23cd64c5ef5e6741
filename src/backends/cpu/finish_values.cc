#include "backends/cpu/finish_values.h"

#include "backends/cpu/row_reader.h"

#include <finescale/finish.h>

#include <algorithm>
#include <cstring>

namespace finescale::cpu {
namespace {

// The linear part of a run of outputs: rows of b (or b2), `step` apart, and their entries of the bias.
struct LinearRun {
  const Matrix& b;
  std::int64_t first_panel;  // of b in the sums
  std::int64_t b_row, bias_col, step, count;
};

void gather_sums(const Strip& strip, std::int64_t place, const LinearRun& run, float* z) {
  for (std::int64_t i = 0; i < run.count;) {
    const std::int64_t row = run.b_row + i * run.step, lane = row % kPanelRows;
    const float* sums = strip.sums_of(run.first_panel + row / kPanelRows, place);
    for (std::int64_t at = lane; at < kPanelRows && i < run.count; at += run.step) z[i++] = sums[at];
  }
}

// alpha gA gB acc. Factors of 1 change no bit, so the usual case is one product.
void apply_factors(const GemmProblem& problem, const StripRow& row, const LinearRun& run, float* z) {
  const float alpha = problem.epilogue.alpha, g_a = global_at(problem.a, row.a_batch, row.a_row);
  if (alpha != 1.0f || g_a != 1.0f || run.b.global_kind == GlobalScale::per_row) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      z[i] = product_in_order(z[i], alpha, g_a, global_at(run.b, row.group, run.b_row + i * run.step));
    }
    return;
  }
  const float g_b = global_at(run.b, row.group, 0);
  for (std::int64_t i = 0; i < run.count; ++i) z[i] *= g_b;
}

// alpha gA gB acc + bias
void linear(const Leaves& leaves, const GemmProblem& problem, const Strip& strip, std::int64_t place, const StripRow& row,
            const LinearRun& run, float* z) {
  gather_sums(strip, place, run, z);
  apply_factors(problem, row, run, z);
  const Matrix& bias = problem.epilogue.bias;
  if (bias.absent()) return;
  if (run.step == 1) {
    float values[kRunCols];
    read_row(leaves, bias, row.group, 0, 0, run.bias_col, run.count, values);
    for (std::int64_t i = 0; i < run.count; ++i) z[i] += values[i];
  } else {
    for (std::int64_t i = 0; i < run.count; ++i) z[i] += element_at(bias, row.group, 0, run.bias_col + i * run.step);
  }
}

// Columns first .. first + count - 1 of D: of the gate half, or of a product without a gate.
LinearRun gate_run(const GemmProblem& problem, std::int64_t first, std::int64_t count) {
  const Gate gate = problem.epilogue.gate;
  const std::int64_t row = gate_row(gate, first, problem.d.cols);
  return {problem.b, 0, row, row, gate == Gate::alternating_rows ? 2 : 1, count};
}

LinearRun up_run(const GemmProblem& problem, std::int64_t first, std::int64_t count) {
  const Gate gate = problem.epilogue.gate;
  const std::int64_t row = up_row(gate, first, problem.d.cols);
  if (gate == Gate::second_matrix) return {problem.b2, ceil_div(problem.b.rows, kPanelRows), first, row, 1, count};
  return {problem.b, 0, row, row, gate == Gate::alternating_rows ? 2 : 1, count};
}

}  // namespace

void finish_run(const Leaves& leaves, const GemmProblem& problem, const Strip& strip, std::int64_t i, std::int64_t first,
                std::int64_t count, bool residual, float* out) {
  const StripRow& row = strip.rows[i];
  const std::int64_t place = strip.slot[i];
  if (place < 0) {
    std::memset(out, 0, static_cast<std::size_t>(count) * sizeof(float));
    return;
  }
  const Epilogue& epilogue = problem.epilogue;
  linear(leaves, problem, strip, place, row, gate_run(problem, first, count), out);
  if (epilogue.activation != Activation::none) {
    for (std::int64_t j = 0; j < count; ++j) out[j] = activate(epilogue.activation, out[j]);
  }
  if (epilogue.gate != Gate::none) {
    float up[kRunCols];
    linear(leaves, problem, strip, place, row, up_run(problem, first, count), up);
    for (std::int64_t j = 0; j < count; ++j) out[j] *= up[j];
  }
  if (!residual || epilogue.residual.absent() || epilogue.beta == 0.0f) return;
  float c[kRunCols];
  read_row(leaves, epilogue.residual, row.d_batch, row.d_row, row.d_row, first, count, c);
  for (std::int64_t j = 0; j < count; ++j) out[j] = out[j] + epilogue.beta * c[j];
}

}  // namespace finescale::cpu
