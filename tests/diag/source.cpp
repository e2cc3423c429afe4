// Lines of source texts.

#include <gtest/gtest.h>

#include "compiler/diag/source.h"

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

}  // namespace
}  // namespace shardc
