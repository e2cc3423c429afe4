#include "compiler/recipe/toml_statements.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace shardc {

static auto IsNameStart(char c) -> bool { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static auto IsNamePart(char c) -> bool { return IsNameStart(c) || (c >= '0' && c <= '9') || c == '-' || c == '.'; }

/// `[name`, `[[name`, `name =` or `name:` at the beginning of a line.
static auto StatementOf(std::string_view line, size_t number) -> std::optional<TomlStatement> {
  size_t at = std::min(line.find_first_not_of(" \t"), line.size());
  TomlStatement statement{.line = number, .column = 0, .is_header = false, .name = {}};
  for (int i = 0; i < 2 && at < line.size() && line[at] == '['; ++i, ++at) {
    statement.is_header = true;
  }
  at = statement.is_header ? std::min(line.find_first_not_of(" \t", at), line.size()) : at;
  const size_t begin = at;
  while (at < line.size() && IsNamePart(line[at])) {
    ++at;
  }
  if (begin == at || !IsNameStart(line[begin])) {
    return std::nullopt;
  }
  statement.column = begin;
  statement.name = line.substr(begin, at - begin);
  const size_t next = line.find_first_not_of(" \t", at);
  // A list of words in brackets is no header: ["a", "b"] begins with a quote, [a, b] goes on with a comma.
  const bool is_statement = statement.is_header
                                ? next == std::string_view::npos || line[next] != ','
                                : next != std::string_view::npos && (line[next] == '=' || line[next] == ':');
  return is_statement ? std::optional(statement) : std::nullopt;
}

namespace {

/// Walks over lines outside of strings and comments, and keeps what is open.
class OpeningScanner {
 public:
  auto Scan(std::string_view text, size_t line) -> void {
    for (size_t at = 0; at < text.size();) {
      if (!quotes_.empty()) {
        at = SkipString(text, at);
      } else if (text[at] == '#') {
        return;
      } else if (text[at] == '"' || text[at] == '\'') {
        const bool is_triple = text.substr(at, 3) == std::string(3, text[at]);
        quotes_ = text.substr(at, is_triple ? 3 : 1);
        open_.push_back({line, at, quotes_});
        at += quotes_.size();
      } else {
        Delimit(text[at], line, at);
        ++at;
      }
    }
    // A string of one line ends with it, for the parser too: that is a fault of its own.
    if (quotes_.size() == 1) {
      CloseString();
    }
  }

  auto open() const -> const std::vector<TomlOpening>& { return open_; }

 private:
  auto SkipString(std::string_view text, size_t at) -> size_t {
    while (at < text.size() && text.substr(at, quotes_.size()) != quotes_) {
      at += quotes_.front() == '"' && text[at] == '\\' ? 2 : 1;
    }
    if (at >= text.size()) {
      return text.size();
    }
    const size_t past = at + quotes_.size();
    CloseString();
    return past;
  }

  auto CloseString() -> void {
    quotes_.clear();
    open_.pop_back();
  }

  auto Delimit(char c, size_t line, size_t column) -> void {
    if (c == '[' || c == '{') {
      open_.push_back({line, column, std::string(1, c)});
    } else if ((c == ']' || c == '}') && !open_.empty()) {
      open_.pop_back();
    }
  }

  std::string quotes_;
  std::vector<TomlOpening> open_;
};

}  // namespace

TomlStatements::TomlStatements(const std::vector<std::string>& lines) : lines_(lines) {
  for (size_t line = 0; line < lines.size(); ++line) {
    if (auto statement = StatementOf(lines[line], line)) {
      statements_.push_back(*std::move(statement));
    }
  }
}

auto TomlStatements::At(size_t line) const -> const TomlStatement* {
  const auto after = std::ranges::upper_bound(statements_, line, {}, &TomlStatement::line);
  return after == statements_.begin() ? nullptr : &*std::prev(after);
}

auto TomlStatements::EndOf(size_t line) const -> size_t {
  const auto after = std::ranges::upper_bound(statements_, line, {}, &TomlStatement::line);
  return after == statements_.end() ? lines_.size() : after->line;
}

auto TomlStatements::Unclosed(size_t line) const -> std::optional<TomlOpening> {
  for (const TomlStatement& statement : statements_) {
    const size_t end = EndOf(statement.line);
    if (statement.line > line || (end > line && end < lines_.size())) {
      break;
    }
    OpeningScanner scanner;
    for (size_t l = statement.line; l < end; ++l) {
      scanner.Scan(lines_[l], l);
    }
    // An open header ends with its line: the parser says so.
    if (!scanner.open().empty() && !statement.is_header) {
      return scanner.open().front();
    }
  }
  return std::nullopt;
}

auto TomlStatements::HeaderOf(const TomlStatement& statement) const -> const TomlStatement* {
  const TomlStatement* header = nullptr;
  for (const TomlStatement& other : statements_) {
    if (other.line >= statement.line) {
      break;
    }
    header = other.is_header ? &other : header;
  }
  return header;
}

auto TomlStatements::FirstOf(const TomlStatement& statement) const -> const TomlStatement& {
  const TomlStatement* const header = statement.is_header ? nullptr : HeaderOf(statement);
  const size_t from = header == nullptr ? 0 : header->line;
  for (const TomlStatement& other : statements_) {
    if (other.line >= from && other.is_header == statement.is_header && other.name == statement.name) {
      return other;
    }
  }
  return statement;
}

auto TomlStatements::DottedKeyOf(const TomlStatement& header) const -> const TomlStatement* {
  for (const TomlStatement& other : statements_) {
    if (other.is_header) {
      break;
    }
    if (other.name.starts_with(header.name + ".")) {
      return &other;
    }
  }
  return nullptr;
}

}  // namespace shardc
