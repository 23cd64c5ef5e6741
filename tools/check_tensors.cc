#include "check_tensors.h"

#include "checkpoint/safetensors.h"
#include "verdict.h"
#include "verdict_output.h"

#include <finescale/gemm.h>

#include <fmt/format.h>

#include <cstring>
#include <deque>
#include <vector>

namespace finescale::tools {
namespace {

using checkpoint::Dtype;
using checkpoint::SafetensorsFile;
using checkpoint::StoredTensor;

// Codes of an element may be stored under its own dtype, or as bytes.
bool holds(Dtype dtype, Element element) {
  const bool bytes = dtype == Dtype::u8 || dtype == Dtype::i8;
  return checkpoint::element_of(dtype) == element || (bytes && bits(element) <= 8);
}

// The tensors of a file as matrices; keeps the global scales aligned.
class TensorMatrices {
 public:
  TensorMatrices(const SafetensorsFile& file, const OpOptions& options) : file_(file), options_(options) {}

  // The operand `name`, `name`_scale and `name`_global in a format. Ranks 1 (one row), 2 and 3 (batches). Absent where an
  // optional operand is not there.
  Result<Matrix> read(const std::string& name, const Format& format, bool optional = false) {
    const StoredTensor* codes = file_.find(name);
    if (codes == nullptr && optional) return Matrix{};
    if (codes == nullptr) return invalid_argument(fmt::format("tensor \"{}\" is missing", name));
    if (!holds(codes->dtype, format.element)) {
      return invalid_argument(
          fmt::format("tensor \"{}\": dtype {} does not hold {}", name, checkpoint::dtype_name(codes->dtype), format_name(format)));
    }
    auto matrix = shape_of(*codes, format);
    FINESCALE_TRY(matrix);
    FINESCALE_TRY(read_global(name, *matrix));
    FINESCALE_TRY(read_scales(name, *matrix));
    const auto bytes = storage(*matrix);
    FINESCALE_TRY(bytes);
    const auto stored = file_.bytes(*codes);
    if (static_cast<std::int64_t>(stored.size()) != bytes->data) {
      return invalid_argument(fmt::format("tensor \"{}\" has {} bytes: {} x {} x {} of {} needs {}", name, stored.size(), matrix->batch,
                                          matrix->rows, matrix->cols, format_name(format), bytes->data));
    }
    matrix->data = stored.data();
    return matrix;
  }

 private:
  Result<Matrix> shape_of(const StoredTensor& codes, const Format& format) const {
    const auto& shape = codes.shape;
    if (shape.empty() || shape.size() > 3) {
      return invalid_argument(
          fmt::format("tensor \"{}\" has shape {}: one to three dimensions are read", codes.name, checkpoint::shape_text(shape)));
    }
    Matrix matrix{format, 1, 1, shape.back()};
    if (shape.size() >= 2) matrix.rows = shape[shape.size() - 2];
    if (shape.size() == 3) matrix.batch = shape[0];
    const bool packed = bits(format.element) == 4 && bits(codes.dtype) == 8;
    if (packed) {
      matrix.cols *= 2;
      if (options_.k != 0 && options_.k == matrix.cols - 1) matrix.cols = options_.k;  // an odd K leaves half a byte
    }
    matrix.alignment = 1;
    return matrix;
  }

  Status read_scales(const std::string& operand, Matrix& matrix) {
    if (!matrix.format.has_scales()) return {};
    const std::string name = operand + "_scale";
    const StoredTensor* scales = file_.find(name);
    if (scales == nullptr)
      return invalid_argument(fmt::format("tensor \"{}\" is missing: {} has block scales", name, format_name(matrix.format)));
    if (!holds(scales->dtype, matrix.format.scale)) {
      return invalid_argument(fmt::format("tensor \"{}\": dtype {} does not hold the scales of {}", name,
                                          checkpoint::dtype_name(scales->dtype), format_name(matrix.format)));
    }
    matrix.scale_layout = options_.scale_layout;
    const auto bytes = storage(matrix);
    FINESCALE_TRY(bytes);
    const auto stored = file_.bytes(*scales);
    if (static_cast<std::int64_t>(stored.size()) != bytes->scales) {
      return invalid_argument(fmt::format("tensor \"{}\" has {} bytes: the {} scales of {} x {} x {} need {}", name, stored.size(),
                                          layout_name(matrix.scale_layout), matrix.batch, matrix.rows, matrix.cols, bytes->scales));
    }
    matrix.scales = stored.data();
    return {};
  }

