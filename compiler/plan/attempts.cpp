#include "compiler/plan/attempts.h"

#include <algorithm>

namespace shardc {

auto AttemptName(int64_t number) -> std::string { return fmt::format("{:04}", number); }

auto AttemptNumber(std::string_view name) -> std::optional<int64_t> {
  constexpr size_t MaxDigits = 15;
  if (name.empty() || name.size() > MaxDigits || name.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  const int64_t number = std::stoll(std::string(name));
  return number > 0 && AttemptName(number) == name ? std::optional(number) : std::nullopt;
}

auto ListAttempts(const Descriptor& run_dir) -> ErrorOr<std::vector<int64_t>> {
  std::vector<int64_t> numbers;
  ASSIGN_OR_RETURN(const auto status, StatusAt(run_dir, AttemptsName));
  if (status.kind == EntryKind::Missing) {
    return numbers;
  }
  ASSIGN_OR_RETURN(const auto folder, OpenDirectoryAt(run_dir, AttemptsName));
  ASSIGN_OR_RETURN(const auto names, ListDirectory(folder));
  for (const std::string& name : names) {
    if (const auto number = AttemptNumber(name)) {
      numbers.push_back(*number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace shardc
