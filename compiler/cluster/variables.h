// Environment variables as numbers and texts, and how messages show them.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "compiler/base/error_or.h"

namespace shardc {

/// Looks up an environment variable; null if it is not set.
using LookUp = std::function<const char*(const char* name)>;

/// The environment: variables that are set to nothing count as not set. Requires: `look_up` outlives it.
class EnvironmentVariables {
 public:
  explicit EnvironmentVariables(const LookUp& look_up) : look_up_(look_up) {}

  auto Has(const char* name) const -> bool { return !Text(name).empty(); }

  /// Returns the value; empty if the variable is not set, or `name` is null.
  auto Text(const char* name) const -> std::string_view;

  /// Returns `RANK=3`, as messages have it.
  auto Shown(const char* name) const -> std::string;

  /// Returns the value as a number. Errors: it is not a whole number from 0 to `max`.
  auto Number(const char* name, int64_t max = std::numeric_limits<int32_t>::max()) const -> ErrorOr<int64_t>;

 private:
  const LookUp& look_up_;
};

}  // namespace shardc
