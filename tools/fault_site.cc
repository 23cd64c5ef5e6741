// The search for a site of a fault in a product: seeded outputs, the exact effect measured on each.
#include "fault.h"
#include "one_output.h"

#include "check/operands.h"
#include "ops/validate.h"

#include <finescale/access.h>
#include <finescale/routing.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace finescale::tools {
namespace {

constexpr std::int64_t kMaxAttempts = 4096;
constexpr double kSmallProducts = 0x1p26;                        // multiply-adds; check judges every output of such a problem
constexpr std::int64_t kMaxColumnsRead = std::int64_t{1} << 24;  // over all attempts: about a second

// A judged output is a weighted sum of products; without a weighted sum, of one.
struct Term {
  OutputOrigin origin;
  double weight = 1;
};

class Picker {
 public:
  explicit Picker(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t bits() { return hash_bits(seed_, next_++); }
  std::int64_t below(std::int64_t count) { return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(count)); }

 private:
  std::uint64_t seed_, next_ = 0;
};

const GemmProblem& product_of(const GemmProblem& problem) { return problem; }
const GemmProblem& product_of(const GroupedGemmProblem& problem) { return problem.gemm; }
GemmProblem& product_of(GemmProblem& problem) { return problem; }
GemmProblem& product_of(GroupedGemmProblem& problem) { return problem.gemm; }

struct Output {
  std::int64_t batch = 0, row = 0, col = 0;
};

// Any output of a small problem; of a large one, of which check judges a sample, a corner: those are always in it.
Output pick_output(const GemmProblem& problem, Picker& picker) {
  const MutableMatrix& d = problem.d;
  const double products =
      static_cast<double>(d.batch) * static_cast<double>(d.rows) * static_cast<double>(d.cols) * static_cast<double>(problem.a.cols);
  if (products <= kSmallProducts) return {picker.below(d.batch), picker.below(d.rows), picker.below(d.cols)};
  return {0, picker.below(2) * (d.rows - 1), picker.below(2) * (d.cols - 1)};
}

std::vector<Term> terms_of(const GemmProblem&, const Output& at) {
  return {{{at.batch, at.row, at.row, at.batch, at.batch, at.row, at.col}}};
}

// Empty where the row belongs to no group.
std::vector<Term> terms_of(const GroupedGemmProblem& problem, const Output& output) {
  std::vector<Term> terms;
  const auto add = [&](std::int64_t row) {
    const GroupedRow at = grouped_row(problem, row);
    if (at.group < 0) return;
    const std::int64_t scale_row = scale_row_of(problem, problem.gemm.a, at.group, at.a_row);
    terms.push_back({{at.a_batch, at.a_row, scale_row, at.group, output.batch, output.row, output.col}, weight_of(problem.routing, row)});
  };
  if (!is_summed(problem.routing)) {
    add(output.batch * problem.gemm.d.rows + output.row);
    return terms;
  }
  for (std::int64_t row = 0; row < grouped_rows(problem); ++row) {
    if (problem.routing.gather[row] == output.row) add(row);
  }
  return terms;
}

enum class Operand { a, b, up };

struct Site {
  Operand operand = Operand::b;
  Change change;
};

// The row of B that a site lies in, for the output of `origin`.
std::int64_t weight_row(const GemmProblem& problem, Operand operand, std::int64_t col) {
  const Gate gate = problem.epilogue.gate;
  if (operand == Operand::b) return gate_row(gate, col, problem.d.cols);
  return gate == Gate::second_matrix ? col : up_row(gate, col, problem.d.cols);
}

template <class Product>
auto& matrix_of(Product& problem, Operand operand) {
  if (operand == Operand::a) return problem.a;
  return operand == Operand::up && problem.epilogue.gate == Gate::second_matrix ? problem.b2 : problem.b;
}

Site pick_site(FaultKind kind, const GemmProblem& problem, bool may_change_a, const OutputOrigin& origin, Picker& picker) {
  std::vector<Operand> operands{Operand::b};
  if (problem.epilogue.gate != Gate::none) operands.push_back(Operand::up);
  if (may_change_a && !problem.a.format.is_plain()) operands.push_back(Operand::a);
  Site site;
  site.operand = operands[static_cast<std::size_t>(picker.below(static_cast<std::int64_t>(operands.size())))];
  const Matrix& m = matrix_of(problem, site.operand);
  const bool in_a = site.operand == Operand::a;
  site.change = {kind, in_a ? origin.a_batch : origin.b_batch, in_a ? origin.a_row : weight_row(problem, site.operand, origin.col),
                 picker.below(m.cols)};
  if (kind == FaultKind::tile) {
    site.change.row -= site.change.row % kTileRows;
    site.change.col -= site.change.col % kTileCols;
  }
  const int width = bits(m.format.element);
  do {
    site.change.bits = static_cast<std::uint32_t>(picker.bits()) & ((1u << width) - 1);
  } while (!is_finite(decode(m.format.element, site.change.bits)));
  return site;
}

// A weighted sum of exact outputs.
struct Enclosure {
  double low = 0, high = 0, bound = 0;

