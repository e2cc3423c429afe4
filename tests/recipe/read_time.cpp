// Reading takes time by the length of the text: each byte of a large text, in long lines, costs what a byte of a small
// one does.

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "compiler/recipe/text_guard.h"
#include "tests/recipe/read_text.h"

namespace shardc {
namespace {

#ifdef __SANITIZE_ADDRESS__
constexpr double MostSeconds = 3;
#else
constexpr double MostSeconds = 0.3;
#endif

/// A line of at most 60,000 bytes: `begin`, then `piece` with a number in place of `#` as often as it fits, then `end`.
auto LongLine(const std::string& begin, const std::string& piece, const std::string& end, int64_t& number)
    -> std::string {
  std::string line = begin;
  while (line.size() + piece.size() + 12 < 60000) {
    const size_t place = piece.find('#');
    line += place == std::string::npos ? piece
                                       : piece.substr(0, place) + std::to_string(++number) + piece.substr(place + 1);
  }
  return line + end + "\n";
}

struct Shape {
  std::string name;
  /// About so many bytes.
  std::string (*text)(size_t size);
};

auto Lines(size_t size, const std::string& begin, const std::string& piece, const std::string& end) -> std::string {
  std::string text = MinimalText("[z]\n");
  int64_t number = 0;
  while (text.size() < size) {
    text += LongLine(fmt::format("x{}{}", ++number, begin), piece, end, number);
  }
  return text;
}

const Shape Shapes[] = {
    {"whole numbers", [](size_t size) { return Lines(size, " = [", "1,", "]"); }},
    {"keys of a table", [](size_t size) { return Lines(size, " = {a = 1", ", k# = 1", "}"); }},
    {"dotted keys", [](size_t size) { return Lines(size, " = [", "{a.b.c# = 1},", "]"); }},
    {"letters of two bytes", [](size_t size) { return Lines(size, " = [", "\"\xc3\xa4\",", "]"); }},
    {"keys whose order is not that of the lines they are on",
     [](size_t size) {
       // Line i has those keys whose number has remainder i.
       std::string text = MinimalText("[z]\nx = {a = [\n]");
       const auto lines = static_cast<int64_t>(size / 60000);
       for (int64_t line = 0; line < lines; ++line) {
         for (int64_t i = 0; i < 4600; ++i) {
           text += fmt::format(",k{:07}=1", i * lines + line);
         }
         text += fmt::format(",b{} = [\n]", line);
       }
       return text + "}\n";
     }},
};

/// Processor time of this thread.
auto SecondsOf(const std::string& text) -> double {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  ReadResult result;
  ReadRecipeText(text, {}, result);
  const double seconds = now() - begin;
  EXPECT_EQ(result.places().size(), 1U) << RenderText(result.diagnostics, {});
  return seconds;
}

/// One more time, where others that use this machine may have slowed the first.
auto LeastOf(double first, const std::string& text, double bound) -> double {
  for (int repeat = 0; repeat < 6 && first >= bound; ++repeat) {
    first = std::min(first, SecondsOf(text));
  }
  return first;
}

TEST(ReadTime, GrowsAsTheText) {
  constexpr size_t NumSizes = 16;
  for (const Shape& shape : Shapes) {
    SCOPED_TRACE(shape.name);
    std::vector<std::string> texts;
    std::vector<double> seconds;
    std::vector<double> per_byte;
    for (size_t i = 1; i <= NumSizes; ++i) {
      texts.push_back(shape.text(MaxRecipeBytes / NumSizes * i - 65000));
      ASSERT_LE(texts.back().size(), MaxRecipeBytes);
      seconds.push_back(SecondsOf(texts.back()));
      per_byte.push_back(seconds.back() / static_cast<double>(texts.back().size()));
    }
    std::sort(per_byte.begin(), per_byte.end());
    const double median = per_byte[NumSizes / 2];
    // The first has the length of the recipe around it.
    for (size_t i = 1; i < NumSizes; ++i) {
      const double bound = 3 * median * static_cast<double>(texts[i].size());
      EXPECT_LT(LeastOf(seconds[i], texts[i], bound), bound) << "size " << i + 1 << " of " << NumSizes;
    }
    // About 0.1 s on a machine of its own, without the sanitizers.
    EXPECT_LT(LeastOf(seconds.back(), texts.back(), MostSeconds), MostSeconds);
  }
}

}  // namespace
}  // namespace shardc
