#include "compiler/check/recipe_data.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include "compiler/data/file_pattern.h"
#include "compiler/keys/model_sizes.h"
#include "compiler/plan/header.h"
#include "compiler/recipe/resolved.h"
#include "compiler/recipe/resolved_path.h"

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

auto DataOf(const Recipe& recipe) -> DataSource {
  PlanKeys keys = KeysOf(recipe);
  const auto forget_refused = [](auto& word) {
    if (word && !word->is_accepted()) {
      word.reset();
    }
  };
  forget_refused(keys.data.format);
  forget_refused(keys.data.synthetic);
  forget_refused(keys.data.order);
  forget_refused(keys.data.documents);
  forget_refused(keys.data.pack);
  forget_refused(keys.data.too_long);
  for (auto& source : keys.data.source) {
    forget_refused(source.too_long);
  }
  DataSource data;
  PutData(keys, data);
  if (recipe.data.eval.is_set) {
    data.eval_files = Resolve(recipe, *recipe.data.eval);
    const OpenedList opened = OpenList(EvalList(data), data.format);
    data.eval_file_tokens = opened.is_whole() ? opened.num_ids : 0;
  }
  for (size_t i = 0; i < data.sources.size(); ++i) {
    if (i < recipe.data.source.size()) {
      data.sources[i].files = Resolve(recipe, *recipe.data.source[i].tokens);
      data.sources[i].targets = Resolve(recipe, *recipe.data.source[i].targets);
    } else if (recipe.data.tokens.is_set) {
      data.sources[i].files = Resolve(recipe, *recipe.data.tokens);
    }
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
