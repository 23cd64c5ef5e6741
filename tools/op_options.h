// The grammar that check, bench and explain share: an op, its sizes, formats and layouts, its epilogue, and where it runs.
#pragma once

#include "checkpoint_weights.h"

#include <finescale/device.h>
#include <finescale/epilogue.h>
#include <finescale/grouped_gemm.h>
#include <finescale/quantize.h>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace finescale::tools {

enum class Op { quantize, dequantize, repack, gemm, gemv, grouped_gemm };

struct OpOptions {
  Op op = Op::gemm;
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1, groups = 4;
  Routing::Kind routing = Routing::Kind::end_offsets;
  std::int64_t tokens = 0;  // rows of A that the grouped rows gather; 0: no gather
  bool weighted = false;    // sum the gathered rows of a token by weights
  Format a{}, b{}, d{};     // absent: the op's default, filled in by parse
  ScaleLayout scale_layout = ScaleLayout::linear, to_scale_layout = ScaleLayout::linear;
  CodeLayout codes = CodeLayout::row_major, to_codes = CodeLayout::row_major;
  Format bias{}, residual{};  // absent: none
  float alpha = 1, beta = 1;
  Activation activation = Activation::none;
  Gate gate = Gate::none;
  Recipe recipe{};
  Producer producer = Producer::none;
  std::string weights, module = "*";                // a checkpoint that B is taken from; empty: random
  std::shared_ptr<const CheckpointWeights> loaded;  // the weights of it, after finish_op_options
  bool prepared = false, batch_invariant = false;
  std::string device = "cpu", kernel;  // kernel: empty, a name, or "all"
  std::int32_t threads = 0;
  std::uint64_t seed = 0;

  bool multiplies() const { return op == Op::gemm || op == Op::gemv || op == Op::grouped_gemm; }
  bool wants_all_kernels() const { return kernel == "all"; }
  // The name to force, or null.
  const char* forced_kernel() const { return kernel.empty() || wants_all_kernels() ? nullptr : kernel.c_str(); }
};

std::string_view op_name(Op op);

// Adds the grammar to a subcommand. After parsing, finish_op_options() fills in defaults and refuses options that the op
// does not read, sizes that are missing, and the like: invalid_argument, with a sentence.
void add_op_options(CLI::App& command, OpOptions& options);
Status finish_op_options(const CLI::App& command, OpOptions& options);

// A format that the options leave out becomes the op's usual one.
void fill_formats(OpOptions& options);

// The device that the options name, with as many threads.
Result<Device> open_device(const OpOptions& options);

// "gemm 256 x 1024 x 1024, a bf16, b nvfp4 (prepared), d bf16, bias f32": what was asked, in a line.
std::string describe(const OpOptions& options);

}  // namespace finescale::tools
