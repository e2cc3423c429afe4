// Greedy matching with one point of return, the last star: whatever an earlier star took cannot help once a later star
// has been reached, so nothing else needs to be tried again.

#include "compiler/base/glob.h"

namespace shardc {

auto GlobMatches(std::string_view pattern, std::string_view name) -> bool {
  size_t at_pattern = 0;
  size_t at_name = 0;
  size_t after_star = std::string_view::npos;
  size_t star_end = 0;
  while (at_name < name.size()) {
    if (at_pattern < pattern.size() && pattern[at_pattern] == '*') {
      after_star = ++at_pattern;
      star_end = at_name;
    } else if (at_pattern < pattern.size() && (pattern[at_pattern] == '?' || pattern[at_pattern] == name[at_name])) {
      ++at_pattern;
      ++at_name;
    } else if (after_star != std::string_view::npos) {
      at_pattern = after_star;
      at_name = ++star_end;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at_pattern) == std::string_view::npos;
}

auto IsExactName(std::string_view pattern) -> bool { return pattern.find_first_of("*?") == std::string_view::npos; }

}  // namespace shardc
