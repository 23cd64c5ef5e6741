// Planned weights that share a global scale.
#pragma once

#include "checkpoint/checkpoint_plan.h"

#include <string>
#include <unordered_map>
#include <vector>

namespace finescale::checkpoint {

class FusionGroups {
 public:
  // The plan must outlive the object. shared = false: every weight is a group of its own.
  FusionGroups(const CheckpointPlan& plan, bool shared);

  // The planned weights of the group that `tensor` is in, or would be in if it were quantized.
  const std::vector<const PlannedTensor*>& members(const Tensor& tensor) const;
  std::string key(const Tensor& tensor) const;

 private:
  bool shared_;
  std::unordered_map<std::string, std::vector<const PlannedTensor*>> groups_;
};

}  // namespace finescale::checkpoint
