// quantize: a plain matrix, optionally through a producer, into a block format.
//
//   to = Q(producer(from)), Q by a Recipe (docs/quantizers.md): global scale g, block scale s, code = enc(x / (s g))
#pragma once

#include <finescale/epilogue.h>
#include <finescale/formats/recipe.h>
#include <finescale/kernel.h>
#include <finescale/matrix.h>

#include <cstdint>

namespace finescale {

// What forms the value before it is quantized. *_mul: act(gate) * up, both taken from `from`.
enum class Producer : std::uint8_t { none, silu_mul, gelu_tanh_mul, gelu_erf_mul, gelu_tanh, gelu_erf, rms_norm };

FINESCALE_HD constexpr bool is_gated(Producer producer) {
  return producer == Producer::silu_mul || producer == Producer::gelu_tanh_mul || producer == Producer::gelu_erf_mul;
}

struct ProducerParameters {
  Producer kind = Producer::none;
  Gate order =
      Gate::none;  // *_mul: halves_gate_first or halves_up_first, along the columns of `from`; alternating_rows means alternating columns
  Element intermediate = Element::f32;  // the produced value is rounded to f32, f16 or bf16 before it is quantized
  float eps = 1e-6f;                    // rms_norm: y = x / sqrt(mean(x^2) + eps) * (weight + weight_offset)
  float weight_offset = 0.0f;           // rms_norm: 0 or 1
  Matrix weight{};                      // rms_norm: 1 x 1 x K plain; absent: ones
  MutableMatrix residual{};             // rms_norm: added to x first, and the sum written back; absent: none
};

// Rows that share a global scale (GlobalScale::per_row): segment i ends before row ends[i], ascending, the last is `rows`.
// count 0: every row is a segment of its own.
struct RowSegments {
  const std::int32_t* ends = nullptr;  // in the device's memory
  std::int32_t count = 0;
};

struct QuantizeProblem {
  Matrix from{};       // f32, f16 or bf16, batch x rows x K (gated producers: 2K columns), any strides
  MutableMatrix to{};  // a block format, any layout but prepared ones; global is written, or read if global_given
  bool global_given = false;
  Recipe recipe{};
  ProducerParameters producer{};
  RowSegments segments{};        // with GlobalScale::per_row
  const char* kernel = nullptr;  // forced; null: the device's, else chosen
};

// Validates, chooses and configures; pointers are not looked at. invalid_argument or unsupported with a sentence.
Result<Plan<QuantizeProblem>> plan(const QuantizeProblem& problem, const Device& device);
// Checks pointers and workspace, then writes to.data, to.scales (padding as zeros) and, unless given, to.global.
Status run(const Plan<QuantizeProblem>& plan, const QuantizeProblem& problem, const Execution& execution);
// plan + run.
Status quantize(const QuantizeProblem& problem, const Execution& execution);
// Workspace that is enough for this problem and every one with fewer rows, whatever row is chosen.
Choice workspace_bound(const QuantizeProblem& problem, const Device& device);
std::vector<Explanation> explain(const QuantizeProblem& problem, const Device& device);

}  // namespace finescale
