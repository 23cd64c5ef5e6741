#include "checkpoint/safetensors_writer.h"

#include "checkpoint/json_text.h"

#include <finescale/formats/bits.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace finescale::checkpoint {
namespace {

// Indexes of the tensors in the order of their bytes.
std::vector<std::size_t> storage_order(const std::vector<TensorSpec>& tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::forward_as_tuple(-bits(tensors[a].dtype), tensors[a].name) <
           std::forward_as_tuple(-bits(tensors[b].dtype), tensors[b].name);
  });
  return order;
}

std::string metadata_text(const StringMap& metadata) {
  std::string text = "\"__metadata__\":{";
  for (const auto& [key, value] : metadata) {
    fmt::format_to(std::back_inserter(text), "{}{}:{}", text.back() == '{' ? "" : ",", json_quoted(key), json_quoted(value));
  }
  return text + "}";
}

std::string little_endian(std::uint64_t value) {
  std::string bytes;
  for (int byte = 0; byte < 8; ++byte) bytes.push_back(static_cast<char>(value >> (8 * byte) & 0xFF));
  return bytes;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

SafetensorsWriter::SafetensorsWriter(AtomicFile file, std::vector<Extent> extents, std::int64_t file_bytes)
    : file_(std::move(file)), extents_(std::move(extents)), file_bytes_(file_bytes) {}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::filesystem::path& path, const std::vector<TensorSpec>& tensors,
                                                    const StringMap& metadata, Existing existing) {
  std::vector<Extent> extents(tensors.size());
  std::string header = "{";
  if (!metadata.empty()) header += metadata_text(metadata);
  std::int64_t offset = 0;
  for (const std::size_t index : storage_order(tensors)) {
    const TensorSpec& tensor = tensors[index];
    const auto size = tensor_bytes(tensor);
    FINESCALE_TRY(size);
    const std::int64_t begin = offset;
    if (__builtin_add_overflow(begin, *size, &offset))
      return io_error(fmt::format("tensor \"{}\": the file would pass 2^63 bytes", tensor.name));
    extents[index] = {tensor.name, begin, offset};
    fmt::format_to(std::back_inserter(header), "{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                   header.size() == 1 ? "" : ",", json_quoted(tensor.name), dtype_name(tensor.dtype), fmt::join(tensor.shape, ","), begin,
                   offset);
  }
  header += "}";
  constexpr std::int64_t kLengthBytes = 8, kDataAlignment = 64;
  const std::int64_t data_start = round_up(kLengthBytes + static_cast<std::int64_t>(header.size()), kDataAlignment);
  header.resize(static_cast<std::size_t>(data_start - kLengthBytes), ' ');
  if (static_cast<std::int64_t>(header.size()) > kMaxHeaderBytes) {
    return io_error(fmt::format("{}: a header of {} bytes; the limit is {}", path.string(), header.size(), kMaxHeaderBytes));
  }

  std::vector<std::string_view> names;
  for (const TensorSpec& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    return invalid_argument(fmt::format("tensor \"{}\": the name stands twice", *twice));
  }
  if (std::binary_search(names.begin(), names.end(), "__metadata__"))
    return invalid_argument("tensor \"__metadata__\": the name is reserved");

  auto file = AtomicFile::create(path, existing);
  FINESCALE_TRY(file);
  FINESCALE_TRY(file->write_at(0, bytes_of(little_endian(header.size()) + header)));
  for (Extent& extent : extents) {
    extent.next += data_start;
    extent.end += data_start;
  }
  return SafetensorsWriter(*std::move(file), std::move(extents), data_start + offset);
}

Status SafetensorsWriter::append(std::size_t index, std::span<const std::byte> bytes) {
  Extent& extent = extents_[index];
  if (static_cast<std::int64_t>(bytes.size()) > extent.end - extent.next) {
    return internal_error(
        fmt::format("tensor \"{}\": {} bytes given, {} left of its size", extent.name, bytes.size(), extent.end - extent.next));
  }
  FINESCALE_TRY(file_.write_at(extent.next, bytes));
  extent.next += static_cast<std::int64_t>(bytes.size());
  return {};
}

Status SafetensorsWriter::commit() {
  for (const Extent& extent : extents_) {
    if (extent.next != extent.end) {
      return internal_error(fmt::format("tensor \"{}\": {} bytes were never written", extent.name, extent.end - extent.next));
    }
  }
  return file_.commit();
}

}  // namespace finescale::checkpoint
