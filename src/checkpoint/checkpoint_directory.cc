// A directory as a checkpoint: which shards it has, whether they and the index agree, which other files belong to it.
#include "checkpoint/checkpoint.h"
#include "checkpoint/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <system_error>

namespace finescale::checkpoint {
namespace {

namespace fs = std::filesystem;

Status unreadable(const fs::path& folder, const std::error_code& error) {
  return io_error(fmt::format("{}: cannot read the directory: {}", folder.string(), error.message()));
}

// Names of the regular files (links to them too) in a folder, in order.
Result<std::vector<std::string>> file_names(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    if (fs::is_regular_file(entry->path(), unknown)) names.push_back(entry->path().filename().string());
  }
  if (error) return unreadable(folder, error);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> read_text(const fs::path& path) {
  const auto file = MappedFile::open(path);
  FINESCALE_TRY(file);
  return std::string(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
}

// weight_map of an index: tensor name -> file name.
Result<StringMap> read_weight_map(const fs::path& path) {
  const auto text = read_text(path);
  FINESCALE_TRY(text);
  const auto json = parse_json(*text, path.string());
  FINESCALE_TRY(json);
  const auto found = json->is_object() ? json->find("weight_map") : json->end();
  if (found == json->end() || !found->is_object()) return io_error(fmt::format("{}: has no object \"weight_map\"", path.string()));
  StringMap map;
  for (const auto& [tensor, file] : found->items()) {
    const auto* name = file.get_ptr<const std::string*>();
    if (name == nullptr || name->empty() || *name == "." || *name == ".." ||
        name->find_first_of(std::string("/\0", 2)) != std::string::npos) {
      return io_error(fmt::format("{}: weight_map: tensor \"{}\" names {}, which is not the name of a file in this directory",
                                  path.string(), tensor, json_text(file, -1)));
    }
    map[tensor] = *name;
  }
  return map;
}

// "<stem>-00002-of-00005.safetensors"
struct ShardNumber {
  std::string stem;
  std::string digits;  // of the count, as written
  int number = 0, count = 0;
};

std::optional<ShardNumber> shard_number(std::string_view name) {
  constexpr std::string_view kSuffix = ".safetensors", kOf = "-of-";
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  const std::size_t of = name.rfind(kOf);
  const std::size_t dash = of == std::string_view::npos || of == 0 ? std::string_view::npos : name.rfind('-', of - 1);
  if (dash == std::string_view::npos) return std::nullopt;
  ShardNumber parts{std::string(name.substr(0, dash)), std::string(name.substr(of + kOf.size())), 0, 0};
  const auto parse = [](std::string_view digits, int& value) {
    const auto end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, value);
    return result.ec == std::errc() && result.ptr == end && value >= 0;
  };
  if (!parse(name.substr(dash + 1, of - dash - 1), parts.number) || !parse(parts.digits, parts.count)) return std::nullopt;
  return parts;
}

// Where there is no index, the files' own numbering says how many there must be.
Status check_numbering(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto parts = shard_number(name);
    if (!parts) continue;
    constexpr int kMostShards = 100'000;
    if (parts->count > kMostShards)
      return io_error(fmt::format("{}: {}: claims to be one of {} shards", folder.string(), name, parts->count));
    for (int number = 1; number <= parts->count; ++number) {
      const std::string other = fmt::format("{}-{:0{}}-of-{}.safetensors", parts->stem, number, parts->digits.size(), parts->digits);
      if (!std::binary_search(names.begin(), names.end(), other)) {
        return io_error(fmt::format("{}: shard {} is missing; {} says that there are {}", folder.string(), other, name, parts->count));
      }
    }
  }
  return {};
}

bool is_weight_file(const fs::path& path) {
  static const std::set<std::string> kSuffixes = {".safetensors", ".bin",     ".pt",   ".pth", ".ckpt", ".gguf",
                                                  ".h5",          ".msgpack", ".onnx", ".ot",  ".npz"};
  return kSuffixes.contains(path.extension().string()) || path.string().ends_with(".index.json") || path.string().ends_with(".onnx_data");
}

}  // namespace

