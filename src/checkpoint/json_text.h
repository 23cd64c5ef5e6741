// Reading JSON texts of configs and indexes: strict, shallow, without a key twice. Writing is nlohmann's dump.
#pragma once

#include <finescale/status.h>

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace finescale::checkpoint {

using Json = nlohmann::ordered_json;  // keeps the order of keys

inline constexpr int kMaxJsonDepth = 64;

// NaN, Infinity and -Infinity, which Python writes, are let through and come back in json_text.
// io_error: not JSON, deeper than kMaxJsonDepth, or a key twice in one object. `what` begins the sentence.
Result<Json> parse_json(std::string_view text, std::string_view what);

std::string json_text(const Json& json, int indent = 2);
// The JSON string literal of a text, with its quotes.
std::string json_quoted(std::string_view text);

// A string member of an object, or `otherwise`.
std::string string_member(const Json& object, const char* key, std::string_view otherwise = {});

}  // namespace finescale::checkpoint
