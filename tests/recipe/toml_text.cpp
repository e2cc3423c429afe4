#include "tests/recipe/toml_text.h"

namespace shardc {

auto TomlText::Make() -> std::string {
  text_.clear();
  line_end_ = OneIn(4) ? "\r\n" : "\n";
  for (int line = 0, lines = 1 + Below(4); line < lines; ++line) {
    AddLine();
    if (line + 1 < lines || OneIn(2)) {
      text_ += line_end_;
    }
  }
  if (OneIn(4)) {
    for (int i = 0, places = 1 + Below(3); i < places; ++i) {
      Damage();
    }
  }
  return text_;
}

auto TomlText::MakeBeginOfList(bool is_damaged) -> std::string {
  text_ = "z = [";
  line_end_ = OneIn(4) ? "\r\n" : "\n";
  for (int i = 0, items = 1 + Below(3); i < items; ++i) {
    AddString();
    AddSpace();
    text_ += ',';
  }
  if (is_damaged) {
    Damage();
  }
  return text_;
}

auto TomlText::AddSpace() -> void {
  constexpr std::string_view Spaces[] = {"", "", "", " ", "\t", "  "};
  text_ += OneOf(Spaces);
}

auto TomlText::AddComment() -> void {
  constexpr std::string_view Comments[] = {"# ", "#'''", "# \"\"\" ]", "#a.b.c = \"", "# {\t", "##[\xc3\xa4]", "# '"};
  text_ += OneOf(Comments);
}

auto TomlText::AddLine() -> void {
  AddSpace();
  const int kind = Below(12);
  if (kind == 0) {
    text_ += OneIn(2) ? "[" : "[ ";
    AddKey();
    text_ += "]";
  } else if (kind == 1) {
    text_ += "[[";
    AddKey();
    text_ += "]]";
  } else if (kind > 2) {
    AddKey();
    text_ += "=";
    AddSpace();
    AddValue(0);
  }
  AddSpace();
  if (OneIn(4)) {
    AddComment();
  }
}

auto TomlText::AddKey() -> void {
  AddSpace();
  // Around the limit of 16, now and then.
  const int segments = OneIn(50) ? 12 + Below(10) : OneIn(3) ? 2 + Below(3) : 1;
  for (int i = 0; i < segments; ++i) {
    if (i > 0) {
      text_ += '.';
      AddSpace();
    }
    AddSegment();
    AddSpace();
  }
}

auto TomlText::AddSegment() -> void {
  constexpr std::string_view Quoted[] = {"\"\"",     "''",          "\"a.b\"",  "'a.b'",    "\"'\"",   "'\"'",
                                         "\"\\\"\"", "'\\'",        "\"\\\\\"", "\"#\"",    "'='",     "\"[\"",
                                         "']'",      "\"\\u0061\"", "\"a''\"",  "'\"\"\"'", "\"'''\"", "\"\xc3\xa4\"",
                                         "'\t'",     "'{'",         "\"\\n\""};
  constexpr std::string_view Bare[] = {"a", "b", "c", "key", "1", "1e3", "-", "_", "true", "inf", "d-e", "2024-01-01"};
  if (OneIn(4)) {
    text_ += OneOf(Quoted);
  } else {
    text_ += OneOf(Bare);
    text_ += std::to_string(Below(30));
  }
}

auto TomlText::AddValue(int depth) -> void {
  const int kind = Below(depth < 4 ? 12 : 8);
  if (kind < 4) {
    AddString();
  } else if (kind < 6) {
    AddNumber();
  } else if (kind == 6) {
    AddDate();
  } else if (kind == 7) {
    text_ += OneIn(2) ? "true" : "false";
  } else if (kind < 10) {
    AddList(depth);
  } else {
    AddInlineTable(depth);
  }
}

auto TomlText::AddList(int depth) -> void {
  const auto add_gap = [this] {
    while (OneIn(4)) {
      AddSpace();
      if (OneIn(3)) {
        AddComment();
      }
      text_ += line_end_;
    }
    AddSpace();
  };
  text_ += '[';
  const int items = Below(4);
  for (int i = 0; i < items; ++i) {
    add_gap();
    AddValue(depth + 1);
    add_gap();
    if (i + 1 < items || OneIn(3)) {
      text_ += ',';
    }
  }
  add_gap();
  text_ += ']';
}

auto TomlText::AddInlineTable(int depth) -> void {
  text_ += '{';
  for (int i = 0, items = Below(4); i < items; ++i) {
    text_ += i > 0 ? "," : "";
    AddKey();
    text_ += '=';
    AddSpace();
    AddValue(depth + 1);
    AddSpace();
  }
  text_ += '}';
}

auto TomlText::AddString() -> void {
  constexpr std::string_view Basic[] = {"a",
                                        ".",
                                        "'",
                                        "'''",
                                        "#",
                                        "=",
                                        "[",
                                        "]",
                                        "{",
                                        "}",
                                        ",",
                                        " ",
                                        "\t",
                                        "\\\"",
                                        "\\\\",
                                        "\\n",
                                        "\\t",
                                        "\\r",
                                        "\\b",
                                        "\\f",
                                        "\\u00e4",
                                        "\\U0001F600",
                                        "\xc3\xa4",
                                        "\xf0\x9f\x98\x80",
                                        "\xe2\x80\xa8",
                                        "\xc2\x85"};
  constexpr std::string_view Literal[] = {"a", ".", "\"", "\"\"\"", "\\", "\\\\", "#",        "=",
                                          "[", "]", "{",  "}",      ",",  "\t",   "\xc3\xa4", "\xc2\xa0"};
  if (OneIn(2)) {
    AddStringOfLines(OneIn(2) ? '"' : '\'');
    return;
  }
  const bool is_basic = OneIn(2);
  text_ += is_basic ? '"' : '\'';
  for (int i = 0, pieces = Below(6); i < pieces; ++i) {
    text_ += is_basic ? OneOf(Basic) : OneOf(Literal);
  }
  text_ += is_basic ? '"' : '\'';
}

auto TomlText::AddStringOfLines(char quote) -> void {
  constexpr std::string_view Basic[] = {"a",       "b.c",    "'",         "'''",      "#",           "\\\"",
                                        "\\\\",    "\\\"\"", "\"\\\"",    "= [",      "} ]",         "\\n",
                                        "\\u0022", "\\\n",   "\\ \t\n  ", "\\\r\n\n", "\xe2\x80\xa9"};
  constexpr std::string_view Literal[] = {"a",   "b.c", "\"",  "\"\"\"",   "#",   "\\",
                                          "\\'", "= {", "} ]", "\xc3\xa4", "\\\n"};
  const std::string delimiter(3, quote);
  // Quotes of its own kind never stand three in a row inside, and up to two stand before the last three.
  const auto add_quotes = [&](int most) { text_.append(static_cast<size_t>(Below(most + 1)), quote); };
  text_ += delimiter;
  if (OneIn(4)) {
    text_ += line_end_;
  }
  const auto separate = [&] {
    if (text_.back() == quote) {
      text_ += OneIn(2) ? "x" : " ";
    }
  };
  if (OneIn(2)) {
    text_.append(static_cast<size_t>(1 + Below(2)), quote);
    separate();
  }
  for (int i = 0, pieces = Below(5); i < pieces; ++i) {
    text_ += quote == '"' ? OneOf(Basic) : OneOf(Literal);
    if (OneIn(5)) {
      text_ += line_end_;
    }
    if (OneIn(3) && text_.back() != quote) {
      add_quotes(2);
    }
    separate();
  }
  add_quotes(OneIn(2) ? 2 : 0);
  text_ += delimiter;
}

auto TomlText::AddNumber() -> void {
  constexpr std::string_view Numbers[] = {
      "0", "-0", "+7", "12", "1_000", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "0x1F",
      "0xdead_beef", "0o17", "0b1101", "1.5", "-0.25", "+1.0e3", "1e5", "1E-5", "6.02_2e2_3", "inf", "-inf", "+inf",
      "nan", "-nan", "0.0", "-0.0", "1e+05", "3.14159265358979323846264338327950288", "1e308", "1e400", "0.1e-400",
      // No numbers.
      "01", "1__0", "_1", "1_", ".5", "5.", "1.e5", "0x", "0X1F", "+0x1", "1.5.2", "1e5.5", "0b12", "0o8", "Inf", "--1",
      "1e1_0"};
  text_ += OneOf(Numbers);
}

auto TomlText::AddDate() -> void {
  constexpr std::string_view Dates[] = {
      "1979-05-27", "1979-05-27T07:32:00Z", "1979-05-27 07:32:00", "1979-05-27t07:32:00z",
      "1979-05-27T00:32:00.999999-07:00", "07:32:00", "00:32:00.5", "2000-02-29", "2024-12-31T23:59:59.123456789+23:59",
      // None.
      "1979-13-01", "1979-00-10", "2023-02-29", "1979-05-27T", "24:00:00", "12:60:00", "12:00", "1979-5-27",
      "1979-05-27T07:32", "07:32:00.", "1979-05-27T07:32:00+25:00", "12:00:60"};
  text_ += OneOf(Dates);
}

auto TomlText::Damage() -> void {
  constexpr std::string_view Pieces[] = {"'",        "\"",       "'''",
                                         "\"\"\"",   "\\",       "#",
                                         "\n",       "\r",       "\r\n",
                                         ".",        "=",        ",",
                                         "[",        "]",        "{",
                                         "}",        " ",        "_",
                                         "-",        "\x01",     "\x7f",
                                         "\xff",     "\xc3",     "\xe2\x80\xa8",
                                         "\xc2\x85", "\xc2\xa0", "\xed\xa0\x80",
                                         "\v",       "\f",       "[[",
                                         "]]",       "\\u",      "\\x41",
                                         "\\e",      "a.b.c",    "x"};
  const auto place = static_cast<size_t>(Below(static_cast<int>(text_.size()) + 1));
  switch (Below(4)) {
    case 0: text_.erase(place, 1 + static_cast<size_t>(Below(3))); break;
    case 1: text_.replace(place, 1, OneOf(Pieces)); break;
    case 2: text_.insert(place, std::string(text_, place, static_cast<size_t>(Below(8)))); break;
    default: text_.insert(place, OneOf(Pieces)); break;
  }
}

}  // namespace shardc
