// Texts made by TOML's grammar from a seed: every kind of string with quotes beside its delimiters, escapes, dotted
// keys with quoted segments, lists and tables in each other, comments, both line ends, numbers and dates. Some are then
// damaged.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace shardc {

class TomlText {
 public:
  explicit TomlText(uint64_t seed) : random_(seed) {}

  /// A few lines. Of four texts, one is damaged in one to three places.
  auto Make() -> std::string;
  /// A list of strings that is not closed, up to the comma after the last; damaged in one place if so wished.
  auto MakeBeginOfList(bool is_damaged) -> std::string;

 private:
  auto Below(int count) -> int { return static_cast<int>(random_() % static_cast<uint64_t>(count)); }
  auto OneIn(int count) -> bool { return Below(count) == 0; }
  template <size_t N>
  auto OneOf(const std::string_view (&choices)[N]) -> std::string_view {
    return choices[Below(static_cast<int>(N))];
  }

  auto AddLine() -> void;
  auto AddSpace() -> void;
  auto AddComment() -> void;
  auto AddKey() -> void;
  auto AddSegment() -> void;
  auto AddValue(int depth) -> void;
  auto AddList(int depth) -> void;
  auto AddInlineTable(int depth) -> void;
  auto AddString() -> void;
  auto AddStringOfLines(char quote) -> void;
  auto AddNumber() -> void;
  auto AddDate() -> void;
  auto Damage() -> void;

  std::mt19937_64 random_;
  std::string text_;
  std::string_view line_end_;
};

}  // namespace shardc
