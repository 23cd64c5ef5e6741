#include "check/walk.h"

#include "check/judge.h"
#include "check/sample.h"

#include <finescale/access.h>

#include <algorithm>
#include <vector>

namespace finescale {
namespace {

constexpr std::int64_t kPanelRows = 64;

UnitGrid unit_grid(const MutableMatrix& d) {
  UnitGrid grid{d.batch, d.scale_rows(), d.scale_cols(), d.format.block_rows, d.format.block_cols};
  if (d.rows == 0 || d.cols == 0) grid.batches = 0;
  return grid;
}

class Walk {
 public:
  Walk(const Product& product, const Matrix& observed) : product_(product), observed_(observed), d_(product.gemm.d) {}

  void visit(const Unit& unit) {
    const std::int64_t row = unit.row * d_.format.block_rows, col = unit.col * d_.format.block_cols;
    const std::int64_t rows = std::min<std::int64_t>(d_.format.block_rows, d_.rows - row);
    const std::int64_t cols = std::min<std::int64_t>(d_.format.block_cols, d_.cols - col);
    exact_.clear();
    codes_.clear();
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      exact_.push_back(product_.exact(unit.batch, row + i / cols, col + i % cols));
      codes_.push_back(code_at(observed_, unit.batch, row + i / cols, col + i % cols));
    }
    report_.checked += rows * cols;
    if (d_.format.is_plain()) {
      const float observed = decode(d_.format.element, codes_[0]);
      note(judge_plain(exact_[0], d_.format.element, observed), unit.batch, row, col, observed, exact_[0]);
    } else {
      visit_block(unit.batch, row, col, cols);
    }
  }

  CheckReport report() const {
    CheckReport report = report_;
    report.ok = report.worst <= 1;
    report.outputs = d_.batch * d_.rows * d_.cols;
    return report;
  }

 private:
  void visit_block(std::int64_t batch, std::int64_t row, std::int64_t col, std::int64_t cols) {
    const std::int64_t scale_row = product_.scale_row(batch, row);
    ObservedBlock block{exact_, codes_, 0, global_at(d_, batch, row)};
    Format format = d_.format;
    float scale = 1.0f;
    if (scale_row == kNoScale) {  // a row of no group: zeros, whatever the scale
      format.scale = Element::none;
    } else if (format.has_scales()) {
      block.scale_code = scale_code_at(observed_, batch, scale_row, col);
      scale = decode(format.scale, block.scale_code);
    }
    const BlockVerdict verdict = judge_block(format, product_.gemm.recipe, block);
    const std::int64_t at = std::max<std::int64_t>(verdict.where, 0);
    const float stored = decode(format.element, codes_[at]) * scale * block.global;
    note(verdict.worst, batch, row + at / cols, col + at % cols, stored, exact_[at]);
  }

  void note(double worst, std::int64_t batch, std::int64_t row, std::int64_t col, double observed, const ExactValue& exact) {
    if (!(worst > report_.worst)) return;
    report_.worst = worst;
    report_.batch = batch;
    report_.row = row;
    report_.col = col;
    report_.observed = observed;
    report_.exact = static_cast<double>(exact.finite ? exact.value.middle() : exact.special);
    report_.bound = d_.format.is_plain() ? output_bound(exact, d_.format.element) : static_cast<double>(exact.error);
  }

  const Product& product_;
  const Matrix& observed_;
  const Matrix d_;
  CheckReport report_;
  std::vector<ExactValue> exact_;
  std::vector<std::uint32_t> codes_;
};

// Rows in panels, so that the decoded rows of A stay while every column passes.
void visit_all(const UnitGrid& grid, std::int64_t panel, Walk& walk) {
  for (std::int64_t batch = 0; batch < grid.batches; ++batch) {
    for (std::int64_t first = 0; first < grid.rows; first += panel) {
      for (std::int64_t col = 0; col < grid.cols; ++col) {
        for (std::int64_t row = first; row < std::min(first + panel, grid.rows); ++row) walk.visit({batch, row, col});
      }
    }
  }
}

}  // namespace

CheckReport walk_outputs(const Product& product, const Matrix& observed, const CheckOptions& options) {
  const UnitGrid grid = unit_grid(product.gemm.d);
  const double columns =
      static_cast<double>(std::max<std::int64_t>(product.gemm.a.cols, 1)) * (product.gemm.epilogue.gate == Gate::none ? 1 : 2);
  const double unit_products = columns * product.rows_per_output * static_cast<double>(grid.unit_rows * grid.unit_cols);
  const double affordable = static_cast<double>(options.max_products) / unit_products;
  Walk walk(product, observed);
  if (static_cast<double>(grid.size()) <= affordable) {
    visit_all(grid, std::clamp<std::int64_t>(cached_rows(product.gemm) / 2 / grid.unit_rows, 1, kPanelRows), walk);
  } else {
    for (const Unit& unit : sample_units(grid, static_cast<std::int64_t>(affordable), options.seed)) walk.visit(unit);
  }
  return walk.report();
}

}  // namespace finescale