  void add(const ExactOutput& exact, double weight) {
    low += std::min(weight * exact.low, weight * exact.high);
    high += std::max(weight * exact.low, weight * exact.high);
    bound += std::abs(weight) * exact.bound;
  }
};

struct Effect {
  Enclosure right, wrong;
};

Result<Effect> measure(const GemmProblem& problem, const std::vector<Term>& terms, const Site& site, const Accumulation& accumulation) {
  Effect effect;
  for (const Term& term : terms) {
    const auto one = OneOutput::extract(problem, term.origin);
    FINESCALE_TRY(one);
    const auto right = one->exact(accumulation);
    FINESCALE_TRY(right);
    effect.right.add(*right, term.weight);
    const bool reads_site = site.operand == Operand::a || term.origin.b_batch == site.change.batch;
    if (reads_site) {
      site.change.seen_by_one_row().make(site.operand == Operand::a ? one->a() : site.operand == Operand::b ? one->b() : one->up());
    }
    const auto wrong = one->exact(accumulation);
    FINESCALE_TRY(wrong);
    effect.wrong.add(*wrong, term.weight);
  }
  return effect;
}

// Does a block-format D show it: the codes that twice the bound allows before and after have none in common, for the scale
// that is stored and for its two neighbours.
bool codes_differ(const Effect& effect, double margin, const Matrix& clean, const OutputOrigin& at) {
  const Format& format = clean.format;
  const double global = global_at(clean, at.d_batch, at.d_row);
  for (int step = -1; step <= 1; ++step) {
    double scale = global;
    if (format.has_scales()) {
      const std::uint32_t stored = scale_code_at(clean, at.d_batch, at.d_row, at.col);
      const auto code = static_cast<std::uint32_t>(static_cast<std::int64_t>(stored) + (format.scale == Element::f32 ? 0 : step));
      scale *= decode(format.scale, code);
    }
    const auto decoded = [&](double value) { return decode(format.element, encode(format.element, static_cast<float>(value / scale))); };
    if (!(scale > 0) || !std::isfinite(scale)) return false;
    const bool above = decoded(effect.wrong.low - margin) > decoded(effect.right.high + margin);
    const bool below = decoded(effect.wrong.high + margin) < decoded(effect.right.low - margin);
    if (!above && !below) return false;
  }
  return true;
}

// The exact effect in units of twice the bound: above 1 it must be caught.
double strength(const Effect& effect) {
  const double distance = std::max(effect.wrong.low - effect.right.high, effect.right.low - effect.wrong.high);
  const double bound = 2 * std::max(effect.right.bound, effect.wrong.bound);
  return std::isfinite(distance) && std::isfinite(bound) && distance > 0 ? distance / bound : 0;
}

Status replace_operand(const Site& site, GemmProblem& problem, OperandStore& store) {
  Matrix& matrix = matrix_of(problem, site.operand);
  const auto bytes = storage(matrix);
  FINESCALE_TRY(bytes);
  const auto copy = store.poisoned(matrix);
  FINESCALE_TRY(copy);
  if (bytes->data != 0) std::memcpy(copy->data, matrix.data, static_cast<std::size_t>(bytes->data));
  if (bytes->scales != 0) std::memcpy(copy->scales, matrix.scales, static_cast<std::size_t>(bytes->scales));
  std::copy_n(matrix.global, global_count(matrix), copy->global);
  site.change.make(*copy);
  matrix = *copy;
  return {};
}

std::string sentence(const Site& site, const OutputOrigin& at, double strength) {
  const char* kinds[] = {"", "scale", "code", "tile"};
  const char* operands[] = {"A", "B", "the up half of B"};
  return fmt::format("planted a {} fault in {} at batch {}, row {}, column {}: output ({}, {}, {}) moves by {:.3g} times its bound",
                     kinds[static_cast<int>(site.change.kind)], operands[static_cast<int>(site.operand)], site.change.batch,
                     site.change.row, site.change.col, at.d_batch, at.d_row, at.col, 2 * strength);
}

template <class Problem>
Result<std::string> plant(FaultKind kind, const Problem& given, bool may_change_a, const Accumulation& accumulation,
                          const Matrix& given_clean, std::uint64_t seed, OperandStore& store, Problem& faulty) {
  const Problem problem = with_strides(given);
  const GemmProblem& product = product_of(problem);
  const Matrix clean = with_strides(given_clean);
  const bool anything = product.d.batch > 0 && product.d.rows > 0 && product.d.cols > 0 && product.a.cols > 0 && product.a.rows > 0;
  const std::int64_t attempts = std::clamp<std::int64_t>(kMaxColumnsRead / std::max<std::int64_t>(product.a.cols, 1), 64, kMaxAttempts);
  Picker picker(seed);
  for (std::int64_t attempt = 0; anything && attempt < attempts; ++attempt) {
    const std::vector<Term> terms = terms_of(problem, pick_output(product, picker));
    if (terms.empty()) continue;
    const OutputOrigin& at = terms.front().origin;
    const Site site = pick_site(kind, product, may_change_a, at, picker);
    const auto effect = measure(product, terms, site, accumulation);
    FINESCALE_TRY(effect);
    const double found = strength(*effect) / (terms.size() > 1 ? 2 : 1);  // a sum rounds once more for each term
    if (found <= 1) continue;
    const double margin = 2 * std::max(effect->right.bound, effect->wrong.bound);
    if (!clean.format.is_plain() && !codes_differ(*effect, margin, clean, at)) continue;
    FINESCALE_TRY(replace_operand(site, product_of(faulty), store));
    return sentence(site, at, found);
  }
  return invalid_argument("--inject: no site where this fault would move an output by more than twice its bound; try another seed or size");
}

}  // namespace

Result<std::string> plant_fault(FaultKind kind, const GemmProblem& problem, const Accumulation& accumulation, const Matrix& clean,
                                std::uint64_t seed, OperandStore& store, GemmProblem& faulty) {
  return plant(kind, problem, true, accumulation, clean, seed, store, faulty);
}

Result<std::string> plant_fault(FaultKind kind, const GroupedGemmProblem& problem, const Accumulation& accumulation, const Matrix& clean,
                                std::uint64_t seed, OperandStore& store, GroupedGemmProblem& faulty) {
  return plant(kind, problem, false, accumulation, clean, seed, store, faulty);
}

}  // namespace finescale::tools
