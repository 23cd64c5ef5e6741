// What the rules on problems are made of: one operand against its role, one number against another. Every sentence has the
// shape "argument = value: rule", the argument written as in the caller's code.
#pragma once

#include <finescale/formats/recipe.h>
#include <finescale/matrix.h>
#include <finescale/status.h>

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace finescale {

template <class Value>
Status refused(std::string_view name, std::string_view field, const Value& value, std::string_view rule) {
  return invalid_argument(fmt::format("{}.{} = {}: {}", name, field, value, rule));
}

enum class Access : std::uint8_t {
  read,     // a stride of 0 broadcasts
  written,  // every element has a place of its own; no prepared layout
};

// Which layouts of block scales beside linear, scale_128x4 and scale_8x4.
enum class PerGroup : std::uint8_t { refused, allowed };

// The operand is there, obeys validate_matrix, its bytes and elements fit int64, and its role allows its layouts and strides.
Status validate_operand(std::string_view name, const Matrix& matrix, Access access, PerGroup per_group = PerGroup::refused,
                        std::int64_t groups = 1);

// f32, f16 or bf16 without scales of any kind, on top of validate_operand.
Status validate_plain(std::string_view name, const Matrix& matrix, Access access);

// A format with scales, on top of validate_operand. `why` ends the sentence.
Status require_block_format(std::string_view name, const Matrix& matrix, std::string_view why);

// A block format whose global scale is an input or an output of a quantizer: the format makes one, and a block has only one.
Status validate_quantized_global(std::string_view name, const Matrix& matrix);

// The options of a recipe that only some scale encodings know: a power rule with E8M0, pow2 with FP32 scales.
Status validate_scale_rules(std::string_view name, const Recipe& recipe, const Format& format);

// name.field must equal `wanted`, which `meaning` explains: "must be K = 128, the columns of b".
Status require_size(std::string_view name, std::string_view field, std::int64_t value, std::int64_t wanted, std::string_view meaning);

// "nvfp4", or the parts of a format that has no name.
std::string describe(const Format& format);
std::string_view describe(GlobalScale kind);

}  // namespace finescale
