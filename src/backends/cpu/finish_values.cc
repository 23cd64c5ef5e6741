#include "backends/cpu/finish_values.h"

#include "backends/cpu/row_reader.h"

#include <finescale/finish.h>

#include <algorithm>
#include <cstring>

namespace finescale::cpu {
namespace {

// The sum of row n of b (up: of b2, whose panels follow b's).
float sum_at(const Strip& strip, std::int64_t first_panel, std::int64_t place, std::int64_t n) {
  return strip.sums_of(first_panel + n / kPanelRows, place)[n % kPanelRows];
}

// alpha gA gB acc. Factors of 1 change no bit, so the usual case is one product.
void apply_factors(const GemmProblem& problem, const StripRow& row, std::int64_t first, std::int64_t count, float* z) {
  const float alpha = problem.epilogue.alpha, g_a = global_at(problem.a, row.a_batch, row.a_row);
  const bool rows_differ = problem.b.global_kind == GlobalScale::per_row;
  if (alpha != 1.0f || g_a != 1.0f || rows_differ) {
    for (std::int64_t i = 0; i < count; ++i) z[i] = product_in_order(z[i], alpha, g_a, global_at(problem.b, row.group, first + i));
    return;
  }
  const float g_b = global_at(problem.b, row.group, 0);
  for (std::int64_t i = 0; i < count; ++i) z[i] *= g_b;
}

void finish_plain(const Leaves& leaves, const GemmProblem& problem, const Strip& strip, std::int64_t place, const StripRow& row,
                  std::int64_t first, std::int64_t count, float* z) {
  for (std::int64_t i = 0; i < count;) {
    const std::int64_t n = first + i, run = std::min(count - i, kPanelRows - n % kPanelRows);
    std::memcpy(z + i, strip.sums_of(n / kPanelRows, place) + n % kPanelRows, static_cast<std::size_t>(run) * sizeof(float));
    i += run;
  }
  apply_factors(problem, row, first, count, z);
  const Epilogue& epilogue = problem.epilogue;
  if (!epilogue.bias.absent()) {
    float bias[kRunCols];
    read_row(leaves, epilogue.bias, row.group, 0, 0, first, count, bias);
    for (std::int64_t i = 0; i < count; ++i) z[i] += bias[i];
  }
  if (epilogue.activation == Activation::none) return;
  for (std::int64_t i = 0; i < count; ++i) z[i] = activate(epilogue.activation, z[i]);
}

void finish_gated(const GemmProblem& problem, const Strip& strip, std::int64_t place, const StripRow& row, std::int64_t first,
                  std::int64_t count, float* out) {
  const Gate gate = problem.epilogue.gate;
  const std::int64_t up_panel = gate == Gate::second_matrix ? ceil_div(problem.b.rows, kPanelRows) : 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t n = first + i;
    const OutputIndex at{row.d_batch, row.d_row, n, row.a_batch, row.a_row, row.group};
    const float acc = sum_at(strip, 0, place, gate_row(gate, n, problem.d.cols));
    const float acc_up = sum_at(strip, up_panel, place, gate == Gate::second_matrix ? n : up_row(gate, n, problem.d.cols));
    out[i] = finish_activation(problem, at, acc, acc_up);
  }
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
  if (epilogue.gate == Gate::none) {
    finish_plain(leaves, problem, strip, place, row, first, count, out);
  } else {
    finish_gated(problem, strip, place, row, first, count, out);
  }
  if (!residual || epilogue.residual.absent() || epilogue.beta == 0.0f) return;
  float c[kRunCols];
  read_row(leaves, epilogue.residual, row.d_batch, row.d_row, row.d_row, first, count, c);
  for (std::int64_t j = 0; j < count; ++j) out[j] = out[j] + epilogue.beta * c[j];
}

}  // namespace finescale::cpu
