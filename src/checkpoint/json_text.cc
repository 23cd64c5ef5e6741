#include "checkpoint/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace finescale::checkpoint {
namespace {

// Numbers that Python's json writes and JSON has no words for. Between parse and text they are strings that begin with U+0001.
constexpr std::string_view kWords[] = {"NaN", "-Infinity", "Infinity"};
constexpr std::string_view kMark = "\"\\u0001";

std::string marked(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size();) {
    const auto* word = std::find_if(std::begin(kWords), std::end(kWords), [&](auto w) { return text.substr(i).starts_with(w); });
    if (!in_string && word != std::end(kWords)) {
      out.append(kMark).append(*word).append("\"");
      i += word->size();
      continue;
    }
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      out += text[i++];  // the escaped character is no closing quote
    } else if (text[i] == '"') {
      in_string = !in_string;
    }
    out += text[i++];
  }
  return out;
}

std::string unmarked(std::string text) {
  for (const std::string_view word : kWords) {
    const std::string literal = std::string(kMark) + std::string(word) + "\"";
    for (std::size_t at = text.find(literal); at != std::string::npos; at = text.find(literal, at)) text.replace(at, literal.size(), word);
  }
  return text;
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view what) {
  std::vector<std::set<std::string>> keys;
  std::string fault;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxJsonDepth && fault.empty()) fault = fmt::format("nested deeper than {} levels", kMaxJsonDepth);
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get_ref<const std::string&>()).second && fault.empty()) {
      fault = fmt::format("key \"{}\" twice", parsed.get_ref<const std::string&>());
    }
    return fault.empty() || event != Json::parse_event_t::object_start;  // a discarded object keeps the tree shallow
  };
  Json json = Json::parse(marked(text), watch, false);
  if (!fault.empty()) return io_error(fmt::format("{}: {}", what, fault));
  if (json.is_discarded()) return io_error(fmt::format("{}: not valid JSON", what));
  return json;
}

std::string json_text(const Json& json, int indent) { return unmarked(json.dump(indent, ' ', false, Json::error_handler_t::replace)); }

std::string json_quoted(std::string_view text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string string_member(const Json& object, const char* key, std::string_view otherwise) {
  if (object.is_object()) {
    if (const auto member = object.find(key); member != object.end() && member->is_string()) return member->get<std::string>();
  }
  return std::string(otherwise);
}

}  // namespace finescale::checkpoint
