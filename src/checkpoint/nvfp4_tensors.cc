#include "checkpoint/nvfp4_tensors.h"

#include "checkpoint/tensor_names.h"

#include <finescale/formats/bits.h>
#include <finescale/formats/format.h>
#include <finescale/layouts/packed_codes.h>

#include <fmt/format.h>

#include <cstdint>
#include <utility>

namespace finescale::checkpoint {
namespace {

Status expect(const Tensor& tensor, Dtype dtype, const Shape& shape) {
  if (tensor.dtype == dtype && tensor.shape == shape) return {};
  return io_error(fmt::format("tensor \"{}\": is {} {}, but the weight needs {} {}", tensor.name, dtype_name(tensor.dtype),
                              shape_text(tensor.shape), dtype_name(dtype), shape_text(shape)));
}

Status expect_scalar(const Tensor& tensor) {
  if (tensor.dtype == Dtype::f32 && tensor.bytes.size() == sizeof(float)) return {};
  return io_error(fmt::format("tensor \"{}\": is {} {}, but the weight needs one F32", tensor.name, dtype_name(tensor.dtype),
                              shape_text(tensor.shape)));
}

// The largest power of two, up to 16, that divides both addresses: what the matrix may promise.
std::int32_t common_alignment(const std::byte* a, const std::byte* b) {
  const auto both = reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) | 16u;
  return static_cast<std::int32_t>(both & (~both + 1));
}

}  // namespace

float read_scalar(const Tensor& tensor) { return bits_float(load_code(tensor.bytes.data(), 0, 32, false)); }

Result<std::optional<QuantizedWeight>> find_nvfp4(const Checkpoint& checkpoint, const Tensor& tensor, const Nvfp4Names& names,
                                                  const Encoding& encoding) {
  const auto module = module_of(tensor.name, names.codes);
  if (!module || tensor.dtype != Dtype::u8) return std::optional<QuantizedWeight>{};
  const auto sibling = [&](std::string_view suffix) { return checkpoint.find(fmt::format("{}{}", *module, suffix)); };
  QuantizedWeight weight;
  weight.encoding = &encoding;
  weight.module = std::string(*module);
  weight.codes = &tensor;
  weight.global = sibling(names.global);
  if (weight.global == nullptr) return std::optional<QuantizedWeight>{};
  weight.scales = sibling(names.scales);
  if (weight.scales == nullptr)
    return io_error(fmt::format("tensor \"{}\": its block scales {}{} are missing", tensor.name, *module, names.scales));
  if (tensor.shape.size() != 2) {
    return io_error(fmt::format("tensor \"{}\": shape {}: only matrices are read in this encoding", tensor.name, shape_text(tensor.shape)));
  }
  const std::int64_t rows = tensor.shape[0], cols = 2 * tensor.shape[1];
  FINESCALE_TRY(expect(*weight.scales, Dtype::f8_e4m3, {rows, ceil_div(cols, kNvfp4.block_cols)}));
  FINESCALE_TRY(expect_scalar(*weight.global));
  weight.input_scale = sibling(names.input_scale);
  if (weight.input_scale != nullptr) FINESCALE_TRY(expect_scalar(*weight.input_scale));
  for (const std::string_view suffix : names.modifiers) {
    if (const Tensor* modifier = sibling(suffix)) weight.modifiers.push_back(modifier);
  }
  weight.tags.format = kNvfp4;
  weight.tags.rows = rows;
  weight.tags.cols = cols;
  weight.tags.data = tensor.bytes.data();
  weight.tags.scales = weight.scales->bytes.data();
  weight.tags.alignment = common_alignment(weight.tags.data, weight.tags.scales);
  weight.global_scale = encoding.multiplier(read_scalar(*weight.global));
  return std::optional<QuantizedWeight>(std::move(weight));
}

Result<WeightTensors> nvfp4_tensors(std::string_view module, std::int64_t rows, std::int64_t cols, const Nvfp4Names& names) {
  if (cols % 2 != 0) return unsupported(fmt::format("K = {} is odd: the encoding stores whole bytes of two codes and no K", cols));
  const auto name = [&](std::string_view suffix) { return fmt::format("{}{}", module, suffix); };
  return WeightTensors{.codes = {name(names.codes), Dtype::u8, {rows, cols / 2}},
                       .scales = {name(names.scales), Dtype::f8_e4m3, {rows, ceil_div(cols, kNvfp4.block_cols)}},
                       .global = {name(names.global), Dtype::f32, names.scalar},
                       .input_scale = {name(names.input_scale), Dtype::f32, names.scalar}};
}

}  // namespace finescale::checkpoint
