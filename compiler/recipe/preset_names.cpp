// 1. Cut the name into a model and a size: meta-llama/Meta-Llama-3-8B-Instruct is llama3 and 8b. What follows the size
//    says how a model was tuned or rounded, and not what its sizes are.
// 2. A preset of that model and size is meant. If the model has presets of other sizes, name these.
// 3. Otherwise name those of that size whose models are called alike (llama3.3-70b), and those whose names are nearest.
#include "compiler/recipe/preset_names.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "compiler/base/preset_rows.h"
#include "compiler/diag/diagnostics.h"

namespace shardc {

namespace {

struct ModelName {
  /// "llama3.1"
  std::string model;
  /// "8b"; empty if the name has no size.
  std::string size;

  /// "llama"
  auto letters() const -> std::string_view {
    return std::string_view(model).substr(0, model.find_first_not_of("abcdefghijklmnopqrstuvwxyz"));
  }
};

}  // namespace

/// A hint lists at most so many names, unless all of them are of one model.
static constexpr size_t Most = 3;

/// "8b", "0.5b".
static auto IsSize(std::string_view word) -> bool {
  return word.size() > 1 && word.back() == 'b' && std::isdigit(static_cast<unsigned char>(word.front())) != 0 &&
         word.find_first_not_of("0123456789.") == word.size() - 1;
}

static auto CutName(std::string_view name) -> ModelName {
  std::string rest(name.substr(name.rfind('/') + 1));
  std::ranges::transform(rest, rest.begin(), [](unsigned char letter) { return std::tolower(letter); });
  if (rest.starts_with("meta-")) {
    rest.erase(0, std::string_view("meta-").size());
  }
  ModelName cut;
  while (!rest.empty() && cut.size.empty()) {
    const size_t end = std::min(rest.find_first_of("-_: "), rest.size());
    const std::string word = rest.substr(0, end);
    rest.erase(0, end + 1);
    (IsSize(word) ? cut.size : cut.model) += word;
  }
  return cut;
}

template <class Condition>
static auto PresetsWhere(const Condition& condition) -> std::vector<std::string_view> {
  std::vector<std::string_view> names;
  for (const PresetRow& row : PresetRows()) {
    if (condition(CutName(row.name))) {
      names.push_back(row.name);
    }
  }
  return names;
}

/// "llama2", "llama3", ...: each once.
static auto ModelsOf(const std::vector<std::string_view>& presets) -> std::vector<std::string> {
  std::vector<std::string> models;
  for (const std::string_view preset : presets) {
    models.push_back(CutName(preset).model);
  }
  models.erase(std::unique(models.begin(), models.end()), models.end());
  return models;
}

/// The nearest first.
static auto NearestBySpelling(std::string_view name) -> std::vector<std::string_view> {
  std::vector<std::string_view> names = PresetsWhere([](const ModelName&) { return true; });
  std::vector<std::string_view> nearest;
  while (nearest.size() < Most) {
    const auto found = std::ranges::find(names, ClosestWord(name, names));
    if (found == names.end()) {
      break;
    }
    nearest.push_back(*found);
    names.erase(found);
  }
  return nearest;
}

auto HelpOnPresets(std::string_view name) -> std::string {
  constexpr std::string_view All = "`shardc presets` lists all";
  const ModelName asked = CutName(name);
  const auto list = [](const std::vector<std::string_view>& names) {
    return fmt::format("\"{}\"", fmt::join(names, "\", \""));
  };
  const auto of_model =
      PresetsWhere([&](const ModelName& known) { return !known.size.empty() && known.model == asked.model; });
  if (!of_model.empty()) {
    const auto meant =
        PresetsWhere([&](const ModelName& known) { return known.model == asked.model && known.size == asked.size; });
    return !meant.empty() ? fmt::format("did you mean {}?", list(meant))
           : asked.size.empty()
               ? fmt::format("{} has {}", asked.model, list(of_model))
               : fmt::format("there is no {} of {}; there are {}", asked.model, asked.size, list(of_model));
  }
  const std::string_view letters = asked.letters();
  const auto alike =
      PresetsWhere([&](const ModelName& known) { return !known.size.empty() && known.letters() == letters; });
  const auto of_size = PresetsWhere([&](const ModelName& known) {
    return !asked.size.empty() && known.letters() == letters && known.size == asked.size;
  });
  std::vector<std::string_view> nearest = of_size;
  for (const std::string_view spelled : NearestBySpelling(name)) {
    if (nearest.size() < Most && std::ranges::find(nearest, spelled) == nearest.end()) {
      nearest.push_back(spelled);
    }
  }
  if (nearest.empty() && asked.size.empty() && !alike.empty()) {
    return fmt::format("models of {} here are {}; {}", letters, fmt::join(ModelsOf(alike), ", "), All);
  }
  const std::string lacks = !alike.empty() && !asked.size.empty() && of_size.empty()
                                ? fmt::format("no preset of {} has {}; ", letters, asked.size)
                                : "";
  return nearest.empty() ? fmt::format("{}{}", lacks, All)
                         : fmt::format("{}nearest: {}; {}", lacks, list(nearest), All);
}

}  // namespace shardc
