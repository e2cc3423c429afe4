// A range of steps as a command line states it.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardc {

/// Both included, numbered as metrics.jsonl numbers steps: 1 is the first.
struct StepRange {
  int64_t first = 0;
  int64_t last = 0;

  auto Has(int64_t step) const -> bool { return first <= step && step <= last; }
};

/// Caches are warm by then.
inline constexpr StepRange DefaultTraceSteps{.first = 5, .last = 8};

/// "5..8", or "5". Nothing if it is no such range.
inline auto ParseStepRange(std::string_view text) -> std::optional<StepRange> {
  const auto number = [](std::string_view digits) -> std::optional<int64_t> {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool is_whole = error == std::errc() && end == digits.data() + digits.size();
    return is_whole && value >= 1 ? std::optional(value) : std::nullopt;
  };
  const size_t dots = text.find("..");
  const auto first = number(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : number(text.substr(dots + 2));
  if (!first || !last || *last < *first) {
    return std::nullopt;
  }
  return StepRange{.first = *first, .last = *last};
}

}  // namespace shardc
