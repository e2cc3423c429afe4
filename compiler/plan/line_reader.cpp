#include "compiler/plan/line_reader.h"

namespace shardc {

auto LineReader::SkipSpaces() -> void {
  while (at_ < line_.size() && line_[at_] == ' ') {
    ++at_;
  }
}

auto LineReader::AtEnd() -> bool {
  SkipSpaces();
  return at_ == line_.size() || line_.substr(at_).starts_with("//");
}

auto LineReader::Peek() -> char { return AtEnd() ? '\0' : line_[at_]; }

static auto HexDigit(char c) -> int {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

auto LineReader::TakeQuoted(std::string& text) -> bool {
  ++at_;
  while (at_ < line_.size()) {
    const char c = line_[at_++];
    if (c == '"') {
      return true;
    }
    if (c != '\\') {
      text += c;
      continue;
    }
    if (at_ == line_.size()) {
      return false;
    }
    switch (const char escape = line_[at_++]; escape) {
      case '"':
      case '\\': text += escape; break;
      case 'n': text += '\n'; break;
      case 't': text += '\t'; break;
      case 'r': text += '\r'; break;
      case 'x': {
        const int high = at_ < line_.size() ? HexDigit(line_[at_]) : -1;
        const int low = at_ + 1 < line_.size() ? HexDigit(line_[at_ + 1]) : -1;
        if (high < 0 || low < 0) {
          return false;
        }
        text += static_cast<char>(high * 16 + low);
        at_ += 2;
        break;
      }
      default: return false;
    }
  }
  return false;
}

auto LineReader::TakeWord() -> std::optional<Word> {
  SkipSpaces();
  Word word;
  word.column = column();
  const size_t begin = at_;
  for (; at_ < line_.size() && line_[at_] != ' '; ++at_) {
    const char c = line_[at_];
    if (c == '"') {
      // Quotes hold a whole word or a whole value.
      const bool starts = at_ == begin || (word.key_length > 0 && at_ == begin + word.key_length + 1);
      std::string& text = unquoted_.emplace_front(line_.substr(begin, at_ - begin));
      word.quoted = true;
      if (!starts || !TakeQuoted(text) || (at_ < line_.size() && line_[at_] != ' ')) {
        return std::nullopt;
      }
      word.text = text;
      return word;
    }
    if (c == '=' && word.key_length == 0) {
      word.key_length = at_ - begin;
    }
  }
  word.text = line_.substr(begin, at_ - begin);
  return word;
}

auto LineReader::TakeThrough(char last) -> std::optional<std::string_view> {
  SkipSpaces();
  const size_t end = line_.find(last, at_);
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view text = line_.substr(at_, end + 1 - at_);
  at_ = end + 1;
  return text;
}

auto LineReader::Comment() const -> std::string_view {
  std::string_view rest = line_.substr(at_);
  if (!rest.starts_with("//")) {
    return {};
  }
  rest.remove_prefix(2);
  const size_t first = rest.find_first_not_of(' ');
  return first == std::string_view::npos ? std::string_view{}
                                         : rest.substr(first, rest.find_last_not_of(' ') + 1 - first);
}

}  // namespace shardc
