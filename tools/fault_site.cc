// The search for a site of a fault in a product: seeded outputs, the exact effect measured on each.
#include "fault.h"

#include "check/operands.h"
#include "ops/validate.h"

#include <finescale/access.h>
#include <finescale/check.h>
#include <finescale/routing.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

namespace finescale::tools {
namespace {

constexpr std::int64_t kMaxAttempts = 4096;
constexpr std::int64_t kMaxColumnsRead = std::int64_t{1} << 24;  // over all attempts: about a second
constexpr double kSmallProducts = 0x1p26;                        // multiply-adds; check judges every output of such a problem

class Picker {
 public:
  explicit Picker(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t bits() { return hash_bits(seed_, next_++); }
  std::int64_t below(std::int64_t count) { return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(count)); }

 private:
  std::uint64_t seed_, next_ = 0;
};

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

// The batch of B that an output reads; nothing where its row belongs to no group. Of a sum, the first.
std::optional<std::int64_t> weight_batch(const GemmProblem&, const Output& at) { return at.batch; }

std::optional<std::int64_t> weight_batch(const GroupedGemmProblem& problem, const Output& at) {
  const bool summed = is_summed(problem.routing);
  const std::int64_t first = summed ? 0 : at.batch * problem.gemm.d.rows + at.row;
  const std::int64_t end = summed ? grouped_rows(problem) : first + 1;
  for (std::int64_t row = first; row < end; ++row) {
    if (summed && problem.routing.gather[row] != at.row) continue;
    if (const std::int64_t group = grouped_row(problem, row).group; group >= 0) return group;
  }
  return std::nullopt;
}

enum class Operand { a, b, up };

// The matrix that holds an operand; the up half lies in B, or in a matrix of its own.
Matrix& matrix_of(GemmProblem& problem, Operand operand) {
  if (operand == Operand::a) return problem.a;
  return operand == Operand::up && problem.epilogue.gate == Gate::second_matrix ? problem.b2 : problem.b;
}

std::int64_t row_of(const GemmProblem& problem, Operand operand, const Output& at) {
  const Gate gate = problem.epilogue.gate;
  if (operand == Operand::a) return at.row;
  if (operand == Operand::b) return gate_row(gate, at.col, problem.d.cols);
  return gate == Gate::second_matrix ? at.col : up_row(gate, at.col, problem.d.cols);
}

struct Site {
  Operand operand = Operand::b;
  Change change;
};

Site pick_site(FaultKind kind, const std::vector<Operand>& operands, GemmProblem& problem, const Output& at, std::int64_t b_batch,
               Picker& picker) {
  Site site;
  site.operand = operands[static_cast<std::size_t>(picker.below(static_cast<std::int64_t>(operands.size())))];
  const Matrix& m = matrix_of(problem, site.operand);
  Change& change = site.change;
  change.kind = kind;
  change.batch = site.operand == Operand::a ? at.batch : b_batch;
  change.row = row_of(problem, site.operand, at);
  change.col = picker.below(m.cols);
  if (kind == FaultKind::tile) change.row -= change.row % kTileRows, change.col -= change.col % kTileCols;
  const std::uint32_t mask = (1u << bits(m.format.element)) - 1;
  do {
    change.new_code = static_cast<std::uint32_t>(picker.bits()) & mask;
  } while (!is_finite(decode(m.format.element, change.new_code)));
  return site;
}

Result<MutableMatrix> copy_of(const Matrix& matrix, OperandStore& store) {
  const auto bytes = storage(matrix);
  FINESCALE_TRY(bytes);
  const auto copy = store.poisoned(matrix);
  FINESCALE_TRY(copy);
  if (bytes->data != 0) std::memcpy(copy->data, matrix.data, static_cast<std::size_t>(bytes->data));
  if (bytes->scales != 0) std::memcpy(copy->scales, matrix.scales, static_cast<std::size_t>(bytes->scales));
  std::copy_n(matrix.global, global_count(matrix), copy->global);
  return copy;
}

struct Effect {
  ExactOutput right, wrong;

