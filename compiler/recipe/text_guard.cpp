// Size, line length, NUL bytes, and the segments of keys. The segments are counted by the least lexer that knows
// strings and comments; where it and TOML disagree, the text is a TOML error before that place.

#include "compiler/recipe/text_guard.h"

#include <algorithm>

namespace shardc {

namespace {

/// Walks over a text outside of strings and comments, counting the dots of each key.
class KeyScanner {
 public:
  explicit KeyScanner(std::string_view text) : text_(text) {}

  /// The place of the first key with too many segments, or npos.
  auto FindDeepKey() -> size_t {
    size_t key_begin = 0;
    int64_t num_segments = 1;
    while (at_ < text_.size()) {
      switch (text_[at_]) {
        case '"':
        case '\'': SkipString(); continue;
        case '#': at_ = std::min(text_.find('\n', at_), text_.size()); continue;
        case '\n':
        case '=':
        case ',':
        case '[':
        case ']':
        case '{':
        case '}':
          if (num_segments > MaxKeySegments) {
            num_segments_ = num_segments;
            return key_begin;
          }
          num_segments = 1;
          key_begin = at_ + 1;
          break;
        case '.': ++num_segments; break;
        default: break;
      }
      ++at_;
    }
    num_segments_ = num_segments;
    return num_segments > MaxKeySegments ? key_begin : std::string_view::npos;
  }

  auto num_segments() const -> int64_t { return num_segments_; }

 private:
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
  }

  std::string_view text_;
  size_t at_ = 0;
  int64_t num_segments_ = 0;
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
    diagnostics.Build({source, 0, 0, 1}, DiagnosticKind::RecipeTooLarge, "the recipe", size, MaxRecipeBytes).Emit();
    return false;
  }
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const auto length = static_cast<int64_t>(end - begin);
    if (length > MaxLineBytes) {
      diagnostics.Build(PlaceOf(text, source, begin), DiagnosticKind::RecipeTooLarge, "the line", length, MaxLineBytes)
          .Emit();
      return false;
    }
    begin = end + 1;
  }
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    diagnostics.Build({source, 1, 1, 1}, DiagnosticKind::TomlSyntax, "the text is UTF-16; save it as UTF-8").Emit();
    return false;
  }
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    diagnostics.Build(PlaceOf(text, source, nul), DiagnosticKind::TomlSyntax, "a NUL byte; a recipe is text").Emit();
    return false;
  }
  KeyScanner scanner(text);
  if (const size_t deep = scanner.FindDeepKey(); deep != std::string_view::npos) {
    diagnostics.Build(PlaceOf(text, source, deep), DiagnosticKind::KeyTooDeep, scanner.num_segments(), MaxKeySegments)
        .Emit();
    return false;
  }
  return true;
}

}  // namespace shardc
