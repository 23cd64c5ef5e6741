// What is in a checkpoint, and what looks wrong. Nothing is judged by names alone; nothing is changed.
#pragma once

#include "checkpoint/encoding.h"

#include <finescale/status.h>

#include <cstdint>
#include <string>
#include <vector>

namespace finescale::checkpoint {

// mention: legal, but worth knowing. suspicious: probably wrong, or read differently by other tools.
enum class Severity : std::uint8_t { mention, suspicious };

struct Finding {
  Severity severity = Severity::mention;
  std::string tensor;  // tensor or module; empty: the whole checkpoint
  std::string sentence;
};

// Counts over the block scales and codes of one quantized weight.
struct ScaleFacts {
  float smallest = 0, largest = 0;  // block scales that are neither NaN nor zero
  std::int64_t nan = 0, negative = 0, zero = 0, zero_with_codes = 0;
};

struct InspectedWeight {
  QuantizedWeight weight;
  ScaleFacts scales;  // with scan_values
};

struct InspectOptions {
  bool scan_values = true;  // read every scale and code; otherwise headers and scalars only
};

struct Inspection {
  QuantizationMetadata metadata;
  std::vector<InspectedWeight> weights;
  std::vector<UnreadTensor> unread;
  std::vector<Finding> findings;
};

Result<Inspection> inspect_checkpoint(const Checkpoint& checkpoint, const InspectOptions& options = {});

}  // namespace finescale::checkpoint
