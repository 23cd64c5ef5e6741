#include "ops/dispatch.h"

#include <fmt/ranges.h>

#include <numeric>

namespace finescale {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

Status check_buffer(std::string_view name, const std::byte* buffer, std::int64_t bytes, std::int64_t needed) {
  if (needed == 0) return {};
  if (buffer == nullptr) return invalid_argument(fmt::format("workspace.{} is null: this plan needs {} bytes", name, needed));
  if (bytes < needed) return invalid_argument(fmt::format("workspace.{}_bytes = {}: this plan needs {}", name, bytes, needed));
  if (reinterpret_cast<std::uintptr_t>(buffer) % 256 != 0) {
    return invalid_argument(fmt::format("workspace.{} = {}: must be 256-byte aligned", name, fmt::ptr(buffer)));
  }
  return {};
}

}  // namespace

std::string refusal_sentence(std::string_view kernel, const Refusal& refusal) {
  if (refusal.got == 0 && refusal.want == 0) return fmt::format("{}: {}", kernel, refusal.rule);
  return fmt::format("{}: {} (got {}, wants {})", kernel, refusal.rule, refusal.got, refusal.want);
}

Status unknown_kernel(std::string_view name, const std::vector<std::string_view>& known) {
  std::vector<std::string_view> nearest = known;
  std::stable_sort(nearest.begin(), nearest.end(), [&](auto a, auto b) { return edit_distance(a, name) < edit_distance(b, name); });
  nearest.resize(std::min<std::size_t>(nearest.size(), 3));
  return invalid_argument(fmt::format("kernel = \"{}\": no kernel has that name; the nearest are {}", name, fmt::join(nearest, ", ")));
}

Status check_workspace(const Choice& choice, const Workspace& workspace) {
  FINESCALE_TRY(check_buffer("scratch", workspace.scratch, workspace.scratch_bytes, choice.scratch_bytes));
  return check_buffer("sync", workspace.sync, workspace.sync_bytes, choice.sync_bytes);
}

}  // namespace finescale
