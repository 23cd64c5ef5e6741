// Which units of a buffer a map has handed out: a unit claimed twice, or outside the buffer, is a fault of the map.
#pragma once

#include <cstdint>
#include <vector>

namespace finescale::test {

class Occupancy {
 public:
  explicit Occupancy(std::int64_t units) : taken_(static_cast<std::size_t>(units)) {}

  // Claims units [first, first + count); false where one is outside or taken.
  bool claim(std::int64_t first, std::int64_t count = 1) {
    if (first < 0 || count > units() || first > units() - count) return false;
    for (std::int64_t unit = first; unit < first + count; ++unit) {
      if (taken_[static_cast<std::size_t>(unit)]) return false;
      taken_[static_cast<std::size_t>(unit)] = true;
      ++claimed_;
    }
    return true;
  }

  std::int64_t units() const { return static_cast<std::int64_t>(taken_.size()); }
  std::int64_t claimed() const { return claimed_; }
  // One past the last unit claimed.
  std::int64_t end() const {
    std::int64_t end = units();
    while (end > 0 && !taken_[static_cast<std::size_t>(end - 1)]) --end;
    return end;
  }

 private:
  std::vector<bool> taken_;
  std::int64_t claimed_ = 0;
};

}  // namespace finescale::test
