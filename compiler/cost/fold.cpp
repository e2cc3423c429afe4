// Numbers are cut into pieces, each as long as its stride goes on; a piece of a few is written out.

#include "compiler/cost/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace shardc {

/// Returns the end of the numbers from `begin` on that have one stride.
static auto PieceEnd(const std::vector<int64_t>& numbers, size_t begin) -> size_t {
  size_t end = begin + 1;
  while (end < numbers.size() &&
         (end == begin + 1 || numbers[end] - numbers[end - 1] == numbers[begin + 1] - numbers[begin])) {
    ++end;
  }
  // Two of any numbers have a stride; they are a piece only if nothing else could be made of the second.
  return end - begin == 2 && end < numbers.size() ? begin + 1 : end;
}

static auto PieceText(const std::vector<int64_t>& numbers, size_t begin, size_t end) -> std::string {
  constexpr size_t FewestFolded = 3;
  const size_t count = end - begin;
  const bool is_dense = count > 1 && numbers[begin + 1] - numbers[begin] == 1;
  if (count >= FewestFolded && is_dense) {
    return fmt::format("{} ... {}", numbers[begin], numbers[end - 1]);
  }
  if (count > FewestFolded + 1) {
    return fmt::format("{}, {}, {}, ... {}", numbers[begin], numbers[begin + 1], numbers[begin + 2], numbers[end - 1]);
  }
  std::string text;
  for (size_t i = begin; i < end; ++i) {
    text += fmt::format("{}{}", i == begin ? "" : ", ", numbers[i]);
  }
  return text;
}

auto FoldNumbers(const std::vector<int64_t>& numbers) -> std::string {
  constexpr int MostPieces = 4;
  std::string text;
  int pieces = 0;
  for (size_t begin = 0; begin < numbers.size();) {
    if (pieces++ == MostPieces) {
      return fmt::format("{}, ... {} ({} in all)", text, numbers.back(), numbers.size());
    }
    const size_t end = PieceEnd(numbers, begin);
    text += (begin == 0 ? "" : ", ") + PieceText(numbers, begin, end);
    begin = end;
  }
  return text;
}

auto Numbered(std::string_view name) -> NumberedName {
  const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    const std::string_view first = part.substr(0, part.find('-'));
    const std::string_view last = part.substr(std::min(first.size() + 1, part.size()));
    int64_t number = 0;
    if (!first.empty() && std::ranges::all_of(first, is_digit) && std::ranges::all_of(last, is_digit) &&
        std::from_chars(first.data(), first.data() + first.size(), number).ec == std::errc()) {
      const std::string star = last.empty() ? "*" : "*-*";
      return {std::string(name.substr(0, begin)) + star + std::string(name.substr(end)), number};
    }
    begin = end + 1;
  }
  return {std::string(name), std::nullopt};
}

auto FoldNames(const std::vector<std::string>& names) -> std::string {
  std::vector<int64_t> numbers;
  for (const std::string& name : names) {
    if (const auto number = Numbered(name).number) {
      numbers.push_back(*number);
    }
  }
  const std::string pattern = names.empty() ? "" : Numbered(names.front()).pattern;
  const size_t star = pattern.find('*');
  if (names.size() < 2 || numbers.size() != names.size()) {
    return names.empty() ? "" : names.size() == 1 ? names.front() : names.front() + " ... " + names.back();
  }
  if (pattern.find("*-*") != std::string::npos) {
    return names.front() + " ... " + names.back().substr(star);
  }
  const std::string folded = FoldNumbers(numbers);
  // What comes after the number needs a bracket: "layers.{0 ... 3}.mlp".
  return star + 1 == pattern.size() ? pattern.substr(0, star) + folded
                                    : pattern.substr(0, star) + "{" + folded + "}" + pattern.substr(star + 1);
}

}  // namespace shardc
