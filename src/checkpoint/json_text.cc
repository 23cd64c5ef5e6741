#include "checkpoint/json_text.h"

#include <fmt/format.h>

#include <set>
#include <vector>

namespace finescale::checkpoint {

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
  Json json = Json::parse(text, watch, false);
  if (!fault.empty()) return io_error(fmt::format("{}: {}", what, fault));
  if (json.is_discarded()) return io_error(fmt::format("{}: not valid JSON", what));
  return json;
}

std::string json_text(const Json& json, int indent) { return json.dump(indent, ' ', false, Json::error_handler_t::replace); }

std::string json_quoted(std::string_view text) { return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string string_member(const Json& object, const char* key, std::string_view otherwise) {
  if (object.is_object()) {
    if (const auto member = object.find(key); member != object.end() && member->is_string()) return member->get<std::string>();
  }
  return std::string(otherwise);
}

}  // namespace finescale::checkpoint
