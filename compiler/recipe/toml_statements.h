// The lines of a TOML text that begin a statement, found without parsing: where a reader goes on after a fault, and
// what the statements around a fault are called.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardc {

struct TomlStatement {
  /// From 0.
  size_t line = 0;
  /// Of the name, in bytes from 0.
  size_t column = 0;
  bool is_header = false;
  /// "model", "init.rule", "layers"; of a key, without its section.
  std::string name;
};

/// Of a bracket or of quotes that nothing closes.
struct TomlOpening {
  size_t line = 0;
  size_t column = 0;
  std::string text;
};

class TomlStatements {
 public:
  /// Requires: `lines` outlives it.
  explicit TomlStatements(const std::vector<std::string>& lines);

  /// The statement that begins on a line, or the last one before it.
  auto At(size_t line) const -> const TomlStatement*;
  /// The first statement that is not closed where the next one begins, on `line` or before it, or where the text ends.
  auto Unclosed(size_t line) const -> std::optional<TomlOpening>;
  /// One past the last line of what begins on `line`: where the next statement begins, or the text ends.
  auto EndOf(size_t line) const -> size_t;
  /// The header above a statement; null at the top level.
  auto HeaderOf(const TomlStatement& statement) const -> const TomlStatement*;
  /// The first statement that has the name of this one, under the same header; or this one.
  auto FirstOf(const TomlStatement& statement) const -> const TomlStatement&;
  /// The first key at the top level that makes the section of a header, as `model.layers` makes [model]; null if none.
  auto DottedKeyOf(const TomlStatement& header) const -> const TomlStatement*;

 private:
  const std::vector<std::string>& lines_;
  std::vector<TomlStatement> statements_;
};

}  // namespace shardc
