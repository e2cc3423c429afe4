// Size, line length, NUL bytes, the parts of keys and the depth of values.
//
// Dots are counted outside of strings and comments, in values too, so only the ends of strings and comments have to be
// where the parser has them. Outside of both, a quote begins a string and a `#` a comment, or the parser stops there
// with an error. Inside, a text that leaves TOML's grammar (an end of line in a string of one line, an unknown escape)
// stops it too, so it does not matter what is counted after such a place.

#include "compiler/recipe/text_guard.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace shardc {

namespace {

/// Walks over a text outside of strings and comments, counting the dots of each key and what lies around it.
class KeyScanner {
 public:
  explicit KeyScanner(std::string_view text) : text_(text) {}

  struct Fault {
    size_t place = 0;
    DiagnosticKind kind = DiagnosticKind::KeyTooDeep;
    int64_t count = 0;
    int64_t most = MaxKeyParts;
  };

  /// The first key with too many parts, or the first bracket that lies too deep.
  auto FindFault() -> std::optional<Fault> {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"' || c == '\'') {
        SkipString();
        continue;
      }
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
        continue;
      }
      if (c == '.') {
        ++num_parts_;
      } else if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos) {
        if (num_parts_ > MaxKeyParts) {
          break;
        }
        if (!Delimit(c)) {
          return Fault{at_, DiagnosticKind::ValueTooDeep, open_.back(), MaxDepth};
        }
      }
      ++at_;
    }
    return num_parts_ > MaxKeyParts ? std::optional(Fault{.place = begin_, .count = num_parts_}) : std::nullopt;
  }

 private:
  /// Returns false where the brackets that are open, and the keys before them, are too many.
  auto Delimit(char c) -> bool {
    if (c == '[' || c == '{') {
      open_.push_back((open_.empty() ? 0 : open_.back()) + key_parts_ + 1);
    } else if ((c == ']' || c == '}') && !open_.empty()) {
      open_.pop_back();
    }
    key_parts_ = c == '=' ? num_parts_ : 0;
    num_parts_ = 1;
    begin_ = at_ + 1;
    return open_.empty() || open_.back() <= MaxDepth;
  }

  /// In a string of several lines, one or two quotes before the last three belong to it.
  auto SkipString() -> void {
    const char quote = text_[at_];
    const std::string triple(3, quote);
    const bool is_multi_line = text_.substr(at_, 3) == triple;
    const std::string_view close = is_multi_line ? std::string_view(triple) : text_.substr(at_, 1);
    at_ += close.size();
    while (at_ < text_.size() && text_.substr(at_, close.size()) != close) {
      if (text_[at_] == '\n' && !is_multi_line) {
        return;
      }
      at_ += quote == '"' && text_[at_] == '\\' ? 2 : 1;
    }
    at_ = std::min(at_ + close.size(), text_.size());
    for (int i = 0; is_multi_line && i < 2 && at_ < text_.size() && text_[at_] == quote; ++i) {
      ++at_;
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  /// Where the key or value begins that `at_` is in, and one more than its dots.
  size_t begin_ = 0;
  int64_t num_parts_ = 1;
  /// Of the key before a `=`, until its value is over.
  int64_t key_parts_ = 0;
  /// For each bracket that is open, how deep a value in it lies.
  std::vector<int64_t> open_;
};

}  // namespace

static auto PlaceOf(std::string_view text, int16_t source, size_t offset) -> SourceRange {
  const std::string_view before = text.substr(0, offset);
  const size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return {source, static_cast<int32_t>(std::count(before.begin(), before.end(), '\n')) + 1,
          static_cast<int32_t>(offset - line_begin) + 1, 1};
}

auto CheckText(const SourceSet& sources, int16_t source, Diagnostics& diagnostics) -> bool {
  const std::string_view text = sources[source].text;
  const auto size = static_cast<int64_t>(text.size());
  if (size > MaxRecipeBytes) {
    diagnostics.Report({source, 0, 0, 1}, DiagnosticKind::RecipeTooLarge, "the recipe", size, MaxRecipeBytes);
    return false;
  }
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const auto length = static_cast<int64_t>(end - begin);
    if (length > MaxLineBytes) {
      diagnostics.Report(PlaceOf(text, source, begin), DiagnosticKind::RecipeTooLarge, "the line", length,
                         MaxLineBytes);
      return false;
    }
    begin = end + 1;
  }
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    diagnostics.Report({source, 1, 1, 1}, DiagnosticKind::TomlSyntax, "the text is UTF-16; save it as UTF-8");
    return false;
  }
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    diagnostics.Report(PlaceOf(text, source, nul), DiagnosticKind::TomlSyntax, "a NUL byte; a recipe is text");
    return false;
  }
  KeyScanner scanner(text);
  if (const auto fault = scanner.FindFault()) {
    diagnostics.Report(PlaceOf(text, source, fault->place), fault->kind, fault->count, fault->most);
    return false;
  }
  return true;
}

}  // namespace shardc
