// JSON from a file that nobody vouches for: bounded depth, no duplicate keys, numbers read only with the type that they
// have. Included by .cpp files only. json_text.h writes JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "compiler/base/enum.h"
#include "compiler/base/error_or.h"

namespace shardc {

/// As in serde_json, by which others read the same files.
constexpr int MaxJsonDepth = 127;

/// Errors: `code`, with the parser's words.
auto ParseJson(std::string_view text, ExitCode code) -> ErrorOr<nlohmann::json>;

/// Zero or more, and at most 2^63 - 1. Errors: `code`.
auto JsonCount(const nlohmann::json& value, ExitCode code) -> ErrorOr<int64_t>;

/// Reads the members of an object by name and type. The object outlives it.
/// Errors of its functions: `code`, with the name of the member that is missing or of another type.
class JsonReader {
 public:
  JsonReader(const nlohmann::json& object, ExitCode code) : object_(&object), code_(code) {}

  auto object() const -> const nlohmann::json& { return *object_; }
  auto Has(const char* name) const -> bool { return object_->is_object() && object_->contains(name); }

  auto Member(const char* name) const -> ErrorOr<const nlohmann::json*>;
  auto String(const char* name) const -> ErrorOr<std::string>;
  /// Zero or more, and at most 2^63 - 1.
  auto Count(const char* name) const -> ErrorOr<int64_t>;
  /// Zero or more, and at most 2^64 - 1.
  auto Unsigned(const char* name) const -> ErrorOr<uint64_t>;
  auto Number(const char* name) const -> ErrorOr<double>;
  auto Object(const char* name) const -> ErrorOr<JsonReader>;
  auto List(const char* name) const -> ErrorOr<const nlohmann::json*>;
  /// One of the words of an enum.
  template <class E>
  auto Enum(const char* name) const -> ErrorOr<E> {
    ASSIGN_OR_RETURN(const auto text, String(name));
    const auto value = FromText<E>(text);
    FAIL_IF(!value, code_, "\"{}\" is \"{}\", which is not known", name, text);
    return *value;
  }

 private:
  const nlohmann::json* object_;
  ExitCode code_;
};

}  // namespace shardc
