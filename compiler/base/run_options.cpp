#include "compiler/base/run_options.h"

namespace shardc {

auto RunOptionTexts::Check() const -> Status {
  for (const RunOptionRow& row : RunOptionRows) {
    const RunOptionText& text = (*this)[row.option];
    if (const std::string fault = text.is_given() ? row.fault(text.value) : ""; !fault.empty()) {
      return Fail(ExitCode::Usage, "{}: {}", row.flag, fault);
    }
  }
  return Success{};
}

auto RunOptionTexts::Arguments() const -> std::vector<std::string> {
  std::vector<std::string> arguments;
  for (const RunOptionRow& row : RunOptionRows) {
    const RunOptionText& text = (*this)[row.option];
    if (text.is_given() && row.fault(text.value).empty()) {
      arguments.push_back(text.value.empty() ? std::string(row.flag) : fmt::format("{}={}", row.flag, text.value));
    }
  }
  return arguments;
}

}  // namespace shardc
