// One product as a test sees it: tags by name, operands made from them on the host, placed on a device, run, fetched.
#pragma once

#include "check/operands.h"
#include "support/placed_matrix.h"
#include "support/run_kernels.h"

#include <finescale/access.h>
#include <finescale/gemm.h>
#include <finescale/prepare.h>

#include <cstdint>
#include <string>
#include <utility>

namespace finescale::test {

struct GemmCase {
  Format a = kBf16, b = kNvfp4, d = kF32;
  std::int64_t batch = 1, m = 3, n = 5, k = 32;
  ScaleLayout a_scales = ScaleLayout::linear, b_scales = ScaleLayout::linear, d_scales = ScaleLayout::linear;
  CodeLayout a_codes = CodeLayout::row_major, b_codes = CodeLayout::row_major, d_codes = CodeLayout::row_major;
  bool prepared = false;  // B, and B2, in the layout that the device prefers; the CPU's where it has none
  GlobalScale a_global = GlobalScale::none, b_global = GlobalScale::none, d_global = GlobalScale::none;
  Gate gate = Gate::none;
  Activation activation = Activation::none;
  Format bias{}, residual{};  // absent: none
  bool in_place = false;      // the residual is D itself
  float alpha = 1.0f, beta = 1.0f;
  bool strided = false;    // gaps in every operand, a column stride in plain A and D, block scales of A column by column
  bool broadcast = false;  // one B, one bias and one residual for every batch
  std::int32_t alignment = 16;
  Values values = Values::usual;
  bool batch_invariant = false;
  std::uint64_t seed = 1;

