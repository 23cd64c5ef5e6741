// Options whose value is one of a list of names: the list is what --help shows and what a wrong name is answered with.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace finescale::tools {

template <class Value>
struct NamedValue {
  std::string_view name;
  Value value;
};

template <class Value>
using NamedValues = std::vector<NamedValue<Value>>;

template <class Value>
std::vector<std::string_view> names_of(const NamedValues<Value>& choices) {
  std::vector<std::string_view> names;
  for (const auto& choice : choices) names.push_back(choice.name);
  return names;
}

template <class Value>
std::string_view name_of(const NamedValues<Value>& choices, const Value& value) {
  for (const auto& choice : choices) {
    if (choice.value == value) return choice.name;
  }
  return "?";
}

template <class Value>
Value parse_choice(const std::string& flag, const std::string& name, const NamedValues<Value>& choices) {
  for (const auto& choice : choices) {
    if (choice.name == name) return choice.value;
  }
  throw CLI::ValidationError(flag, fmt::format("\"{}\" is none of {}", name, fmt::join(names_of(choices), ", ")));
}

// An option that takes one of the names. `value` must outlive the parse.
template <class Value>
CLI::Option* add_choice(CLI::App& command, const std::string& flag, Value& value, NamedValues<Value> choices, const std::string& help) {
  const std::string shown = fmt::format("{}", fmt::join(names_of(choices), "|"));
  const auto assign = [flag, &value, choices = std::move(choices)](const std::string& name) { value = parse_choice(flag, name, choices); };
  return command.add_option_function<std::string>(flag, assign, help)->type_name(shown);
}

}  // namespace finescale::tools
