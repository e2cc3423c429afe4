// JSON from a file that nobody vouches for: bounded depth, no duplicate keys, numbers read only with the type that they
// have. Included by .cpp files of this folder only.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "compiler/base/error_or.h"

namespace shardc {

constexpr int MaxJsonDepth = 32;

/// Errors: ExitCode::Checkpoint, with the parser's words.
auto ParseJson(std::string_view text) -> ErrorOr<nlohmann::json>;

/// Members of an object, by name and type. Errors: missing, or of another type.
auto JsonMember(const nlohmann::json& object, const char* name) -> ErrorOr<const nlohmann::json*>;
auto JsonString(const nlohmann::json& object, const char* name) -> ErrorOr<std::string>;
/// Zero or more, and at most 2^63 - 1.
auto JsonCount(const nlohmann::json& object, const char* name) -> ErrorOr<int64_t>;
/// The same of a bare value.
auto JsonCount(const nlohmann::json& value) -> ErrorOr<int64_t>;

/// a * b and a + b, of numbers that are not negative; nothing where the result does not fit.
auto CheckedMultiply(int64_t a, int64_t b) -> ErrorOr<int64_t>;
auto CheckedAdd(int64_t a, int64_t b) -> ErrorOr<int64_t>;

}  // namespace shardc
