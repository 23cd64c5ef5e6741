#include "op_operands.h"

#include "printing.h"

#include "check/operands.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace finescale::tools {

namespace {

double physical_memory() { return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

Result<MutableMatrix> OperandStore::poisoned(const Matrix& tags, std::int64_t groups) {
  const auto bytes = storage(tags, groups);
  FINESCALE_TRY(bytes);
  FINESCALE_TRY(claim_host_memory(static_cast<double>(bytes->data) + static_cast<double>(bytes->scales)));
  auto matrix = OwnedMatrix::make(tags, groups);
  FINESCALE_TRY(matrix);
  matrices_.push_back(*std::move(matrix));
  return matrices_.back().view();
}

Status OperandStore::claim_host_memory(double bytes) {
  host_bytes_ += bytes;
  if (host_bytes_ > physical_memory()) {
    return out_of_memory(fmt::format("the operands need {}, and this machine has {} of memory", readable_bytes(host_bytes_),
                                     readable_bytes(physical_memory())));
  }
  return {};
}

Result<MutableMatrix> OperandStore::random(const Matrix& tags, std::uint64_t seed) {
  auto matrix = poisoned(tags);
  FINESCALE_TRY(matrix);
  fill_random(*matrix, seed);
  return matrix;
}

std::span<std::int32_t> OperandStore::integers(std::int64_t count) { return integers_.emplace_back(static_cast<std::size_t>(count)); }

std::span<float> OperandStore::floats(std::int64_t count) { return floats_.emplace_back(static_cast<std::size_t>(count)); }

Result<std::byte*> OperandStore::upload_bytes(const void* host, std::int64_t bytes) {
  if (bytes == 0) return nullptr;
  auto memory = allocate(bytes);
  FINESCALE_TRY(memory);
  FINESCALE_TRY(copy_to_device(device_, memory->data(), static_cast<const std::byte*>(host), bytes));
  memory_.push_back(*std::move(memory));
  return memory_.back().data();
}

Result<MutableMatrix> OperandStore::upload(const Matrix& host, std::int64_t groups) {
  MutableMatrix copy{host.format,
                     host.batch,
                     host.rows,
                     host.cols,
                     host.row_stride,
                     host.col_stride,
                     host.batch_stride,
                     host.scale_row_stride,
                     host.scale_col_stride,
                     host.scale_batch_stride,
                     host.codes,
                     host.scale_layout,
                     host.global_kind,
                     host.alignment};
  if (host.absent()) return copy;
  const auto bytes = storage(host, groups);
  FINESCALE_TRY(bytes);
  const auto data = upload_bytes(host.data, bytes->data);
  FINESCALE_TRY(data);
  const auto scales = upload_bytes(host.scales, bytes->scales);
  FINESCALE_TRY(scales);
  const auto global = upload_bytes(host.global, 4 * global_count(host));
  FINESCALE_TRY(global);
  copy.data = *data;
  copy.scales = *scales;
  copy.global = reinterpret_cast<float*>(*global);
  return copy;
}

template <class Number>
Result<const Number*> OperandStore::upload(const Number* host, std::int64_t count) {
  if (host == nullptr || on_host()) return host;
  const auto bytes = upload_bytes(host, count * static_cast<std::int64_t>(sizeof(Number)));
  FINESCALE_TRY(bytes);
  return reinterpret_cast<const Number*>(*bytes);
}
template Result<const std::int32_t*> OperandStore::upload(const std::int32_t*, std::int64_t);
template Result<const float*> OperandStore::upload(const float*, std::int64_t);

Result<Matrix> OperandStore::download(const Matrix& matrix, std::int64_t groups) {
  if (on_host()) return matrix;
  auto host = poisoned(matrix, groups);
  FINESCALE_TRY(host);
  const auto bytes = storage(matrix, groups);
  FINESCALE_TRY(bytes);
  FINESCALE_TRY(copy_to_host(device_, host->data, matrix.data, bytes->data));
  FINESCALE_TRY(copy_to_host(device_, host->scales, matrix.scales, bytes->scales));
  FINESCALE_TRY(copy_to_host(device_, reinterpret_cast<std::byte*>(host->global), reinterpret_cast<const std::byte*>(matrix.global),
                             4 * global_count(matrix)));
  return Matrix(*host);
}

bool OperandStore::guards_intact() const {
  return std::all_of(matrices_.begin(), matrices_.end(), [](const OwnedMatrix& matrix) { return matrix.guards_intact(); });
}

}  // namespace finescale::tools
