#include "checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

namespace finescale::checkpoint {

Result<Checkpoint> Checkpoint::open(const std::filesystem::path& path) {
  Checkpoint checkpoint;
  checkpoint.path_ = path;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    checkpoint.is_directory_ = true;
    FINESCALE_TRY(checkpoint.open_directory());
  } else {
    auto file = SafetensorsFile::open(path);
    FINESCALE_TRY(file);
    FINESCALE_TRY(checkpoint.add_shard(path.filename().string(), *std::move(file)));
  }
  return checkpoint;
}

Result<Checkpoint> Checkpoint::view(std::span<const std::byte> bytes, StringMap configs) {
  Checkpoint checkpoint;
  checkpoint.configs_ = std::move(configs);
  auto file = SafetensorsFile::view(bytes);
  FINESCALE_TRY(file);
  FINESCALE_TRY(checkpoint.add_shard("memory", *std::move(file)));
  return checkpoint;
}

Status Checkpoint::add_shard(std::string name, SafetensorsFile file) {
  const std::size_t shard = files_.size();
  for (const StoredTensor& stored : file.tensors()) {
    const auto [place, fresh] = by_name_.emplace(stored.name, tensors_.size());
    if (!fresh)
      return io_error(
          fmt::format("tensor \"{}\": stands in {} and again in {}", stored.name, shard_names_[tensors_[place->second].shard], name));
    tensors_.push_back({stored, shard, file.bytes(stored)});
  }
  shard_names_.push_back(std::move(name));
  files_.push_back(std::move(file));
  return {};
}

const Tensor* Checkpoint::find(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

const std::string* Checkpoint::config(const std::string& name) const {
  const auto found = configs_.find(name);
  return found == configs_.end() ? nullptr : &found->second;
}

}  // namespace finescale::checkpoint
