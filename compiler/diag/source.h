// Where a piece of a recipe stands: the file itself, or the text of a `--set`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardc {

/// A half-open range of the characters of one line. Lines and columns count from 1, columns in bytes. `source` indexes
/// SourceSet.
struct SourceRange {
  int16_t source = -1;
  int32_t line = 0;
  int32_t column = 0;
  int32_t length = 1;

  auto valid() const -> bool { return source >= 0; }
  friend auto operator==(const SourceRange&, const SourceRange&) -> bool = default;
};

struct SourceText {
  /// As printed in messages: the path given by the user, or `--set`.
  std::string name;
  std::string text;
};

/// All texts a compilation reads: the recipe, then one per `--set`.
class SourceSet {
 public:
  auto Add(std::string name, std::string text) -> int16_t;
  auto operator[](int16_t source) const -> const SourceText& { return texts_[static_cast<size_t>(source)]; }
  auto size() const -> int16_t { return static_cast<int16_t>(texts_.size()); }
  /// The text of a line without its line end; empty past the last one.
  auto Line(const SourceRange& at) const -> std::string_view;

 private:
  std::vector<SourceText> texts_;
  /// Of each text, where its lines begin.
  std::vector<std::vector<size_t>> line_starts_;
};

}  // namespace shardc