Status Checkpoint::open_directory() {
  const auto files = file_names(path_);
  FINESCALE_TRY(files);
  std::vector<std::string> shards, indexes;
  for (const std::string& name : *files) {
    if (name.starts_with('.')) continue;
    if (name.ends_with(".safetensors")) shards.push_back(name);
    if (name.ends_with(kIndexSuffix)) indexes.push_back(name);
  }
  if (indexes.size() > 1) return io_error(fmt::format("{}: two indexes, {} and {}", path_.string(), indexes[0], indexes[1]));
  StringMap weight_map;
  if (indexes.empty()) {
    if (shards.empty()) return io_error(fmt::format("{}: holds no *.safetensors", path_.string()));
    FINESCALE_TRY(check_numbering(path_, shards));
  } else {
    index_name_ = indexes[0];
    auto map = read_weight_map(path_ / index_name_);
    FINESCALE_TRY(map);
    weight_map = *std::move(map);
    std::set<std::string> named;
    for (const auto& [tensor, file] : weight_map) {
      if (named.insert(file).second && !std::binary_search(files->begin(), files->end(), file)) {
        return io_error(fmt::format("{}: shard {} is missing; {} says that it holds \"{}\"", path_.string(), file, index_name_, tensor));
      }
    }
    for (const std::string& shard : shards) {
      if (!named.contains(shard)) notes_.push_back(fmt::format("{}: not named by {}, left aside", shard, index_name_));
    }
    shards.assign(named.begin(), named.end());
  }
  for (const std::string& shard : shards) {
    auto file = SafetensorsFile::open(path_ / shard);
    FINESCALE_TRY(file);
    FINESCALE_TRY(add_shard(shard, *std::move(file)));
  }
  if (!index_name_.empty()) FINESCALE_TRY(check_index(weight_map));
  return read_companions();
}

Status Checkpoint::check_index(const StringMap& weight_map) const {
  for (const auto& [name, file] : weight_map) {
    const Tensor* tensor = find(name);
    if (tensor == nullptr)
      return io_error(fmt::format("{}: tensor \"{}\" is in no shard; {} says {}", path_.string(), name, index_name_, file));
    if (shard_names_[tensor->shard] != file) {
      return io_error(
          fmt::format("{}: tensor \"{}\" is in {}, but {} says {}", path_.string(), name, shard_names_[tensor->shard], index_name_, file));
    }
  }
  for (const Tensor& tensor : tensors_) {
    if (!weight_map.contains(tensor.name)) {
      return io_error(
          fmt::format("{}: tensor \"{}\" of {} is not in {}", path_.string(), tensor.name, shard_names_[tensor.shard], index_name_));
    }
  }
  return {};
}

// Links to files are followed (a download cache is made of them), links to folders are not.
Status Checkpoint::read_companions() {
  std::error_code error;
  fs::recursive_directory_iterator entry(path_, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const fs::path relative = entry->path().lexically_relative(path_);
    std::error_code unknown;
    if (relative.filename().string().starts_with('.')) {
      if (entry->is_directory(unknown)) entry.disable_recursion_pending();
      continue;
    }
    if (!fs::is_regular_file(entry->path(), unknown)) continue;
    const bool shard = std::find(shard_names_.begin(), shard_names_.end(), relative.string()) != shard_names_.end();
    if (shard || relative == index_name_) continue;
    if (is_weight_file(relative)) {
      if (relative.extension() != ".safetensors" || relative.has_parent_path())
        notes_.push_back(fmt::format("{}: other weights, left aside", relative.string()));
      continue;
    }
    companions_.push_back(relative);
  }
  if (error) return unreadable(path_, error);
  std::sort(companions_.begin(), companions_.end());
  for (const char* name : {kConfigFile, kModelOptConfigFile}) {
    if (std::find(companions_.begin(), companions_.end(), name) == companions_.end()) continue;
    auto text = read_text(path_ / name);
    FINESCALE_TRY(text);
    configs_[name] = *std::move(text);
  }
  return {};
}

}  // namespace finescale::checkpoint
