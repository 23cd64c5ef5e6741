// gemm: D = epilogue(alpha * A * B^T), batched; GEMV is M = 1.
//
//   D[b,m,n] = out(act(alpha gA gB sum_k A[b,m,k] B[b,n,k] + bias[b,n]) + beta C[b,m,n])
//   A: activations M x K, plain or any block format. B: weights N x K (gated: 2N x K), any block format.
#pragma once

#include <finescale/epilogue.h>
#include <finescale/formats/recipe.h>
#include <finescale/kernel.h>
#include <finescale/matrix.h>

namespace finescale {

struct GemmProblem {
  Matrix a{};         // batch x M x K
  Matrix b{};         // batch x N x K (gated in one matrix: 2N)
  Matrix b2{};        // second_matrix only: the N rows of up
  MutableMatrix d{};  // batch x M x N: plain, or a block format, quantized from the unrounded FP32 value; d.global is an input
  Epilogue epilogue{};
  Recipe recipe{};               // of D in a block format: profile finescale, max scales
  bool batch_invariant = false;  // a row's bits do not depend on M, on other rows, or on the group layout
  const char* kernel = nullptr;  // forced; null: the device's, else chosen
};

Result<Plan<GemmProblem>> plan(const GemmProblem& problem, const Device& device);
Status run(const Plan<GemmProblem>& plan, const GemmProblem& problem, const Execution& execution);
Status gemm(const GemmProblem& problem, const Execution& execution);
Choice workspace_bound(const GemmProblem& problem, const Device& device);
std::vector<Explanation> explain(const GemmProblem& problem, const Device& device);

}  // namespace finescale