  double margin() const { return 2 * std::max(right.bound, wrong.bound); }
  // In units of twice the bound: above 1 it must be caught.
  double strength() const {
    const double distance = std::max(wrong.low - right.high, right.low - wrong.high);
    return std::isfinite(distance) && std::isfinite(margin()) && distance > 0 ? distance / margin() : 0;
  }
};

// Does a block-format D show it: the codes that twice the bound allows before and after have none in common, for the scale
// that is stored and for its two neighbours.
bool codes_differ(const Effect& effect, const Matrix& clean, const Output& at) {
  const Format& format = clean.format;
  for (int step = -1; step <= 1; ++step) {
    double scale = global_at(clean, at.batch, at.row);
    if (format.has_scales()) {
      const std::uint32_t stored = scale_code_at(clean, at.batch, at.row, at.col);
      scale *= decode(format.scale, stored + static_cast<std::uint32_t>(format.scale == Element::f32 ? 0 : step));
    }
    if (!(scale > 0) || !std::isfinite(scale)) return false;
    const auto decoded = [&](double value) { return decode(format.element, encode(format.element, static_cast<float>(value / scale))); };
    const bool above = decoded(effect.wrong.low - effect.margin()) > decoded(effect.right.high + effect.margin());
    const bool below = decoded(effect.wrong.high + effect.margin()) < decoded(effect.right.low - effect.margin());
    if (!above && !below) return false;
  }
  return true;
}

template <class Problem>
Result<Effect> measure(const Problem& right, const Problem& wrong, const Output& at, const Accumulation& accumulation) {
  const auto exact = exact_output(right, at.batch, at.row, at.col, accumulation);
  FINESCALE_TRY(exact);
  const auto changed = exact_output(wrong, at.batch, at.row, at.col, accumulation);
  FINESCALE_TRY(changed);
  return Effect{*exact, *changed};
}

std::string sentence(const Site& site, const Output& at, double strength) {
  const char* const operands[] = {"A", "B", "the up half of B"};
  const Change& change = site.change;
  return fmt::format("planted a {} fault in {} at batch {}, row {}, column {}: output ({}, {}, {}) moves by {:.3g} times its bound",
                     fault_name(change.kind), operands[static_cast<int>(site.operand)], change.batch, change.row, change.col, at.batch,
                     at.row, at.col, 2 * strength);
}

// The operands that a fault may lie in, as copies that can be changed and changed back.
class Copies {
 public:
  static Result<Copies> make(GemmProblem& problem, const std::vector<Operand>& operands, OperandStore& store) {
    Copies copies;
    for (const Operand operand : operands) {
      const auto copy = copy_of(matrix_of(problem, operand), store);
      FINESCALE_TRY(copy);
      copies.list_.push_back({operand, *copy});
    }
    return copies;
  }
  const MutableMatrix& of(Operand operand) const {
    return std::find_if(list_.begin(), list_.end(), [&](const Entry& entry) { return entry.operand == operand; })->copy;
  }

 private:
  struct Entry {
    Operand operand;
    MutableMatrix copy;
  };
  std::vector<Entry> list_;
};

template <class Problem>
Result<std::string> plant(FaultKind kind, const Problem& given, const Accumulation& accumulation, const Matrix& given_clean,
                          std::vector<Operand> operands, std::uint64_t seed, OperandStore& store, Problem& faulty) {
  Problem problem = with_strides(given);
  GemmProblem& product = product_of(problem);
  const Matrix clean = with_strides(given_clean);
  if (product.epilogue.gate != Gate::none) operands.push_back(Operand::up);
  const auto copies = Copies::make(product, operands, store);
  FINESCALE_TRY(copies);
  const bool anything = product.d.batch > 0 && product.d.rows > 0 && product.d.cols > 0 && product.a.cols > 0;
  const std::int64_t attempts = std::clamp<std::int64_t>(kMaxColumnsRead / std::max<std::int64_t>(product.a.cols, 1), 64, kMaxAttempts);
  Picker picker(seed);
  for (std::int64_t attempt = 0; anything && attempt < attempts; ++attempt) {
    const Output at = pick_output(product, picker);
    const auto b_batch = weight_batch(problem, at);
    if (!b_batch) continue;
    Site site = pick_site(kind, operands, product, at, *b_batch, picker);
    const MutableMatrix& copy = copies->of(site.operand);
    site.change.make(copy);
    Problem changed = problem;
    matrix_of(product_of(changed), site.operand) = copy;
    const auto effect = measure(problem, changed, at, accumulation);
    FINESCALE_TRY(effect);
    if (effect->strength() > 1 && (clean.format.is_plain() || codes_differ(*effect, clean, at))) {
      matrix_of(product_of(faulty), site.operand) = copy;
      return sentence(site, at, effect->strength());
    }
    site.change.undo(copy);
  }
  return invalid_argument("--inject: no site where this fault would move an output by more than twice its bound; try another seed or size");
}

}  // namespace

Result<std::string> plant_fault(FaultKind kind, const GemmProblem& problem, const Accumulation& accumulation, const Matrix& clean,
                                std::uint64_t seed, OperandStore& store, GemmProblem& faulty) {
  std::vector<Operand> operands{Operand::b};
  if (!problem.a.format.is_plain()) operands.push_back(Operand::a);
  return plant(kind, problem, accumulation, clean, operands, seed, store, faulty);
}

Result<std::string> plant_fault(FaultKind kind, const GroupedGemmProblem& problem, const Accumulation& accumulation, const Matrix& clean,
                                std::uint64_t seed, OperandStore& store, GroupedGemmProblem& faulty) {
  return plant(kind, problem, accumulation, clean, {Operand::b}, seed, store, faulty);
}

}  // namespace finescale::tools
