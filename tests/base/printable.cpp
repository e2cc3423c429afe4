// Text of users made safe to print.

#include <gtest/gtest.h>

#include "compiler/base/printable.h"

namespace shardc {
namespace {

struct EscapeCase {
  std::string_view text;
  std::string_view escaped;
};

constexpr EscapeCase EscapeCases[] = {
    {"", ""},
    {"a `b` \\ \"c\" ~", "a `b` \\ \"c\" ~"},
    {"\n\t\r", "\\n\\t\\r"},
    {"\x1b\x7f", "\\u001b\\u007f"},
    {"\xc2\x85", "\\u0085"},
    {"\xef\xbb\xbf", "\\ufeff"},
    {"\xf0\x9f\x98\x80", "\\U0001f600"},
    {"\xf4\x8f\xbf\xbf", "\\U0010ffff"},
    // Not UTF-8: cut short, alone, overlong, a surrogate, beyond the last code point.
    {"\xe2\x80", "\\xe2\\x80"},
    {"\x80", "\\x80"},
    {"\xc1\x81", "\\xc1\\x81"},
    {"\xe0\x80\xaf", "\\xe0\\x80\\xaf"},
    {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
    {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
    {"\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80"},
};

TEST(Escaped, PrintableAsciiOnly) {
  for (const EscapeCase& row : EscapeCases) {
    EXPECT_EQ(Escaped(row.text), row.escaped);
  }
}

struct PrintableCase {
  std::string_view text;
  std::string_view printable;
  /// Empty where it is the same.
  std::string_view line = {};
};

constexpr PrintableCase PrintableCases[] = {
    {"", ""},
    {"a `b` \\ \"c\" ~", "a `b` \\ \"c\" ~"},
    // Lines stay in a message, not in a name.
    {"one\n\ttwo", "one\n\ttwo", "one\\n\\ttwo"},
    {"a\rb", "a\\rb"},
    // The title of a window, a cleared screen; the same by the control character of one byte less.
    {"\x1b]0;title\x07\x1b[2J", "\\u001b]0;title\\u0007\\u001b[2J"},
    {"\xc2\x9b"
     "2J",
     "\\u009b2J"},
    {"\x08\x7f", "\\u0008\\u007f"},
    // Letters of any script, and signs, stay.
    {"Stra\xc3\x9f"
     "e \xe8\xa8\x93\xe7\xb7\xb4 \xf0\x9f\x98\x80 \xe2\x80\xa6 \xc2\xa0",
     "Stra\xc3\x9f"
     "e \xe8\xa8\x93\xe7\xb7\xb4 \xf0\x9f\x98\x80 \xe2\x80\xa6 \xc2\xa0"},
    // Text that is shown in another order, and what is not shown at all.
    {"a\xe2\x80\xae"
     "b",
     "a\\u202eb"},
    {"\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c", "\\u2066\\u2069\\u061c"},
    {"\xe2\x80\x8b\xc2\xad\xef\xbb\xbf\xe2\x80\xa8", "\\u200b\\u00ad\\ufeff\\u2028"},
    {"\xf3\xa0\x81\x81\xf0\x9d\x85\xb3", "\\U000e0041\\U0001d173"},
    {"\xef\xbf\xbf\xf4\x8f\xbf\xbf", "\\uffff\\U0010ffff"},
    // Beside a range.
    {"\xe2\x80\xaf\xe2\x80\xa7", "\xe2\x80\xaf\xe2\x80\xa7"},
    // Not UTF-8.
    {"\xff\x80\xe2\x80", "\\xff\\x80\\xe2\\x80"},
};

TEST(Printable, KeepsLinesAndLettersAndSpellsTheRest) {
  for (const PrintableCase& row : PrintableCases) {
    EXPECT_EQ(Printable(row.text), row.printable);
    EXPECT_EQ(PrintableLine(row.text), row.line.empty() ? row.printable : row.line);
  }
}

TEST(Printable, LeavesNoControlCharacterAndChangesNothingTwice) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
  }
  for (const std::string& text : {Printable(all), PrintableLine(all), Escaped(all)}) {
    EXPECT_EQ(Printable(text), text);
    for (const char c : text) {
      EXPECT_TRUE(c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7f)) << static_cast<int>(c);
    }
  }
}

}  // namespace
}  // namespace shardc
