// Status and Result: how every function of finescale reports failure. Nothing is written when a call fails.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#define FINESCALE_ASSERT(condition) assert(condition)

// Returns the failed Status of an expression (a Status, or a Result) from the enclosing function.
#define FINESCALE_TRY(expression)                                                                               \
  do {                                                                                                          \
    if (auto finescale_status = ::finescale::status_of(expression); !finescale_status) return finescale_status; \
  } while (false)

namespace finescale {

enum class Code : std::uint8_t { ok, invalid_argument, unsupported, out_of_memory, device_error, io_error, internal };

// A code and, on failure, one sentence that names the argument, its value and the rule.
struct [[nodiscard]] Status {
  Code code = Code::ok;
  std::string sentence;

  explicit operator bool() const { return code == Code::ok; }
};

inline Status invalid_argument(std::string sentence) { return {Code::invalid_argument, std::move(sentence)}; }
inline Status unsupported(std::string sentence) { return {Code::unsupported, std::move(sentence)}; }
inline Status out_of_memory(std::string sentence) { return {Code::out_of_memory, std::move(sentence)}; }
inline Status device_error(std::string sentence) { return {Code::device_error, std::move(sentence)}; }
inline Status io_error(std::string sentence) { return {Code::io_error, std::move(sentence)}; }
inline Status internal_error(std::string sentence) { return {Code::internal, std::move(sentence)}; }

// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status failure) : status_(std::move(failure)) { FINESCALE_ASSERT(!status_); }

  explicit operator bool() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  Status status_;
  std::optional<T> value_;
};

inline Status status_of(Status status) { return status; }
template <class T>
Status status_of(const Result<T>& result) {
  return result.status();
}

}  // namespace finescale
