#include "compiler/recipe/toml_faults.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include <array>
#include <optional>
#include <vector>

namespace shardc {

static constexpr auto Rows = std::to_array<TomlFaultRow>({
#define TOML_FAULT(example, pattern, message, help) {example, pattern, message, help},
#include "schemas/toml_faults.def"
});

auto TomlFaultRows() -> std::span<const TomlFaultRow> { return Rows; }

/// What each `*` of the pattern stands for: the shortest texts, from the left, but the last star takes all that its
/// tail leaves. Nothing where the pattern does not fit.
static auto Match(std::string_view pattern, std::string_view text) -> std::optional<std::vector<std::string>> {
  std::vector<std::string> taken;
  size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    return pattern == text ? std::optional(taken) : std::nullopt;
  }
  if (!text.starts_with(pattern.substr(0, star))) {
    return std::nullopt;
  }
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  for (star = pattern.find('*'); star != std::string_view::npos; star = pattern.find('*')) {
    const size_t at = text.find(pattern.substr(0, star));
    if (at == std::string_view::npos) {
      return std::nullopt;
    }
    taken.emplace_back(text.substr(0, at));
    text.remove_prefix(at + star);
    pattern.remove_prefix(star + 1);
  }
  if (!text.ends_with(pattern)) {
    return std::nullopt;
  }
  taken.emplace_back(text.substr(0, text.size() - pattern.size()));
  return taken;
}

auto WordTomlFault(std::string_view library_text) -> WordedFault {
  for (const TomlFaultRow& row : Rows) {
    if (const auto taken = Match(row.pattern, library_text)) {
      fmt::dynamic_format_arg_store<fmt::format_context> arguments;
      for (const std::string& text : *taken) {
        arguments.push_back(text);
      }
      return {.message = fmt::vformat(row.message, arguments), .help = std::string(row.help), .row = &row};
    }
  }
  return {.message = fmt::format("the text is not TOML: {}", library_text), .help = {}};
}

}  // namespace shardc
