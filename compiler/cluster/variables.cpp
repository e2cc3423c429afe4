// A message about a variable that is not a number shows its value; long values are cut, and characters that a terminal
// would act on are escaped.

#include "compiler/cluster/variables.h"

#include "compiler/base/printable.h"
#include "compiler/base/text/parse_whole.h"

namespace shardc {

auto EnvironmentVariables::Text(const char* name) const -> std::string_view {
  const char* const value = name == nullptr ? nullptr : look_up_(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

auto EnvironmentVariables::Shown(const char* name) const -> std::string {
  constexpr size_t MaxShown = 80;
  const std::string_view text = Text(name);
  return fmt::format("{}={}{}", name, Escaped(text.substr(0, MaxShown)), text.size() > MaxShown ? "..." : "");
}

auto EnvironmentVariables::Number(const char* name, int64_t max) const -> ErrorOr<int64_t> {
  const auto number = ParseWhole<int64_t>(Text(name));
  FAIL_IF(!number || *number < 0 || *number > max, ExitCode::Environment,
          "{}: a whole number from 0 to {} is expected; set {} to one, or unset it", Shown(name), max, name);
  return *number;
}

}  // namespace shardc
