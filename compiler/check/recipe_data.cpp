#include "compiler/check/recipe_data.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "compiler/data/file_pattern.h"
#include "compiler/recipe/model_sizes.h"
#include "compiler/recipe/resolved_path.h"
#include "compiler/recipe/source_name.h"

namespace shardc {

auto FilesOf(const Recipe& recipe, const std::string& path) -> std::vector<std::string> {
  const std::string resolved = ResolvedPath(recipe, path);
  if (!IsFilePattern(path) || !IsMissing(resolved)) {
    return {resolved};
  }
  return FindFiles(std::filesystem::path(recipe.path).parent_path().string(), path);
}

static auto Resolve(const Recipe& recipe, const std::vector<std::string>& files) -> std::vector<std::string> {
  std::vector<std::string> paths;
  for (const std::string& file : files) {
    const std::vector<std::string> found = FilesOf(recipe, file);
    paths.insert(paths.end(), found.begin(), found.end());
  }
  return paths;
}

/// Returns the value of a word, or the default of a plan if the word is refused.
template <class E>
static auto ValueOf(const OneOf<E>& word, E otherwise) -> E {
  return word.is_accepted() ? E{word} : otherwise;
}

auto DataOf(const Recipe& recipe) -> DataSource {
  const DataSource defaults;
  DataSource data{.sources = {},
                  .format = ValueOf(*recipe.data.format, defaults.format),
                  .synthetic = ValueOf(*recipe.data.synthetic, defaults.synthetic),
                  .order = ValueOf(*recipe.data.order, defaults.order),
                  .seed = static_cast<uint64_t>(*recipe.data.seed),
                  .eval_tokens = *recipe.data.eval_tokens,
                  .eval_files = {},
                  .vocab = *recipe.model.vocab,
                  .seq = *recipe.model.seq};
  if (data.is_synthetic()) {
    data.sources.emplace_back();
  }
  if (recipe.data.eval.is_set) {
    data.eval_files = Resolve(recipe, *recipe.data.eval);
    const OpenedList opened = OpenList(EvalList(data), data.format);
    data.eval_file_tokens = opened.is_whole() ? opened.num_ids : 0;
  }
  if (recipe.data.tokens.is_set) {
    data.sources.push_back({.name = "", .weight = "", .files = Resolve(recipe, *recipe.data.tokens)});
  }
  for (size_t i = 0; i < recipe.data.source.size(); ++i) {
    const SourceTable& source = recipe.data.source[i];
    data.sources.push_back(
        {.name = SourceName(recipe, i), .weight = source.weight->text, .files = Resolve(recipe, *source.tokens)});
  }
  return data;
}

auto HeadsOf(const Recipe& recipe) -> HeadTable {
  HeadTable heads;
  if (recipe.data.targets.is_set) {
    heads.Add({.name = std::string(OwnHead),
               .vocab = *recipe.model.vocab,
               .files = Resolve(recipe, *recipe.data.targets),
               .is_own = true});
  }
  for (const LossHead& head : recipe.loss.head) {
    heads.Add({.name = *head.name, .vocab = *head.vocab, .files = Resolve(recipe, *head.targets), .is_own = false});
  }
  return heads;
}

}  // namespace shardc
