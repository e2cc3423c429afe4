// Splits one line of a plan text into words, and its trailing comment.
#pragma once

#include <forward_list>
#include <optional>
#include <string>
#include <string_view>

namespace shardc {

/// A word between spaces; in quotes, what they hold.
struct Word {
  /// Into the line, or into what the reader keeps of quotes: as long as both are there.
  std::string_view text;
  /// For `key=value`: how long the key is. 0 where the word has no `=` outside of quotes.
  size_t key_length = 0;
  bool quoted = false;
  /// Counted in bytes from 1.
  int column = 1;

  auto key() const -> std::string_view { return text.substr(0, key_length); }
  auto value() const -> std::string_view { return text.substr(key_length + (key_length > 0 ? 1 : 0)); }
};

class LineReader {
 public:
  explicit LineReader(std::string_view line) : line_(line) {}

  /// Returns true at the end of the line or at its comment.
  auto AtEnd() -> bool;
  auto column() const -> int { return static_cast<int>(at_) + 1; }
  /// Returns the next character, or 0 at the end.
  auto Peek() -> char;
  /// Takes the next word. Nothing if it is malformed: a quote without its end, an unknown escape.
  auto TakeWord() -> std::optional<Word>;
  /// Takes what stands up to and including the next `last`. Nothing if no `last` follows.
  auto TakeThrough(char last) -> std::optional<std::string_view>;
  /// Returns what follows `//`, spaces left out. Requires: AtEnd.
  auto Comment() const -> std::string_view;

 private:
  auto SkipSpaces() -> void;
  auto TakeQuoted(std::string& text) -> bool;

  std::string_view line_;
  size_t at_ = 0;
  /// Contents of quotes, without escapes.
  std::forward_list<std::string> unquoted_;
};

}  // namespace shardc
