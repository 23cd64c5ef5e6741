// --weights FILE: B of a product from a checkpoint, instead of random codes: real scales, real distributions.
#pragma once

#include "op_operands.h"

#include "checkpoint/encoding.h"

#include <cstdint>
#include <string>
#include <vector>

namespace finescale::tools {

// Quantized weights of one shape and format; each is one batch, or one group, of B.
class CheckpointWeights {
 public:
  // Every quantized weight whose module matches the glob. invalid_argument: there is none, or they differ in format or shape.
  static Result<CheckpointWeights> open(const std::string& path, const std::string& glob);

  const Format& format() const { return list_.front().tags.format; }
  std::int64_t rows() const { return list_.front().tags.rows; }
  std::int64_t cols() const { return list_.front().tags.cols; }
  std::int64_t count() const { return static_cast<std::int64_t>(list_.size()); }

  // Copies them into B's layout, in host memory, with a global scale for each.
  Status fill(Matrix& b, OperandStore& store) const;

 private:
  CheckpointWeights(checkpoint::Checkpoint checkpoint) : checkpoint_(std::move(checkpoint)) {}

  checkpoint::Checkpoint checkpoint_;  // whose memory the weights are views of
  std::vector<checkpoint::QuantizedWeight> list_;
};

}  // namespace finescale::tools
