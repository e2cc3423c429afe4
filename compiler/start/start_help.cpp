#include "compiler/start/start_help.h"

#include <algorithm>
#include <iterator>

#include "compiler/base/glob.h"
#include "compiler/keys/toml_value.h"
#include "compiler/start/match_names.h"

namespace shardc {

auto ListWith(std::string_view key, const Located<std::vector<std::string>>& there,
              const std::vector<std::string_view>& more, const std::vector<std::string_view>& names) -> std::string {
  std::vector<std::string> globs = *there;
  std::erase_if(globs, [&](const std::string& glob) {
    return std::ranges::none_of(names, [&](std::string_view name) { return GlobMatches(glob, name); });
  });
  std::ranges::copy(GlobsOf(more, names), std::back_inserter(globs));
  return fmt::format("{} = {}", key, WriteToml(globs));
}

auto HelpOnNotLoaded(const std::vector<std::string_view>& not_loaded, const std::vector<std::string_view>& names,
                     const Manifest& manifest, const FirstStart& first) -> std::string {
  constexpr size_t MostGlobs = 16;
  std::vector<std::string_view> of_seed;
  std::vector<std::string_view> left;
  for (const auto& [name, tensor] : manifest.tensors) {
    of_seed.push_back(name);
    if (std::ranges::find(not_loaded, name) != not_loaded.end()) {
      left.push_back(name);
    }
  }
  if (GlobsOf(not_loaded, names).size() + GlobsOf(left, of_seed).size() > MostGlobs) {
    return std::string("to begin them by their init rules, name them in `missing` of start.first") +
           (left.empty() ? "" : ", and in `unused` too");
  }
  return fmt::format("to begin them by their init rules, write into start.first: {}{}",
                     ListWith("missing", first.missing, not_loaded, names),
                     left.empty() ? "" : ", " + ListWith("unused", first.unused, left, of_seed));
}

}  // namespace shardc
