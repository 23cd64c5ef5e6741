// Input: parts, each two bytes of length (little-endian) and as many bytes: config.json, hf_quant_config.json, the JSON of a safetensors
// header; what is left is the data. A part of length 0 is absent. The header's length is filled in, so that mutations reach what
// lies behind it. Property: recognition, plans and inspection end, and what they call a weight can be read whole.
#include "checkpoint/convert_checkpoint.h"
#include "checkpoint/dequantize_checkpoint.h"
#include "checkpoint/inspect_checkpoint.h"
#include "checkpoint/quantize_checkpoint.h"
#include "fuzz_target.h"

#include <finescale/access.h>

#include <algorithm>
#include <string>
#include <string_view>

using namespace finescale;
using namespace finescale::checkpoint;

namespace {

std::string_view take_part(std::string_view& input) {
  if (input.size() < 2) return {};
  const std::size_t length = static_cast<unsigned char>(input[0]) | static_cast<std::size_t>(static_cast<unsigned char>(input[1])) << 8;
  input.remove_prefix(2);
  const std::string_view part = input.substr(0, std::min(length, input.size()));
  input.remove_prefix(part.size());
  return part;
}

void read_whole(const Matrix& packed) {
  const Matrix matrix = with_strides(packed);
  float sum = 0;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    for (std::int64_t col = 0; col < matrix.cols; ++col) sum += element_at(matrix, 0, row, col) * block_scale_at(matrix, 0, row, col);
  }
  volatile float kept = sum * matrix.global[0];
  (void)kept;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(input), size);
  StringMap configs;
  for (const char* name : {kConfigFile, kModelOptConfigFile}) {
    if (const std::string_view text = take_part(rest); !text.empty()) configs[name] = text;
  }
  const std::string_view header = take_part(rest);
  std::string file;
  for (int byte = 0; byte < 8; ++byte) file.push_back(static_cast<char>(header.size() >> (8 * byte) & 0xFF));
  file.append(header).append(rest);
  const auto checkpoint = Checkpoint::view(std::as_bytes(std::span(file)), std::move(configs));
  if (!checkpoint) return 0;
  for (const Encoding* encoding : encodings()) {
    const auto plan = plan_convert_checkpoint(*checkpoint, *encoding);
    FINESCALE_FUZZ_EXPECT(!plan || plan->tensors.size() == checkpoint->tensors().size());
  }
  const auto quantized = plan_quantize_checkpoint(*checkpoint, {.exclude = {"*b?*"}});
  const auto dequantized = plan_dequantize_checkpoint(*checkpoint, {});
  FINESCALE_FUZZ_EXPECT(!quantized || quantized->tensors.size() == checkpoint->tensors().size());
  FINESCALE_FUZZ_EXPECT(!dequantized || dequantized->tensors.size() == checkpoint->tensors().size());
  const auto inspection = inspect_checkpoint(*checkpoint);
  if (!inspection) return 0;
  for (const InspectedWeight& inspected : inspection->weights) read_whole(inspected.weight.matrix());
  return 0;
}
