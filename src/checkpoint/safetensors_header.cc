// The rules of a safetensors header. JSON arrives as events, so that a key that stands twice is seen.
#include "checkpoint/safetensors.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>
#include <unordered_set>
#include <utility>

namespace finescale::checkpoint {
namespace {

using Unsigned = std::uint64_t;

// Collects tensors from the events of one header. Each event returns false to stop, with the reason in `fault`.
class HeaderEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<StoredTensor> tensors;
  StringMap metadata;
  std::string fault;

  bool start_object(std::size_t) override {
    switch (state_) {
      case State::nothing: state_ = State::names; return true;
      case State::tensor_value: state_ = State::fields; return true;
      case State::metadata_value: state_ = State::metadata; return true;
      default: return unexpected("an object");
    }
  }

  bool key(std::string& name) override {
    switch (state_) {
      case State::names: return begin_entry(name);
      case State::fields: return begin_field(name);
      default:
        if (metadata.contains(name)) return stop(fmt::format("__metadata__: key \"{}\" twice", name));
        metadata_key_ = name;
        return true;
    }
  }

  bool string(std::string& text) override {
    if (state_ == State::metadata) {
      metadata[metadata_key_] = std::move(text);
      return true;
    }
    if (state_ != State::dtype) return unexpected("a string");
    const DtypeRow* row = find_dtype(text);
    if (row == nullptr) return stop(fmt::format("tensor \"{}\": dtype \"{}\" is not known", tensor_.name, text));
    tensor_.dtype = row->dtype;
    state_ = State::fields;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ != State::shape && state_ != State::offsets) return unexpected("an array");
    if (in_array_) return unexpected("an array in an array");
    in_array_ = true;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    in_array_ = false;
    if (state_ == State::shape) {
      tensor_.shape = numbers_;
    } else {
      if (numbers_.size() != 2)
        return stop(fmt::format("tensor \"{}\": data_offsets holds {} numbers, not 2", tensor_.name, numbers_.size()));
      tensor_.begin = numbers_[0];
      tensor_.end = numbers_[1];
    }
    state_ = State::fields;
    return true;
  }

  bool number_unsigned(Unsigned value) override {
    if (!in_array_) return unexpected("a number");
    if (value > static_cast<Unsigned>(std::numeric_limits<std::int64_t>::max())) return bad_number(fmt::format("{}", value));
    numbers_.push_back(static_cast<std::int64_t>(value));
    return true;
  }
  bool number_integer(std::int64_t value) override { return in_array_ ? bad_number(fmt::format("{}", value)) : unexpected("a number"); }
  bool number_float(double, const std::string& text) override { return in_array_ ? bad_number(text) : unexpected("a number"); }

