// Asks the library that parses command lines what the commands declared.

#include "compiler/driver/command_table.h"

#include <CLI/CLI.hpp>

#include "compiler/base/machine_rows.h"
#include "compiler/base/preset_rows.h"
#include "compiler/base/text/split.h"
#include "compiler/driver/command.h"
#include "compiler/passes/pipeline.h"
#include "compiler/recipe/key_rows.h"

namespace shardc {

/// What the value is one of, if it is one of a few words.
static auto WordsOf(const OptionRow& row) -> std::vector<std::string> {
  std::vector<std::string> words;
  if (row.metavar == "PASS") {
    for (const PassRow& pass : PassRows()) {
      words.emplace_back(pass.name);
    }
  } else if (row.metavar == "SHELL") {
    words = {"bash", "zsh", "fish"};
  } else if (row.long_name == "--preset") {
    for (const PresetRow& preset : PresetRows()) {
      words.emplace_back(preset.name);
    }
  } else if (row.long_name == "--fit") {
    for (const MachineRow& machine : MachineRows()) {
      words.emplace_back(machine.name);
    }
  } else if (row.long_name == "--unset") {
    words = KeyPaths();
  } else if (row.metavar.find('|') != std::string::npos && !row.metavar.starts_with("RECIPE|")) {
    const auto parts = SplitAt(row.metavar, "|");
    words.assign(parts.begin(), parts.end());
  }
  return words;
}

static auto RowOf(const CLI::Option& option) -> OptionRow {
  const auto first = [](const std::vector<std::string>& names, const char* dashes) {
    return names.empty() ? "" : dashes + names.front();
  };
  OptionRow row{.long_name = first(option.get_lnames(), "--"),
                .short_name = first(option.get_snames(), "-"),
                .metavar = "",
                .words = {},
                .doc = option.get_description(),
                .is_required = option.get_required(),
                .is_repeated = option.get_items_expected_max() > 1};
  const bool takes_value = option.get_items_expected_max() > 0;
  row.metavar = !takes_value ? "" : row.is_positional() ? option.get_name(true) : option.get_type_name();
  row.words = WordsOf(row);
  return row;
}

auto CommandTable() -> std::vector<CommandRow> {
  std::vector<CommandRow> rows;
  for (const Subcommand& subcommand : Subcommands()) {
    CLI::App app;
    app.set_help_flag("-h,--help", "print this help");
    CommandOptions options(app);
    // Holds the places that the options name.
    const Action action = subcommand.declare(options);
    CommandRow& row = rows.emplace_back(
        CommandRow{.name = subcommand.name, .doc = subcommand.doc, .examples = subcommand.examples, .options = {}});
    for (const CLI::Option* option : std::as_const(app).get_options()) {
      row.options.push_back(RowOf(*option));
    }
  }
  return rows;
}

auto SetKeys() -> std::vector<SetKey> {
  std::vector<SetKey> keys;
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    if (!row.list.empty()) {
      continue;
    }
    SetKey& key = keys.emplace_back(SetKey{.path = row.path(), .words = {}});
    for (const Choice& choice : ChoicesOf(row.path())) {
      if (choice.accepted) {
        key.words.push_back(choice.word);
      }
    }
    if (row.type == "Bool") {
      key.words = {"true", "false"};
    }
  }
  return keys;
}

}  // namespace shardc
