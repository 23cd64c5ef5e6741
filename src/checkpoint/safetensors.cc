#include "checkpoint/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

namespace finescale::checkpoint {

std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

Result<std::int64_t> tensor_bytes(const TensorSpec& tensor) {
  const auto overflow = [&] {
    return io_error(fmt::format("tensor \"{}\": shape {} of {} takes more than 2^63 - 1 bits", tensor.name, shape_text(tensor.shape),
                                dtype_name(tensor.dtype)));
  };
  std::int64_t product = bits(tensor.dtype);
  bool empty = false;  // an extent of 0 makes the tensor empty, but the other extents must not overflow either
  for (const std::int64_t extent : tensor.shape) {
    if (extent < 0) return io_error(fmt::format("tensor \"{}\": shape {} holds a negative extent", tensor.name, shape_text(tensor.shape)));
    empty = empty || extent == 0;
    if (extent != 0 && __builtin_mul_overflow(product, extent, &product)) return overflow();
  }
  if (empty) return 0;
  if (product % 8 != 0) {
    return io_error(fmt::format("tensor \"{}\": shape {} of {} takes {} bits, which is not a whole number of bytes", tensor.name,
                                shape_text(tensor.shape), dtype_name(tensor.dtype), product));
  }
  return product / 8;
}

SafetensorsFile::SafetensorsFile(std::span<const std::byte> file, SafetensorsHeader header) : file_(file), header_(std::move(header)) {
  by_name_.reserve(header_.tensors.size());
  for (std::size_t i = 0; i < header_.tensors.size(); ++i) by_name_.emplace(header_.tensors[i].name, i);
}

Result<SafetensorsFile> SafetensorsFile::view(std::span<const std::byte> file) {
  auto header = parse_safetensors(file);
  FINESCALE_TRY(header);
  return SafetensorsFile(file, *std::move(header));
}

Result<SafetensorsFile> SafetensorsFile::open(const std::filesystem::path& path) {
  auto mapping = MappedFile::open(path);
  FINESCALE_TRY(mapping);
  auto file = view(mapping->bytes());
  if (!file) return Status{file.status().code, fmt::format("{}: {}", path.string(), file.status().sentence)};
  file->mapping_ = *std::move(mapping);
  return file;
}

void SafetensorsFile::release(std::span<const std::byte> part) const {
  if (mapping_) mapping_->release(part);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &header_.tensors[found->second];
}

std::span<const std::byte> SafetensorsFile::bytes(const StoredTensor& tensor) const {
  return file_.subspan(static_cast<std::size_t>(header_.data_start + tensor.begin), static_cast<std::size_t>(tensor.end - tensor.begin));
}

}  // namespace finescale::checkpoint
