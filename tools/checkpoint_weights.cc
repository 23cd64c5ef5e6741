#include "checkpoint_weights.h"

#include "checkpoint/tensor_names.h"

#include <finescale/repack.h>

#include <fmt/format.h>

namespace finescale::tools {

Result<CheckpointWeights> CheckpointWeights::open(const std::string& path, const std::string& glob) {
  auto checkpoint = checkpoint::Checkpoint::open(path);
  FINESCALE_TRY(checkpoint);
  CheckpointWeights weights(*std::move(checkpoint));
  const auto recognition = checkpoint::recognize(weights.checkpoint_);
  FINESCALE_TRY(recognition);
  for (const checkpoint::QuantizedWeight& weight : recognition->weights) {
    if (!checkpoint::glob_match(glob, weight.module)) continue;
    weights.list_.push_back(weight);
    if (weight.tags.format != weights.format() || weight.tags.rows != weights.rows() || weight.tags.cols != weights.cols()) {
      return invalid_argument(fmt::format("{}: {} is {} x {} and {} is {} x {}; the weights that --module matches must have one shape",
                                          path, weights.list_.front().module, weights.rows(), weights.cols(), weight.module,
                                          weight.tags.rows, weight.tags.cols));
    }
  }
  if (weights.list_.empty()) {
    return invalid_argument(
        fmt::format("{}: none of its {} quantized weights matches --module '{}'", path, recognition->weights.size(), glob));
  }
  return weights;
}

Status CheckpointWeights::fill(Matrix& b, OperandStore& store) const {
  const auto cpu = Device::open("cpu");
  FINESCALE_TRY(cpu);
  const auto all = store.poisoned(b);
  FINESCALE_TRY(all);
  MutableMatrix one = *all;
  one.batch = 1;
  one.global_kind = GlobalScale::none;
  const auto bytes = storage(one);
  FINESCALE_TRY(bytes);
  for (const checkpoint::QuantizedWeight& weight : list_) {
    FINESCALE_TRY(repack({weight.tags, one}, {&*cpu}));
    all->global[&weight - list_.data()] = weight.global_scale;
    one.data += bytes->data;
    if (one.scales != nullptr) one.scales += bytes->scales;
  }
  b = *all;
  return {};
}

}  // namespace finescale::tools