  Status read_global(const std::string& operand, Matrix& matrix) {
    const std::string name = operand + "_global";
    const StoredTensor* global = file_.find(name);
    if (global == nullptr) return {};
    const auto stored = file_.bytes(*global);
    const auto count = static_cast<std::int64_t>(stored.size() / sizeof(float));
    if (global->dtype != Dtype::f32 || (count != 1 && count != matrix.batch)) {
      return invalid_argument(
          fmt::format("tensor \"{}\" has {} values of {}: one F32 decode multiplier is read, or one for each of {} batches", name, count,
                      checkpoint::dtype_name(global->dtype), matrix.batch));
    }
    std::vector<float>& values = globals_.emplace_back(static_cast<std::size_t>(count));
    std::memcpy(values.data(), stored.data(), stored.size());
    matrix.global_kind = count == 1 ? GlobalScale::one : GlobalScale::per_batch;
    matrix.global = values.data();
    return {};
  }

  const SafetensorsFile& file_;
  const OpOptions& options_;
  std::deque<std::vector<float>> globals_;
};

// The format of a plain optional operand: what its tensor says.
Format plain_format(const SafetensorsFile& file, const std::string& name) {
  const StoredTensor* tensor = file.find(name);
  return tensor == nullptr ? Format{} : Format{checkpoint::element_of(tensor->dtype)};
}

Status agrees(const char* flag, std::int64_t given, const char* what, std::int64_t found) {
  if (given == 0 || given == found) return {};
  return invalid_argument(fmt::format("{} = {}, but {} {}", flag, given, what, found));
}

Result<Verdict> judge_file(OpOptions& options, const SafetensorsFile& file) {
  TensorMatrices tensors(file, options);
  const auto a = tensors.read("a", options.a);
  FINESCALE_TRY(a);
  const auto b = tensors.read("b", options.b);
  FINESCALE_TRY(b);
  const auto b2 = tensors.read("b2", options.b, options.gate != Gate::second_matrix);
  FINESCALE_TRY(b2);
  const auto d = tensors.read("d", options.d);
  FINESCALE_TRY(d);
  const auto bias = tensors.read("bias", plain_format(file, "bias"), true);
  FINESCALE_TRY(bias);
  const auto residual = tensors.read("residual", plain_format(file, "residual"), true);
  FINESCALE_TRY(residual);
  FINESCALE_TRY(agrees("--m", options.m, "the rows of a are", a->rows));
  FINESCALE_TRY(agrees("--n", options.n, "the columns of d are", d->cols));
  FINESCALE_TRY(agrees("--k", options.k, "the columns of a are", a->cols));
  options.m = a->rows, options.n = d->cols, options.k = a->cols, options.batch = a->batch;
  options.bias = bias->format, options.residual = residual->format;

  GemmProblem problem;
  problem.a = *a;
  problem.b = *b;
  if (options.gate == Gate::second_matrix) problem.b2 = *b2;
  // check() does not write to D: it reads its tags and its global scale.
  problem.d = {d->format, d->batch, d->rows, d->cols};
  problem.d.scale_layout = d->scale_layout;
  problem.d.global_kind = d->global_kind;
  problem.d.alignment = 1;
  problem.d.global = const_cast<float*>(d->global);
  problem.epilogue.alpha = options.alpha;
  problem.epilogue.beta = options.beta;
  problem.epilogue.bias = *bias;
  problem.epilogue.residual = *residual;
  problem.epilogue.activation = options.activation;
  problem.epilogue.gate = options.gate;
  return judge(problem, *d, {}, {.seed = options.seed});
}

}  // namespace

Exit check_tensors(const CLI::App& command, OpOptions& options, const std::string& path, const Output& output) {
  if (options.op != Op::gemm && options.op != Op::gemv)
    return fail(invalid_argument(fmt::format("--tensors: reads gemm and gemv, not {}", op_name(options.op))));
  for (const char* flag : {"--inject", "--kernel", "--bias", "--residual", "--prepared", "--batch", "--weights", "--module"}) {
    if (command.count(flag) != 0) return fail(invalid_argument(fmt::format("{}: is not read with --tensors; the file says it all", flag)));
  }
  fill_formats(options);
  const auto file = SafetensorsFile::open(path);
  if (!file) return fail(file.status(), Blame::files);
  const auto verdict = judge_file(options, *file);
  if (!verdict) return fail({verdict.status().code, fmt::format("{}: {}", path, verdict.status().sentence)}, Blame::files);
  const std::vector<VerdictRow> rows{{path, *verdict, {}}};
  print_verdicts(describe(options), true, rows, {}, output);
  return exit_for_verdicts(rows);
}

}  // namespace finescale::tools
