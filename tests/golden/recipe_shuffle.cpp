#include "tests/golden/recipe_shuffle.h"

#include <map>
#include <random>
#include <utility>
#include <vector>

#include "tests/support/text_lines.h"

namespace shardc {

namespace {

struct TextSection {
  /// As written, brackets included.
  std::string header;
  std::vector<std::string> keys;
};

/// Fisher-Yates; std::shuffle gives another order on each library.
template <class T>
auto Shuffle(std::vector<T>& items, std::mt19937_64& random) -> void {
  for (size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[random() % i]);
  }
}

auto SectionsOf(const std::string& text) -> std::vector<TextSection> {
  std::vector<TextSection> sections;
  for (const std::string& line : LinesOf(text)) {
    if (line.empty() || line[0] == '#') {
      continue;
    }
    if (line[0] == '[') {
      sections.push_back({line, {}});
    } else {
      sections.at(sections.size() - 1).keys.push_back(line);
    }
  }
  return sections;
}

}  // namespace

auto ShuffledRecipe(const std::string& text, uint64_t seed) -> std::string {
  std::mt19937_64 random(seed);
  std::vector<TextSection> sections = SectionsOf(text);
  Shuffle(sections, random);
  // Tables of one array take the places that fell to their array, in their old order.
  std::map<std::string, std::vector<TextSection>> arrays;
  for (TextSection& section : SectionsOf(text)) {
    arrays[section.header].push_back(std::move(section));
  }
  std::map<std::string, size_t> next;
  std::string out = "# shuffled\n";
  for (const TextSection& place : sections) {
    TextSection section = arrays[place.header][next[place.header]++];
    Shuffle(section.keys, random);
    out += "\n" + section.header + (random() % 2 == 0 ? "  # a comment" : "") + "\n";
    for (const std::string& key : section.keys) {
      out += random() % 3 == 0 ? "# another\n" : "";
      out += key + "\n";
    }
  }
  return out;
}

}  // namespace shardc
