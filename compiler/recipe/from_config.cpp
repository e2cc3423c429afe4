// Finds out whose configuration a file is: the program whose tables know more than half of its settings. Other trainers
// have a few of the same names.
#include "compiler/recipe/from_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "compiler/base/printable.h"
#include "compiler/base/text/parse_whole.h"
#include "compiler/base/text/split.h"
#include "compiler/recipe/config_lines.h"

namespace shardc {

namespace {

/// How much of a configuration the tables of a program know.
struct Known {
  int64_t num_settings = 0;
  int64_t num_known = 0;
  std::vector<std::string> other_sections;
};

}  // namespace

static auto KnownBy(ConfigProgram program, const TomlNode& root) -> Known {
  Known known;
  for (const TomlEntry& section : root.entries) {
    const bool is_table = section.value.kind == TomlNode::Kind::Table;
    int64_t here = !is_table && IsKnownSetting(program, "", section.key) ? 1 : 0;
    for (const TomlEntry& entry : section.value.entries) {
      // Recipes spell these of torchtitan's alike, so that no answer to them is needed.
      constexpr auto Alike = std::to_array<std::string_view>({"name", "lr", "eps", "weight_decay"});
      const bool is_alike = program == ConfigProgram::TorchtitanToml && section.key == "optimizer" &&
                            std::ranges::find(Alike, entry.key) != Alike.end();
      here += is_alike || IsKnownSetting(program, section.key, entry.key) ? 1 : 0;
    }
    known.num_known += here;
    known.num_settings += is_table ? std::ssize(section.value.entries) : 1;
    if (here == 0) {
      known.other_sections.push_back(PrintableLine(is_table ? "[" + section.key + "]" : section.key));
    }
  }
  return known;
}

/// Returns the program whose configuration a tree is.
static auto ProgramOf(const std::string& name, const ConfigTree& tree) -> ErrorOr<ConfigProgram> {
  if (tree.is_json) {
    const auto is_table = [&](std::string_view key) {
      const TomlNode* const node = EntryOf(tree.root, key);
      return node != nullptr && node->kind == TomlNode::Kind::Table;
    };
    FAIL_IF(
        !is_table("model_spec") || !is_table("training"), ExitCode::RecipeRejected,
        "{} is JSON, and no configuration of torchtitan, which has \"model_spec\" and \"training\"; torchtitan writes "
        "one with --debug.save_config_file FILE, and a model of Hugging Face is named by its folder",
        name);
    return ConfigProgram::TorchtitanJson;
  }
  const Known titan = KnownBy(ConfigProgram::TorchtitanToml, tree.root);
  const Known forge = KnownBy(ConfigProgram::KempnerForge, tree.root);
  const bool is_forge = forge.num_known > titan.num_known;
  const Known& known = is_forge ? forge : titan;
  FAIL_IF(
      2 * known.num_known <= known.num_settings, ExitCode::RecipeRejected,
      "{} is no configuration of torchtitan or KempnerForge, which have {} and {} of its {} settings{}; begin with "
      "`shardc new FILE --preset NAME`, where NAME is one of `shardc presets`",
      name, titan.num_known, forge.num_known, known.num_settings,
      known.other_sections.empty() ? "" : fmt::format(", and nothing of {}", fmt::join(known.other_sections, ", ")));
  const auto has = [&](std::string_view key) {
    const TomlNode* const model = EntryOf(tree.root, "model");
    return model != nullptr && EntryOf(*model, key) != nullptr;
  };
  FAIL_IF(!is_forge && !has("name") && !has("flavor"), ExitCode::RecipeRejected,
          "{} does not say which model it trains; write name and flavor of torchtitan into its [model]", name);
  FAIL_IF(is_forge && !(has("dim") && has("n_layers")), ExitCode::RecipeRejected,
          "{} does not say which model it trains; write dim, n_layers, n_heads and vocab_size of KempnerForge into its "
          "[model]",
          name);
  return is_forge ? ConfigProgram::KempnerForge : ConfigProgram::TorchtitanToml;
}

auto AddCarried(OtherConfig& config, RecipeLines& lines) -> void {
  const auto rows = CarriedRows();
  for (auto row = rows.begin(); row != rows.end();) {
    const auto end = std::find_if(row, rows.end(), [&](const CarriedRow& other) {
      return other.program != row->program || other.ours != row->ours;
    });
    if (row->program == config.program()) {
      std::vector<std::string_view> names;
      std::transform(row, end, std::back_inserter(names), [](const CarriedRow& own) { return own.theirs; });
      const std::vector<std::string_view> ours = SplitAt(row->ours, ".");
      // A whole number counts something: none of these is 0.
      const bool is_count =
          row->default_text.find_first_not_of("0123456789") == std::string_view::npos && !row->ours.ends_with("seed");
      lines.Add(ours[0], ours[1],
                is_count ? std::to_string(
                               config.TakeCount(names, ParseWhole<int64_t>(std::string(row->default_text)).value_or(0)))
                         : config.Take(names, row->default_text));
    }
    row = end;
  }
}

auto AddRanks(RecipeLines& lines, int64_t ranks, int64_t global_batch, int64_t micro_batch, int64_t replicate) -> void {
  if (ranks > 0) {
    lines.Add("mesh", "dp", std::to_string(ranks));
    return;
  }
  int64_t some = 8;
  while (some > 1 && global_batch > 0 && global_batch % (some * micro_batch * replicate) != 0) {
    some /= 2;
  }
  lines.Add("mesh", "dp", std::to_string(some), "-1 there: all other ranks of the launch; write their number");
}

auto RecipeFromConfig(const std::string& name, std::string text) -> ErrorOr<ConvertedRecipe> {
  ASSIGN_OR_RETURN(const auto tree, ParseConfig(name, std::move(text)));
  ASSIGN_OR_RETURN(const auto program, ProgramOf(name, tree));
  OtherConfig config(program, tree.root);
  RecipeLines lines;
  if (program == ConfigProgram::KempnerForge) {
    AddKempnerForge(tree, config, lines);
  } else {
    AddTorchtitan(tree, config, lines);
  }
  ConvertedRecipe recipe{.text = {}, .not_carried = config.NotCarried()};
  RETURN_IF_ERROR(config.Judge(name));
  const std::string_view defaults = program == ConfigProgram::TorchtitanJson ? " Nothing is filled in"
                                    : program == ConfigProgram::KempnerForge
                                        ? " Settings that it leaves out have the defaults of KempnerForge"
                                        : " Settings that it leaves out have torchtitan's defaults (v0.2.2)";
  recipe.text = fmt::format(
      "# Made of {}, a configuration of {}.\n#{}. This is a start: read each line. What it would cost:\n# shardc plan "
      "--explain FILE.\n",
      PrintableLine(name), program == ConfigProgram::KempnerForge ? "KempnerForge" : "torchtitan", defaults);
  if (!recipe.not_carried.empty()) {
    recipe.text += fmt::format("#\n# Not carried over:\n#   {}\n", fmt::join(recipe.not_carried, "\n#   "));
  }
  recipe.text += lines.Text();
  return recipe;
}

}  // namespace shardc
