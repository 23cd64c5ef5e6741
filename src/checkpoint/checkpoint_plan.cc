#include "checkpoint/checkpoint_plan.h"

#include "checkpoint/json_text.h"
#include "checkpoint/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace finescale::checkpoint {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// The outputs of one planned tensor inside a shard's writer, where they are numbers first, first + 1, ...
class ShardOutputs : public OutputTensors {
 public:
  ShardOutputs(SafetensorsWriter& writer, std::size_t first) : writer_(writer), first_(first) {}
  Status append(std::size_t output, std::span<const std::byte> bytes) override { return writer_.append(first_ + output, bytes); }

 private:
  SafetensorsWriter& writer_;
  std::size_t first_;
};

// Carries a plan out, shard by shard.
class PlanWriter {
 public:
  PlanWriter(const Checkpoint& checkpoint, const CheckpointPlan& plan, const OutputOptions& options, const MakeOutputs& make_outputs)
      : checkpoint_(checkpoint), plan_(plan), options_(options), make_outputs_(make_outputs) {
    progress_.count = static_cast<std::int64_t>(plan.tensors.size());
    progress_.total_bytes = plan.bytes_in();
  }

  Status write_shard(std::size_t shard, const fs::path& path, Existing existing) {
    std::vector<TensorSpec> specs;
    for (const PlannedTensor& planned : plan_.tensors) {
      if (planned.source->shard == shard) specs.insert(specs.end(), planned.outputs.begin(), planned.outputs.end());
    }
    auto writer = SafetensorsWriter::create(path, specs, shard_metadata(shard), existing);
    FINESCALE_TRY(writer);
    std::size_t first = 0;
    for (const PlannedTensor& planned : plan_.tensors) {
      if (planned.source->shard != shard) continue;
      ShardOutputs outputs(*writer, first);
      FINESCALE_TRY(write_tensor(planned, outputs));
      first += planned.outputs.size();
    }
    return writer->commit();
  }

  // Everything is written.
  void finish() {
    progress_.tensor = {};
    if (options_.progress) options_.progress(progress_);
  }

 private:
  StringMap shard_metadata(std::size_t shard) const {
    StringMap metadata = checkpoint_.shard_metadata(shard);
    for (const auto& [key, value] : plan_.metadata) {
      metadata.erase(key);
      if (!value.empty() && !checkpoint_.is_directory()) metadata[key] = value;
    }
    return metadata;
  }

  Status write_tensor(const PlannedTensor& planned, OutputTensors& outputs) {
    progress_.tensor = planned.source->name;
    if (options_.progress && !options_.progress(progress_)) {
      return io_error(fmt::format("stopped before tensor \"{}\": nothing is left of the output", planned.source->name));
    }
    if (planned.action == Action::copy) {
      FINESCALE_TRY(copy(*planned.source, outputs));
    } else if (planned.action != Action::drop) {
      FINESCALE_TRY(naming(planned.source->name, make_outputs_(planned, outputs)));
    }
    checkpoint_.release(*planned.source, planned.source->bytes);
    ++progress_.index;
    progress_.bytes += static_cast<std::int64_t>(planned.source->bytes.size());
    return {};
  }

  // A failure of an op does not know the tensor.
  static Status naming(const std::string& tensor, Status status) {
    if (!status && status.sentence.find(tensor) == std::string::npos)
      status.sentence = fmt::format("tensor \"{}\": {}", tensor, status.sentence);
    return status;
  }

  // In pieces, each given back when written, so that a large tensor does not fill the memory.
  Status copy(const Tensor& tensor, OutputTensors& outputs) {
    constexpr std::size_t kPiece = std::size_t{16} << 20;
    for (std::span<const std::byte> rest = tensor.bytes; !rest.empty();) {
      const auto piece = rest.first(std::min(kPiece, rest.size()));
      FINESCALE_TRY(outputs.append(0, piece));
      checkpoint_.release(tensor, piece);
      rest = rest.subspan(piece.size());
    }
    return {};
  }

  const Checkpoint& checkpoint_;
  const CheckpointPlan& plan_;
  const OutputOptions& options_;
  const MakeOutputs& make_outputs_;
  Progress progress_;
};