  bool end_object() override {
    if (state_ == State::fields) return end_tensor();
    state_ = state_ == State::metadata ? State::names : State::done;
    return true;
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool binary(nlohmann::json::binary_t&) override { return unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return stop(fmt::format("header: not valid JSON at byte {} of the header", position));
  }

 private:
  // What the next event may be: a name, the value of that name, a field of a tensor, the value of that field, ...
  enum class State { nothing, names, tensor_value, fields, dtype, shape, offsets, metadata_value, metadata, done };

  bool stop(std::string sentence) {
    if (fault.empty()) fault = std::move(sentence);
    return false;
  }

  bool unexpected(const char* what) {
    switch (state_) {
      case State::nothing: return stop(fmt::format("header: {} where the outermost object must begin", what));
      case State::tensor_value: return stop(fmt::format("tensor \"{}\": {} where an object belongs", tensor_.name, what));
      case State::dtype: return stop(fmt::format("tensor \"{}\": dtype: {} where a string belongs", tensor_.name, what));
      case State::shape: return stop(fmt::format("tensor \"{}\": shape: {} where an array of integers belongs", tensor_.name, what));
      case State::offsets: return stop(fmt::format("tensor \"{}\": data_offsets: {} where two integers belong", tensor_.name, what));
      case State::metadata_value: return stop(fmt::format("__metadata__: {} where an object belongs", what));
      case State::metadata: return stop(fmt::format("__metadata__: key \"{}\": {} where a string belongs", metadata_key_, what));
      default: return stop(fmt::format("header: {} out of place", what));
    }
  }

  bool bad_number(const std::string& text) {
    return stop(fmt::format("tensor \"{}\": {} holds {}, which is not an integer from 0 to 2^63 - 1", tensor_.name,
                            state_ == State::shape ? "shape" : "data_offsets", text));
  }

  bool begin_entry(std::string& name) {
    if (!names_.insert(name).second) return stop(fmt::format("tensor \"{}\": the name stands twice in the header", name));
    if (name == "__metadata__") {
      state_ = State::metadata_value;
      return true;
    }
    tensor_ = {};
    tensor_.name = std::move(name);
    fields_ = 0;
    state_ = State::tensor_value;
    return true;
  }

  bool begin_field(const std::string& name) {
    static constexpr std::pair<const char*, State> kFields[] = {
        {"dtype", State::dtype}, {"shape", State::shape}, {"data_offsets", State::offsets}};
    for (unsigned i = 0; i < 3; ++i) {
      if (name != kFields[i].first) continue;
      if ((fields_ & (1u << i)) != 0) return stop(fmt::format("tensor \"{}\": field \"{}\" twice", tensor_.name, name));
      fields_ |= 1u << i;
      state_ = kFields[i].second;
      return true;
    }
    return stop(fmt::format("tensor \"{}\": field \"{}\" is not one of dtype, shape, data_offsets", tensor_.name, name));
  }

  bool end_tensor() {
    static constexpr const char* kNames[] = {"dtype", "shape", "data_offsets"};
    for (unsigned i = 0; i < 3; ++i) {
      if ((fields_ & (1u << i)) == 0) return stop(fmt::format("tensor \"{}\": field \"{}\" is missing", tensor_.name, kNames[i]));
    }
    tensors.push_back(std::move(tensor_));
    state_ = State::names;
    return true;
  }

  State state_ = State::nothing;
  bool in_array_ = false;
  unsigned fields_ = 0;
  StoredTensor tensor_;
  std::vector<std::int64_t> numbers_;
  std::string metadata_key_;
  std::unordered_set<std::string> names_;
};

// Each tensor's bytes against its dtype and shape; then all of them, which must fill the data without gap or overlap.
Status check_extents(std::vector<StoredTensor>& tensors, std::int64_t data_bytes) {
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin > tensor.end) {
      return io_error(fmt::format("tensor \"{}\": data_offsets [{}, {}] run backwards", tensor.name, tensor.begin, tensor.end));
    }
    const auto expected = tensor_bytes(tensor);
    FINESCALE_TRY(expected);
    if (tensor.end - tensor.begin != *expected) {
      return io_error(fmt::format("tensor \"{}\": data_offsets [{}, {}] span {} bytes, but {} {} takes {}", tensor.name, tensor.begin,
                                  tensor.end, tensor.end - tensor.begin, dtype_name(tensor.dtype), shape_text(tensor.shape), *expected));
    }
    if (tensor.end > data_bytes) {
      return io_error(
          fmt::format("tensor \"{}\": its data ends at byte {}, but the file holds {} bytes of data", tensor.name, tensor.end, data_bytes));
    }
  }
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::int64_t covered = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin != covered) {
      return io_error(fmt::format("tensor \"{}\": its data begins at byte {}, but the tensor before it ends at {}: {}", tensor.name,
                                  tensor.begin, covered, tensor.begin < covered ? "they overlap" : "a gap"));
    }
    covered = tensor.end;
  }
  if (covered != data_bytes) {
    return io_error(fmt::format("{} extra bytes after the last tensor: the tensors take {} bytes, the file holds {} bytes of data",
                                data_bytes - covered, covered, data_bytes));
  }
  return {};
}

// The JSON text of the header: after the length, without the spaces that pad it.
Result<std::string_view> header_text(std::span<const std::byte> file) {
  constexpr std::int64_t kLengthBytes = 8;
  const auto size = static_cast<std::int64_t>(file.size());
  if (size < kLengthBytes) return io_error(fmt::format("header length: a file of {} bytes is shorter than the 8 of the length", size));
  Unsigned length = 0;
  for (int byte = 7; byte >= 0; --byte) length = length << 8 | std::to_integer<Unsigned>(file[static_cast<std::size_t>(byte)]);
  if (length > static_cast<Unsigned>(size - kLengthBytes)) {
    return io_error(fmt::format("header length {}: only {} bytes follow it", length, size - kLengthBytes));
  }
  if (length > static_cast<Unsigned>(kMaxHeaderBytes)) {
    return io_error(fmt::format("header length {}: the limit is {} bytes", length, kMaxHeaderBytes));
  }
  std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
  if (text.empty()) return io_error("header length 0: a header is at least \"{}\"");
  if (text.front() != '{')
    return io_error(fmt::format("header: begins with byte 0x{:02x}, not with '{{'", static_cast<unsigned char>(text.front())));
  const std::size_t last = text.find_last_not_of(' ');
  if (text[last] != '}') {
    return io_error(fmt::format("header: ends with byte 0x{:02x}; after the closing '}}' only spaces (0x20) may follow",
                                static_cast<unsigned char>(text[last])));
  }
  return text;
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors(std::span<const std::byte> file) {
  const auto text = header_text(file);
  FINESCALE_TRY(text);
  HeaderEvents events;
  if (!nlohmann::json::sax_parse(*text, &events)) return io_error(events.fault.empty() ? "header: not valid JSON" : events.fault);
  SafetensorsHeader header;
  header.tensors = std::move(events.tensors);
  header.metadata = std::move(events.metadata);
  header.data_start = 8 + static_cast<std::int64_t>(text->size());
  FINESCALE_TRY(check_extents(header.tensors, static_cast<std::int64_t>(file.size()) - header.data_start));
  return header;
}

}  // namespace finescale::checkpoint