  std::string label() const {
    const auto flag = [](bool set, const char* name) { return set ? std::string(", ") + name : std::string(); };
    return std::to_string(batch) + "x" + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " " +
           std::string(format_name(a)) + " " + std::string(layout_name(a_scales)) + " * " + std::string(format_name(b)) + " " +
           std::string(layout_name(b_scales)) + " -> " + std::string(format_name(d)) + " " + std::string(layout_name(d_scales)) +
           ", codes " + std::string(layout_name(a_codes)) + " " + std::string(layout_name(b_codes)) + flag(prepared, "prepared") +
           ", globals " + std::to_string(static_cast<int>(a_global)) + std::to_string(static_cast<int>(b_global)) +
           std::to_string(static_cast<int>(d_global)) + ", gate " + std::to_string(static_cast<int>(gate)) + ", activation " +
           std::to_string(static_cast<int>(activation)) + ", bias " + std::string(format_name(bias)) + ", residual " +
           std::string(format_name(residual)) + flag(in_place, "in place") + ", alpha " + std::to_string(alpha) + ", beta " +
           std::to_string(beta) + flag(strided, "strided") + flag(broadcast, "broadcast") + ", alignment " + std::to_string(alignment) +
           flag(values == Values::wide, "wide values") + flag(batch_invariant, "batch invariant");
  }
};

// The operands of a product. Host memory or, placed, memory of a device.
template <class Owner>
struct GemmOperands {
  Owner a, b, b2, d, bias, residual;
};

namespace detail {

inline OwnedMatrix owned_matrix(const Matrix& tags, std::int64_t groups = 1) {
  if (tags.absent()) return {};
  auto matrix = OwnedMatrix::make(tags, groups);
  if (!matrix) {
    ADD_FAILURE() << matrix.status().sentence;
    std::abort();
  }
  return std::move(*matrix);
}

inline OwnedMatrix random_owned(const Matrix& tags, std::uint64_t seed, Values values, std::int64_t groups = 1,
                                std::span<const std::int64_t> padded_rows = {}) {
  OwnedMatrix matrix = owned_matrix(tags, groups);
  if (!tags.absent()) fill_random(matrix.view(), seed, values, padded_rows);
  return matrix;
}

// Gaps after rows and between batches; plain matrices by every other column where `spread`, block scales column by column.
inline void put_gaps(Matrix& m, bool spread) {
  if (m.absent()) return;
  if (m.format.is_plain() && spread) m.col_stride = 2;
  m.row_stride = round_up(m.cols * m.col_stride, 2) + 6;
  m.batch_stride = m.rows * m.row_stride + 10;
  if (m.format.has_scales() && m.scale_layout == ScaleLayout::linear) {
    m.scale_row_stride = 1;
    m.scale_col_stride = m.scale_rows() + 3;
  }
}

inline OwnedMatrix prepared(const OwnedMatrix& from, const Device& device) {
  if (from.view().absent()) return {};
  const auto preferred = prepared_like(from.view(), device);
  const auto tags = preferred.status().code == Code::unsupported ? prepared_like(from.view(), cpu_device()) : preferred;
  EXPECT_TRUE(tags) << tags.status().sentence;
  if (!tags) return {};
  OwnedMatrix to = owned_matrix(*tags);
  const Status status = run_kernel(reference_kernel<PrepareProblem>(), PrepareProblem{.from = from.view(), .to = to.view()}, cpu_device());
  EXPECT_TRUE(status) << status.sentence;
  for (std::int64_t i = 0; i < from.global_count(); ++i) to.view().global[i] = from.view().global[i];
  return to;
}

}  // namespace detail

// Tags of each operand; with pointers filled in, the problem.
inline GemmProblem gemm_tags(const GemmCase& c) {
  const bool fused = c.gate != Gate::none && c.gate != Gate::second_matrix;
  GemmProblem p{.batch_invariant = c.batch_invariant};
  p.a = {
      .format = c.a, .batch = c.batch, .rows = c.m, .cols = c.k, .codes = c.a_codes, .scale_layout = c.a_scales, .global_kind = c.a_global};
  p.b = {.format = c.b,
         .batch = c.batch,
         .rows = fused ? 2 * c.n : c.n,
         .cols = c.k,
         .codes = c.b_codes,
         .scale_layout = c.b_scales,
         .global_kind = c.b_global};
  p.d = {
      .format = c.d, .batch = c.batch, .rows = c.m, .cols = c.n, .codes = c.d_codes, .scale_layout = c.d_scales, .global_kind = c.d_global};
  p.epilogue = {.alpha = c.alpha, .beta = c.beta, .activation = c.activation, .gate = c.gate};
  p.epilogue.bias = {.format = c.bias, .batch = c.batch, .rows = 1, .cols = c.gate != Gate::none ? 2 * c.n : c.n};
  p.epilogue.residual = {.format = c.residual, .batch = c.batch, .rows = c.m, .cols = c.n};
  if (c.strided) {
    Matrix d = p.d;
    detail::put_gaps(p.a, true);
    detail::put_gaps(p.b, false);
    detail::put_gaps(d, true);
    detail::put_gaps(p.epilogue.residual, c.in_place);
    p.d.row_stride = d.row_stride, p.d.col_stride = d.col_stride, p.d.batch_stride = d.batch_stride;
    p.d.scale_row_stride = d.scale_row_stride, p.d.scale_col_stride = d.scale_col_stride;
  }
  if (c.broadcast) {
    p.b.batch_stride = p.b.scale_batch_stride = p.epilogue.bias.batch_stride = 0;
    if (!c.in_place) p.epilogue.residual.batch_stride = 0;
  }
  if (c.gate == Gate::second_matrix) p.b2 = p.b;
  for (Matrix* m : {&p.a, &p.b, &p.b2, &p.epilogue.bias, &p.epilogue.residual}) m->alignment = c.alignment;
  p.d.alignment = c.alignment;
  return p;
}

// Random operands; the same for the same case. D is poisoned, or holds the residual where the case is in place.
inline GemmOperands<OwnedMatrix> make_gemm_operands(const GemmCase& c, const GemmProblem& tags, const Device& device) {
  GemmOperands<OwnedMatrix> host;
  host.a = detail::random_owned(tags.a, c.seed, c.values);
  host.b = detail::random_owned(tags.b, c.seed + 1, c.values);
  host.b2 = detail::random_owned(tags.b2, c.seed + 2, c.values);
  host.bias = detail::random_owned(tags.epilogue.bias, c.seed + 3, Values::usual);
  host.residual = detail::random_owned(tags.epilogue.residual, c.seed + 4, Values::usual);
  host.d = detail::owned_matrix(tags.d);
  for (std::int64_t i = 0; i < host.d.global_count(); ++i) host.d.view().global[i] = 0x1.3p-4f * static_cast<float>(i % 5 + 1);
  if (c.in_place) std::memcpy(host.d.data().data(), host.residual.data().data(), static_cast<std::size_t>(host.d.data().bytes()));
  if (c.prepared) {
    host.b = detail::prepared(host.b, device);
    host.b2 = detail::prepared(host.b2, device);
  }
  return host;
}

template <class Owner>
GemmProblem gemm_problem(const GemmProblem& tags, const GemmOperands<Owner>& operands, bool in_place) {
  GemmProblem p = tags;
  p.a = operands.a.view();
  p.b = operands.b.view();
  p.b2 = operands.b2.view();
  p.d = operands.d.view();
  p.epilogue.bias = operands.bias.view();
  p.epilogue.residual = in_place ? Matrix(operands.d.view()) : Matrix(operands.residual.view());
  return p;
}

inline Result<GemmOperands<PlacedMatrix>> place(const Device& device, GemmOperands<OwnedMatrix> host) {
  GemmOperands<PlacedMatrix> placed;
  for (const auto& [to, from] : {std::pair{&placed.a, &host.a},
                                 {&placed.b, &host.b},
                                 {&placed.b2, &host.b2},
                                 {&placed.d, &host.d},
                                 {&placed.bias, &host.bias},
                                 {&placed.residual, &host.residual}}) {
    auto matrix = PlacedMatrix::place(device, std::move(*from));
    FINESCALE_TRY(matrix);
    *to = std::move(*matrix);
  }
  return placed;
}

// Runs one row on fresh operands and brings D back.
inline Result<OwnedMatrix> run_case(const GemmCase& c, const Kernel<GemmProblem>& kernel, const Device& device) {
  const GemmProblem tags = gemm_tags(c);
  auto placed = place(device, make_gemm_operands(c, tags, device));
  FINESCALE_TRY(placed);
  FINESCALE_TRY(run_kernel(kernel, gemm_problem(tags, *placed, c.in_place), device));
  FINESCALE_TRY(placed->d.fetch(device));
  return std::move(placed->d).release();
}

}  // namespace finescale::test
