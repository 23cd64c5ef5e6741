#include "verdict.h"

#include "op_operands.h"

#include <finescale/access.h>

#include <cstring>
#include <limits>

namespace finescale::tools {
namespace {

Verdict verdict_of(const CheckReport& report) {
  return {report.ok,       report.worst, report.batch, report.row,     report.col,
          report.observed, report.exact, report.bound, report.checked, report.outputs};
}

double value_at(const Matrix& m, std::int64_t batch, std::int64_t row, std::int64_t col) {
  return static_cast<double>(element_at(m, batch, row, col)) * block_scale_at(m, batch, row, col) * global_at(m, batch, row);
}

// Counts the codes and block scales that differ, and keeps the first place.
void compare_elements(const Matrix& expected, const Matrix& observed, Verdict& verdict) {
  const Format& format = expected.format;
  for (std::int64_t b = 0; b < expected.batch; ++b) {
    for (std::int64_t r = 0; r < expected.rows; ++r) {
      for (std::int64_t c = 0; c < expected.cols; ++c) {
        bool differs = code_at(expected, b, r, c) != code_at(observed, b, r, c);
        if (format.has_scales() && r % format.block_rows == 0 && c % format.block_cols == 0) {
          differs |= scale_code_at(expected, b, r, c) != scale_code_at(observed, b, r, c);
        }
        if (!differs) continue;
        if (verdict.worst++ == 0) {
          verdict.batch = b, verdict.row = r, verdict.col = c;
          verdict.exact = value_at(expected, b, r, c), verdict.observed = value_at(observed, b, r, c);
        }
      }
    }
  }
}

bool same_bytes(const void* a, const void* b, std::int64_t bytes) {
  return bytes == 0 || std::memcmp(a, b, static_cast<std::size_t>(bytes)) == 0;
}

// Every byte counts: codes, block scales, padding (zeros in both) and global scales.
Result<Verdict> compare(const Matrix& expected_tags, const Matrix& observed_tags) {
  const Matrix expected = with_strides(expected_tags), observed = with_strides(observed_tags);
  const auto bytes = storage(expected);
  FINESCALE_TRY(bytes);
  Verdict verdict;
  verdict.checked = verdict.outputs = expected.batch * expected.rows * expected.cols;
  verdict.ok = same_bytes(expected.data, observed.data, bytes->data) && same_bytes(expected.scales, observed.scales, bytes->scales) &&
               same_bytes(expected.global, observed.global, 4 * global_count(expected));
  if (verdict.ok) return verdict;
  compare_elements(expected, observed, verdict);
  if (verdict.worst == 0) verdict.worst = 1;  // a global scale, or padding
  return verdict;
}

template <class Problem>
Result<Verdict> compare_with_reference(const Problem& problem, const char* reference, const Matrix& observed) {
  const auto cpu = Device::open("cpu", {.threads = 1});
  FINESCALE_TRY(cpu);
  OperandStore store(*cpu);
  auto expected = on_device(problem, store);
  FINESCALE_TRY(expected);
  expected->kernel = reference;
  const auto made = plan(*expected, *cpu);
  FINESCALE_TRY(made);
  const auto scratch = store.allocate(made->choice.scratch_bytes);
  FINESCALE_TRY(scratch);
  FINESCALE_TRY(run(*made, *expected, {&*cpu, nullptr, {scratch->data(), scratch->bytes()}}));
  return compare(output_of(*expected), observed);
}

}  // namespace

Result<Verdict> judge(const GemmProblem& problem, const Matrix& observed, const Accumulation& accumulation, const CheckOptions& options) {
  const auto report = check(problem, observed, accumulation, options);
  FINESCALE_TRY(report);
  return verdict_of(*report);
}

Result<Verdict> judge(const GroupedGemmProblem& problem, const Matrix& observed, const Accumulation& accumulation,
                      const CheckOptions& options) {
  const auto report = check(problem, observed, accumulation, options);
  FINESCALE_TRY(report);
  return verdict_of(*report);
}

Result<Verdict> judge(const QuantizeProblem& problem, const Matrix& observed, const Accumulation&, const CheckOptions&) {
  return compare_with_reference(problem, "quantize_reference", observed);
}

Result<Verdict> judge(const DequantizeProblem& problem, const Matrix& observed, const Accumulation&, const CheckOptions&) {
  return compare_with_reference(problem, "dequantize_reference", observed);
}

Result<Verdict> judge(const RepackProblem& problem, const Matrix& observed, const Accumulation&, const CheckOptions&) {
  return compare_with_reference(problem, "repack_reference", observed);
}

}  // namespace finescale::tools
