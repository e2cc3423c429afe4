#include "compiler/start/match_names.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "compiler/base/glob.h"
#include "compiler/base/text/joined.h"
#include "compiler/start/nearest_names.h"

namespace shardc {

/// Returns "units: embed, layers.0, 30 more".
template <class Names>
static auto ListedAs(std::string_view noun, const Names& names, size_t most) -> std::string {
  return fmt::format("{}s: {}", noun, Listed(names, most, ", ", ", "));
}

static auto ReportUnused(const NamePattern& pattern, const std::vector<std::string_view>& names,
                         const MatchMessages& messages, Diagnostics& diags) -> void {
  auto builder = diags.Build(pattern.at, messages.unused, pattern.glob);
  constexpr size_t MostNearest = 3;
  constexpr size_t MostListed = 8;
  if (const std::string closest = ClosestWord(pattern.glob, names); !closest.empty()) {
    builder.Help(fmt::format("the nearest {} is {}", messages.noun, closest));
  } else if (messages.lists_names) {
    builder.Help(ListedAs(messages.noun, names, MostListed));
  } else if (const auto nearest = NearestNames(pattern.glob, names, MostNearest); !nearest.empty()) {
    builder.Help(fmt::format("the nearest {}s: {}", messages.noun, fmt::join(nearest, ", ")));
  } else {
    builder.Help(ListedAs(messages.noun, FoldedNames(names), MostNearest));
  }
  builder.Emit();
}

auto MatchNames(const std::vector<NamePattern>& patterns, const std::vector<std::string_view>& names,
                const MatchMessages& messages, Diagnostics& diags) -> std::vector<size_t> {
  std::vector<size_t> chosen(names.size(), NoRule);
  std::vector<bool> used(patterns.size(), false);
  std::vector<std::pair<size_t, size_t>> reported;
  for (size_t n = 0; n < names.size(); ++n) {
    for (size_t p = 0; p < patterns.size(); ++p) {
      if (!GlobMatches(patterns[p].glob, names[n])) {
        continue;
      }
      used[p] = true;
      const size_t other = chosen[n];
      const bool exact = IsExactName(patterns[p].glob);
      if (other == NoRule || (exact && !IsExactName(patterns[other].glob))) {
        chosen[n] = p;
      } else if (exact == IsExactName(patterns[other].glob) && patterns[p].rule != patterns[other].rule &&
                 std::find(reported.begin(), reported.end(), std::pair{other, p}) == reported.end()) {
        reported.emplace_back(other, p);
        diags.Build(patterns[p].at, messages.duplicate, names[n], patterns[other].glob, patterns[p].glob)
            .Note(patterns[other].at, "the other match is here")
            .Emit();
      }
    }
  }
  for (size_t p = 0; p < patterns.size(); ++p) {
    if (!used[p]) {
      ReportUnused(patterns[p], names, messages, diags);
    }
  }
  for (size_t& choice : chosen) {
    choice = choice == NoRule ? NoRule : patterns[choice].rule;
  }
  return chosen;
}

}  // namespace shardc
