// Patterns over names of modules in the files of peft, as Python's `re` matches them. The language is the common one of
// Python's and ECMAScript's regular expressions; each match takes time linear in the name.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "compiler/base/error_or.h"

namespace shardc {

/// The piece of a name that a pattern has to match.
enum class PatternExtent : uint8_t {
  /// The name itself.
  Whole,
  /// The name, or what is after one of its dots.
  End,
};

class ModulePattern {
 public:
  /// Errors: ExitCode::Checkpoint, if the text is not read as a pattern, or is too long.
  static auto Make(const std::string& text, PatternExtent extent) -> ErrorOr<ModulePattern>;

  auto text() const -> const std::string& { return text_; }
  auto Matches(std::string_view module) const -> bool;

 private:
  struct Compiled;

  std::string text_;
  PatternExtent extent_ = PatternExtent::Whole;
  /// Null for a plain name, in which only dots are special: they match any character.
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace shardc
