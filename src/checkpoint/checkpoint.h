// Checkpoint: the tensors of a model on disk, one safetensors file or a directory of shards with an index and configs.
//
// Everything is checked when it is opened: the format of each file, every shard that the index or the shards' own numbering
// names, each tensor in exactly one shard and in the index. Tensors are views of mapped memory.
#pragma once

#include "checkpoint/safetensors.h"

#include <finescale/status.h>

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace finescale::checkpoint {

struct Tensor : TensorSpec {
  std::size_t shard = 0;
  std::span<const std::byte> bytes;
};

class Checkpoint {
 public:
  // io_error: what is broken, and in which file.
  static Result<Checkpoint> open(const std::filesystem::path& path);
  // One file in memory, which must outlive the object, and the texts of configs by file name.
  static Result<Checkpoint> view(std::span<const std::byte> file, StringMap configs = {});

  const std::filesystem::path& path() const { return path_; }
  bool is_directory() const { return is_directory_; }
  // In the order of the shards, then of their bytes.
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Tensor* find(std::string_view name) const;
  // The memory of a part of the tensor may be used for something else; see MappedFile::release.
  void release(const Tensor& tensor, std::span<const std::byte> part) const { files_[tensor.shard].release(part); }

  std::size_t shard_count() const { return files_.size(); }
  // File name of a shard, without folder.
  const std::string& shard_name(std::size_t shard) const { return shard_names_[shard]; }
  const StringMap& shard_metadata(std::size_t shard) const { return files_[shard].metadata(); }
  // File name of the index; empty where there is none.
  const std::string& index_name() const { return index_name_; }

  // The text of config.json or hf_quant_config.json of a directory; null where it is absent.
  const std::string* config(const std::string& name) const;
  // The directory's other files that belong to the model (configs, tokenizer, ...), relative to it.
  const std::vector<std::filesystem::path>& companions() const { return companions_; }
  // What is in the directory and not part of this checkpoint, a sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  Checkpoint() = default;
  Status open_directory();
  Status read_companions();
  Status add_shard(std::string name, SafetensorsFile file);
  Status check_index(const StringMap& weight_map) const;

  std::filesystem::path path_;
  bool is_directory_ = false;
  std::vector<std::string> shard_names_;
  std::vector<SafetensorsFile> files_;
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::string index_name_;
  StringMap configs_;
  std::vector<std::filesystem::path> companions_;
  std::vector<std::string> notes_;
};

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kModelOptConfigFile = "hf_quant_config.json";
inline constexpr const char* kIndexSuffix = ".safetensors.index.json";

}  // namespace finescale::checkpoint
