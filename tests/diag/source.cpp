// Lines of source texts, and text of users made safe to print.

#include <gtest/gtest.h>

#include "compiler/diag/source.h"
#include "compiler/diag/utf8.h"

namespace shardc {
namespace {

TEST(SourceSet, LinesWithoutTheirEnd) {
  SourceSet sources;
  const int16_t first = sources.Add("a", "one\ntwo\r\n\nlast");
  const int16_t second = sources.Add("b", "");
  const auto line = [&](int16_t source, int number) {
    return sources.Line({.source = source, .line = number, .column = 1, .length = 1});
  };
  EXPECT_EQ(line(first, 1), "one");
  EXPECT_EQ(line(first, 2), "two");
  EXPECT_EQ(line(first, 3), "");
  EXPECT_EQ(line(first, 4), "last");
  EXPECT_EQ(line(first, 5), "");
  EXPECT_EQ(line(first, 0), "");
  EXPECT_EQ(line(first, -1), "");
  EXPECT_EQ(line(second, 1), "");
  EXPECT_EQ(line(-1, 1), "");
  EXPECT_EQ(line(7, 1), "");
  EXPECT_EQ(sources.size(), 2);
  EXPECT_EQ(sources[second].name, "b");
}

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

}  // namespace
}  // namespace shardc