Status check_names(const CheckpointPlan& plan) {
  std::vector<std::string_view> names;
  for (const PlannedTensor& planned : plan.tensors) {
    for (const TensorSpec& output : planned.outputs) names.push_back(output.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return {};
  return invalid_argument(fmt::format("tensor \"{}\": the output would hold it twice", *twice));
}

// Replacing a directory must not remove the checkpoint that is read from inside it, nor weights that the output does not hold.
Status check_place(const Checkpoint& checkpoint, const fs::path& out) {
  std::error_code error;
  const fs::path from = fs::weakly_canonical(checkpoint.path(), error), to = fs::weakly_canonical(out, error);
  const fs::path inside = from.lexically_relative(to);
  if (error || inside.empty() || *inside.begin() == "..") return {};
  if (inside == "." && (!checkpoint.is_directory() || checkpoint.notes().empty())) return {};
  if (inside == ".") {
    return invalid_argument(fmt::format("{}: is the input, and replacing it would remove weights that are not read: {}", out.string(),
                                        checkpoint.notes().front()));
  }
  return invalid_argument(fmt::format("{}: holds the input {}", out.string(), checkpoint.path().string()));
}

std::string index_text(const Checkpoint& checkpoint, const CheckpointPlan& plan) {
  StringMap shard_of;
  for (const PlannedTensor& planned : plan.tensors) {
    for (const TensorSpec& output : planned.outputs) shard_of[output.name] = checkpoint.shard_name(planned.source->shard);
  }
  Json map = Json::object();
  for (const auto& [tensor, shard] : shard_of) map.push_back({tensor, shard});
  return json_text({{"metadata", {{"total_size", plan.bytes_out()}}}, {"weight_map", std::move(map)}});
}

Status write_companions(const Checkpoint& checkpoint, const CheckpointPlan& plan, const fs::path& folder) {
  for (const ConfigText& config : plan.configs) {
    if (!config.text.empty()) FINESCALE_TRY(write_file(folder / config.name, bytes_of(config.text), Existing::refuse));
  }
  for (const fs::path& companion : checkpoint.companions()) {
    const bool made =
        std::any_of(plan.configs.begin(), plan.configs.end(), [&](const ConfigText& config) { return companion == config.name; });
    if (made) continue;
    std::error_code error;
    if (companion.has_parent_path()) fs::create_directories(folder / companion.parent_path(), error);
    if (error) return io_error(fmt::format("{}: cannot make the folder: {}", companion.parent_path().string(), error.message()));
    const auto file = MappedFile::open(checkpoint.path() / companion);
    FINESCALE_TRY(file);
    FINESCALE_TRY(write_file(folder / companion, file->bytes(), Existing::refuse));
  }
  if (checkpoint.index_name().empty()) return {};
  return write_file(folder / checkpoint.index_name(), bytes_of(index_text(checkpoint, plan) + "\n"), Existing::refuse);
}

}  // namespace

std::int64_t CheckpointPlan::count(Action action) const {
  return std::count_if(tensors.begin(), tensors.end(), [&](const PlannedTensor& planned) { return planned.action == action; });
}

std::int64_t CheckpointPlan::bytes_in() const {
  std::int64_t bytes = 0;
  for (const PlannedTensor& planned : tensors) bytes += static_cast<std::int64_t>(planned.source->bytes.size());
  return bytes;
}

std::int64_t CheckpointPlan::bytes_out() const {
  std::int64_t bytes = 0;
  for (const PlannedTensor& planned : tensors) {
    for (const TensorSpec& output : planned.outputs) {
      if (const auto size = tensor_bytes(output)) bytes += *size;
    }
  }
  return bytes;
}

PlannedTensor planned_copy(const Tensor& tensor, std::string reason) { return {&tensor, Action::copy, std::move(reason), {tensor}}; }

Status write_checkpoint(const Checkpoint& checkpoint, const CheckpointPlan& plan, const fs::path& out, const OutputOptions& options,
                        const MakeOutputs& make_outputs) {
  FINESCALE_TRY(check_names(plan));
  FINESCALE_TRY(check_place(checkpoint, out));
  PlanWriter writer(checkpoint, plan, options, make_outputs);
  if (!checkpoint.is_directory()) {
    FINESCALE_TRY(writer.write_shard(0, out, options.existing));
    writer.finish();
    return {};
  }
  auto directory = AtomicDirectory::create(out, options.existing);
  FINESCALE_TRY(directory);
  for (std::size_t shard = 0; shard < checkpoint.shard_count(); ++shard) {
    FINESCALE_TRY(writer.write_shard(shard, directory->folder() / checkpoint.shard_name(shard), Existing::refuse));
  }
  FINESCALE_TRY(write_companions(checkpoint, plan, directory->folder()));
  FINESCALE_TRY(directory->commit());
  writer.finish();
  return {};
}

}  // namespace finescale::checkpoint
