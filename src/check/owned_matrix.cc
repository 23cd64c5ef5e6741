#include "check/owned_matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace finescale {
namespace {

constexpr int kGuardByte = 0xA5;

}  // namespace

GuardedBuffer::GuardedBuffer(std::int64_t bytes, std::uint8_t fill) : bytes_(bytes) {
  if (bytes == 0) return;
  const std::int64_t total = round_up(bytes, kGuard) + 2 * kGuard;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kGuard, static_cast<std::size_t>(total))));
  if (memory_ == nullptr) {
    bytes_ = 0;
    return;
  }
  std::memset(memory_.get(), kGuardByte, static_cast<std::size_t>(total));
  std::memset(data(), fill, static_cast<std::size_t>(bytes));
}

void GuardedBuffer::Free::operator()(std::byte* memory) const { std::free(memory); }

bool GuardedBuffer::guards_intact() const {
  if (bytes_ == 0) return true;
  const auto intact = [](std::byte byte) { return byte == std::byte{kGuardByte}; };
  const std::byte* begin = memory_.get();
  const std::byte* end = data() + bytes_;
  return std::all_of(begin, begin + kGuard, intact) && std::all_of(end, begin + round_up(bytes_, kGuard) + 2 * kGuard, intact);
}

Result<OwnedMatrix> OwnedMatrix::make(Matrix tags, std::int64_t groups) {
  const auto bytes = storage(tags, groups);
  FINESCALE_TRY(bytes);
  OwnedMatrix matrix;
  matrix.tags_ = tags;
  matrix.data_ = GuardedBuffer(bytes->data);
  matrix.scales_ = GuardedBuffer(bytes->scales);
  matrix.globals_ = GuardedBuffer(4 * finescale::global_count(tags));
  if (matrix.data_.bytes() != bytes->data || matrix.scales_.bytes() != bytes->scales) {
    return out_of_memory(fmt::format("a matrix of {} x {} x {} {} needs {} bytes of host memory", tags.batch, tags.rows, tags.cols,
                                     format_name(tags.format), bytes->data + bytes->scales));
  }
  return matrix;
}

MutableMatrix OwnedMatrix::view() const {
  return {tags_.format,
          tags_.batch,
          tags_.rows,
          tags_.cols,
          tags_.row_stride,
          tags_.col_stride,
          tags_.batch_stride,
          tags_.scale_row_stride,
          tags_.scale_col_stride,
          tags_.scale_batch_stride,
          tags_.codes,
          tags_.scale_layout,
          tags_.global_kind,
          tags_.alignment,
          data_.data(),
          scales_.data(),
          reinterpret_cast<float*>(globals_.data())};
}

}  // namespace finescale
