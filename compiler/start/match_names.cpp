#include "compiler/start/match_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "compiler/base/glob.h"
#include "compiler/base/text/joined.h"
#include "compiler/keys/adapters.h"
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

/// Returns globs for a name, those that match most first: "model.*", "model.layers.*", ..., of an adapter's matrix
/// "*.lora_A.weight", "model.layers.*.weight", and the name.
static auto GlobsFor(std::string_view name) -> std::vector<std::string> {
  std::vector<std::string> globs;
  for (size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.', dot + 1)) {
    globs.push_back(fmt::format("{}.*", name.substr(0, dot)));
  }
  for (const std::string_view suffix : {DownSuffix, UpSuffix}) {
    if (name.ends_with(suffix)) {
      globs.push_back(fmt::format("*{}", suffix));
    }
  }
  globs.push_back(FoldedNames({name}).front());
  globs.emplace_back(name);
  return globs;
}

auto GlobsOf(const std::vector<std::string_view>& wanted, const std::vector<std::string_view>& names)
    -> std::vector<std::string> {
  const std::set<std::string_view> all_wanted(wanted.begin(), wanted.end());
  std::vector<std::string> globs;
  for (const std::string_view name : wanted) {
    if (std::ranges::any_of(globs, [&](const std::string& glob) { return GlobMatches(glob, name); })) {
      continue;
    }
    // A glob of one name would say less than the name.
    const auto fits = [&](const std::string& glob) {
      int64_t matches = 0;
      const bool is_wanted = std::ranges::all_of(names, [&](std::string_view other) {
        const bool is_match = GlobMatches(glob, other);
        matches += is_match ? 1 : 0;
        return !is_match || all_wanted.contains(other);
      });
      return is_wanted && (matches > 1 || glob == name);
    };
    const std::vector<std::string> candidates = GlobsFor(name);
    globs.push_back(*std::ranges::find_if(candidates, fits));
  }
  return globs;
}

}  // namespace shardc
