#include "compiler/checkpoint/module_pattern.h"

#include <algorithm>
#include <cctype>
#include <regex>

namespace shardc {

/// Larger ones take long to compile.
static constexpr size_t MostCharacters = 4096;

struct ModulePattern::Compiled {
  std::regex regex;
};

static auto IsPlain(std::string_view text) -> bool {
  return std::ranges::all_of(text, [](char c) {
    return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '_' || c == '.';
  });
}

/// Returns true if a plain pattern matches a text of its own length.
static auto MatchesPlainly(std::string_view pattern, std::string_view text) -> bool {
  return std::ranges::equal(pattern, text, [](char own, char other) { return own == '.' || own == other; });
}

/// Returns what Python would read otherwise; empty if the languages agree.
static auto ForeignSyntax(std::string_view text) -> std::string {
  for (const std::string_view other : {"[[", "[]", "[^]"}) {
    if (text.find(other) != std::string_view::npos) {
      return std::string(other);
    }
  }
  constexpr std::string_view Shared = "dDwWsSbB";
  for (size_t at = text.find('\\'); at != std::string_view::npos; at = text.find('\\', at + 2)) {
    const auto escaped = static_cast<unsigned char>(at + 1 < text.size() ? text[at + 1] : '\0');
    if (std::isalnum(escaped) != 0 && Shared.find(static_cast<char>(escaped)) == std::string_view::npos) {
      return std::string(text.substr(at, 2));
    }
  }
  return {};
}

auto ModulePattern::Make(const std::string& text, PatternExtent extent) -> ErrorOr<ModulePattern> {
  FAIL_IF(text.size() > MostCharacters, ExitCode::Checkpoint, "a pattern has {} characters; {} are the most",
          text.size(), MostCharacters);
  const auto refuse = [&](std::string_view why) {
    return Fail(ExitCode::Checkpoint, "the pattern \"{:.200}\" is not read ({}); write names of modules in its place",
                text, why);
  };
  if (const std::string foreign = ForeignSyntax(text); !foreign.empty()) {
    return refuse(foreign);
  }
  ModulePattern pattern;
  pattern.text_ = text;
  pattern.extent_ = extent;
  if (!IsPlain(pattern.text_)) {
    const std::string whole =
        extent == PatternExtent::End ? fmt::format("(?:.*\\.)?(?:{})", pattern.text_) : pattern.text_;
    try {
      // Without `__polynomial` some patterns would take time exponential in the name.
      pattern.compiled_ = std::make_shared<const Compiled>(
          std::regex(whole, std::regex::ECMAScript | std::regex::nosubs | std::regex_constants::__polynomial));
    } catch (const std::regex_error& error) {
      return refuse(error.what());
    }
  }
  return pattern;
}

auto ModulePattern::Matches(std::string_view module) const -> bool {
  if (compiled_ != nullptr) {
    return std::regex_match(module.begin(), module.end(), compiled_->regex);
  }
  if (module.size() < text_.size()) {
    return false;
  }
  const size_t begin = module.size() - text_.size();
  const bool may_begin = begin == 0 || (extent_ == PatternExtent::End && module[begin - 1] == '.');
  return may_begin && MatchesPlainly(text_, module.substr(begin));
}

}  // namespace shardc
