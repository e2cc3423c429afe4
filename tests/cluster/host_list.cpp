// Slurm's host lists: what they stand for, which texts are none, and that no text takes more than its bounds.

#include "compiler/cluster/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>

namespace shardc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

auto Names(std::string_view text) -> std::vector<std::string> {
  const ErrorOr<std::vector<std::string>> names = ExpandHostList(text);
  EXPECT_TRUE(names.ok()) << names.error().message;
  return names.ok() ? *names : std::vector<std::string>();
}

TEST(HostList, StandsForNames) {
  EXPECT_THAT(Names("n1"), ElementsAre("n1"));
  EXPECT_THAT(Names("b,a,b"), ElementsAre("b", "a", "b"));
  EXPECT_THAT(Names("n[1-3,7],m5"), ElementsAre("n1", "n2", "n3", "n7", "m5"));
  EXPECT_THAT(Names("n[08-11]"), ElementsAre("n08", "n09", "n10", "n11"));
  EXPECT_THAT(Names("n[8-11,007]"), ElementsAre("n8", "n9", "n10", "n11", "n007"));
  EXPECT_THAT(Names("n[099-101]"), ElementsAre("n099", "n100", "n101"));
  EXPECT_THAT(Names("gpu-[1-2].lab-3.org"), ElementsAre("gpu-1.lab-3.org", "gpu-2.lab-3.org"));
  EXPECT_THAT(Names("r[1-2]n[0-1]x"), ElementsAre("r1n0x", "r1n1x", "r2n0x", "r2n1x"));
  EXPECT_THAT(Names("[1-2]"), ElementsAre("1", "2"));
  EXPECT_EQ(Names("n[0-65535]").size(), 65536U);
  EXPECT_EQ(Names("n[0-255]x[0-255]").back(), "n255x255");
}

TEST(HostList, OtherTextsAreNamed) {
  for (const auto& [text, why] : std::initializer_list<std::pair<const char*, const char*>>{
           {"", "a name is empty"},
           {"a,", "a name is empty"},
           {",a", "a name is empty"},
           {"a,,b", "a name is empty"},
           {"a b", "characters that no name has"},
           {"a\n", "characters that no name has"},
           {"n[1-2", "brackets do not match"},
           {"n1-2]", "brackets do not match"},
           {"n[[1]]", "brackets do not match"},
           {"n[1]]", "brackets do not match"},
           {"n[]", "`` is neither a number nor a range"},
           {"n[1,]", "`` is neither a number nor a range"},
           {"n[a-c]", "`a-c` is neither a number nor a range"},
           {"n[-1]", "`-1` is neither a number nor a range"},
           {"n[3-1]", "`3-1` is no range"},
           {"n[1-2-3]", "`1-2-3` is no range"},
           {"n[1-]", "`1-` is no range"},
           {"n[1234567890123456789]", "is neither a number nor a range"},
           {"n[0-65536]", "more than 65536 names"},
           {"n[0-999999999999999999]", "more than 65536 names"},
           {"n[0-999]m[0-999]", "more than 65536 names"},
           {"n[1][1][1][1][1][1][1][1][1]", "a name has more than 8 brackets"},
           {"n[0-65535],a", "more than 65536 names"},
           {"n[0-40000,0-40000]", "more than 65536 names"},
       }) {
    const ErrorOr<std::vector<std::string>> names = ExpandHostList(text);
    ASSERT_FALSE(names.ok()) << text;
    EXPECT_EQ(names.error().code, ExitCode::Environment);
    EXPECT_THAT(names.error().message, HasSubstr(why)) << text;
    EXPECT_THAT(names.error().message, HasSubstr("is no list of hosts as Slurm writes them"));
  }
  EXPECT_THAT(ExpandHostList(std::string(300, 'n')).error().message, HasSubstr("more than 255 characters"));
  EXPECT_LT(ExpandHostList(std::string(1 << 20, ' ')).error().message.size(), 300U);
}

/// What slurm writes for random lists of names is made here by an independent rule: names are counted up with printf's
/// widths.
TEST(HostList, RandomListsStandForWhatTheyWereMadeFrom) {
  std::mt19937 random(7);
  const auto below = [&](uint32_t end) { return std::uniform_int_distribution<uint32_t>(0, end - 1)(random); };
  for (int round = 0; round < 2000; round++) {
    std::string text;
    std::vector<std::string> expected;
    for (uint32_t name = 0; name <= below(4); name++) {
      const std::string prefix = below(8) == 0 ? "" : std::string(1 + below(5), static_cast<char>('a' + below(26)));
      const std::string suffix = below(4) == 0 ? "-ib" : "";
      text += (text.empty() ? "" : ",") + prefix + "[";
      for (uint32_t entry = 0; entry <= below(3); entry++) {
        const int width = static_cast<int>(1 + below(5));
        const uint32_t first = below(2000);
        const uint32_t last = first + below(30);
        const auto digits = [&](uint32_t number) {
          std::string shown(32, '\0');
          shown.resize(static_cast<size_t>(std::snprintf(shown.data(), shown.size(), "%0*u", width, number)));
          return shown;
        };
        text += (text.back() == '[' ? "" : ",") + digits(first) + (first == last ? "" : "-" + digits(last));
        // A number that is longer than the width has a width of its own, which no later number of the range is shorter
        // than.
        for (uint32_t number = first; number <= last; number++) {
          expected.push_back(prefix + digits(number) + suffix);
        }
      }
      text += "]" + suffix;
    }
    ASSERT_EQ(Names(text), expected) << text;
  }
}

TEST(HostList, AnyTextIsBounded) {
  constexpr std::string_view Letters = "[[]],,--0123456789999999nm";
  std::mt19937 random(11);
  size_t lists = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < 20000; round++) {
    std::string text;
    const size_t length = std::uniform_int_distribution<size_t>(0, 40)(random);
    for (size_t i = 0; i < length; i++) {
      text += Letters[std::uniform_int_distribution<size_t>(0, Letters.size() - 1)(random)];
    }
    const ErrorOr<std::vector<std::string>> names = ExpandHostList(text);
    if (names) {
      lists++;
      ASSERT_LE(names->size(), 65536U);
    }
  }
  EXPECT_GT(lists, 100U);
  // The worst cases: as many names as are allowed, again and again refused at the end; and a long text of brackets.
  std::string worst = "n[0-255]m[0-255]";
  for (int i = 0; i < 1000; i++) {
    worst += "[1]";
  }
  EXPECT_FALSE(ExpandHostList(worst).ok());
  EXPECT_FALSE(ExpandHostList(std::string(1 << 20, '[')).ok());
  std::string ranges = "n[0-65535";
  for (int i = 0; i < 200; i++) {
    ranges += ",0-65535";
  }
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_FALSE(ExpandHostList(ranges + "]").ok());
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100 * 1024) << "KiB";
  std::string many = "a";
  for (int i = 0; i < 70000; i++) {
    many += ",a";
  }
  EXPECT_FALSE(ExpandHostList(many).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

}  // namespace
}  // namespace shardc
