// Input: a whole safetensors file. Property: it is refused with a sentence, or every tensor lies inside it, without gap or overlap.
#include "checkpoint/safetensors.h"
#include "fuzz_target.h"

#include <span>

using namespace finescale::checkpoint;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(input, size));
  const auto file = SafetensorsFile::view(bytes);
  if (!file) {
    FINESCALE_FUZZ_EXPECT(file.status().code == finescale::Code::io_error && !file.status().sentence.empty());
    return 0;
  }
  const std::byte* next = nullptr;
  for (const StoredTensor& tensor : file->tensors()) {
    const auto data = file->bytes(tensor);
    FINESCALE_FUZZ_EXPECT(data.data() >= bytes.data() && data.data() + data.size() <= bytes.data() + bytes.size());
    FINESCALE_FUZZ_EXPECT(next == nullptr || data.data() == next);
    FINESCALE_FUZZ_EXPECT(file->find(tensor.name) == &tensor);
    const auto taken = tensor_bytes(tensor);
    FINESCALE_FUZZ_EXPECT(taken && *taken == static_cast<std::int64_t>(data.size()));
    next = data.data() + data.size();
  }
  FINESCALE_FUZZ_EXPECT(next == nullptr || next == bytes.data() + bytes.size());
  return 0;
}
