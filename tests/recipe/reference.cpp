// The tables against each other, and the files made from them.

#include "compiler/recipe/reference.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "compiler/driver/error_reference.h"
#include "compiler/recipe/key_rows.h"
#include "compiler/recipe/recipe.h"
#include "compiler/report/machines.h"
#include "tests/support/recorded.h"

namespace shardc {
namespace {

TEST(Reference, GeneratedFilesAreCurrent) {
  struct File {
    std::string path;
    std::string text;
  };
  const File files[] = {
      {"docs/errors.md", ErrorReference()},
      {"docs/recipe.md", RecipeReference()},
      {"docs/machines.md", MachineReference()},
      {"schemas/recipe.schema.json", RecipeSchema()},
  };
  for (const File& file : files) {
    ExpectRecorded(file.path, file.text, "tools/dev docs");
  }
}

TEST(Reference, ValueRowsNameKeys) {
  std::set<std::string> paths;
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    paths.insert(row.path());
  }
  for (const std::string& path : PathsWithValues()) {
    EXPECT_TRUE(paths.contains(path)) << path;
  }
}

TEST(Reference, EveryNumberHasARange) {
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    if (row.type == "Int" || row.type == "Real") {
      EXPECT_TRUE(RangeOf(row.path()).has_value()) << row.path();
    }
  }
}

TEST(Reference, DefaultsAreAccepted) {
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    if (row.default_text.empty()) {
      continue;
    }
    if (const auto range = RangeOf(row.path())) {
      const double value = std::stod(row.default_text);
      EXPECT_TRUE(range->low <= value && value <= range->high) << row.path();
    }
    const auto& choices = ChoicesOf(row.path());
    bool is_accepted = choices.empty();
    for (const Choice& choice : choices) {
      is_accepted = is_accepted || (choice.accepted && "\"" + choice.word + "\"" == row.default_text);
    }
    EXPECT_TRUE(is_accepted) << row.path();
  }
}

TEST(Reference, SchemaUsesOnlyWhatAllDraftsShare) {
  const auto check = [](const nlohmann::json& schema, const auto& self) -> void {
    const std::set<std::string> allowed{
        "$schema", "title",   "description", "type",  "properties", "additionalProperties", "required", "default",
        "minimum", "maximum", "enum",        "items", "anyOf"};
    for (const auto& [key, value] : schema.items()) {
      EXPECT_TRUE(allowed.contains(key)) << key;
    }
    if (schema.contains("anyOf")) {
      for (const auto& form : schema.at("anyOf")) {
        self(form, self);
      }
    }
    // A form that says which keys are there has the type of the schema around it.
    if (!schema.contains("type")) {
      return;
    }
    if (schema.at("type") == "object") {
      EXPECT_TRUE(schema.at("additionalProperties").at("not").contains("title"));
      // A choice of several tables would make each mistake in one of them several.
      EXPECT_FALSE(schema.contains("anyOf"));
      for (const auto& [name, inner] : schema.at("properties").items()) {
        self(inner, self);
      }
    }
    if (schema.contains("items")) {
      self(schema.at("items"), self);
    }
  };
  check(nlohmann::json::parse(RecipeSchema()), check);
}

TEST(Reference, EveryKeyHasHelp) {
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    EXPECT_NE(DescribeKey(row.path()), "") << row.path();
    EXPECT_NE(row.doc, "") << row.path();
  }
  EXPECT_EQ(DescribeKey("model.nothing"), "");
}

/// House style of messages: lower case, no final period; every long text ends with a fix.
TEST(Reference, DiagnosticsKeepTheHouseStyle) {
  for (const DiagnosticRow& row : DiagnosticRows()) {
    EXPECT_FALSE(row.format.ends_with('.')) << row.name;
    EXPECT_FALSE(row.format[0] >= 'A' && row.format[0] <= 'Z') << row.name;
    EXPECT_NE(row.help.find("\nFix: "), std::string_view::npos) << row.name;
    EXPECT_TRUE(row.help.ends_with(".\n") || row.help.ends_with(")\n")) << row.name;
    EXPECT_EQ(row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string_view::npos) << row.name;
    EXPECT_NE(DescribeDiagnostic(row.name), "");
  }
}

}  // namespace
TEST(Machines, EachFigureIsANumberWithASource) {
  std::set<std::string_view> names;
  for (const MachineRow& row : MachineRows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    for (const Figure& figure : {row.memory, row.peak_bf16, row.memory_bandwidth, row.link_bandwidth,
                                 row.devices_per_host, row.outside_arenas}) {
      EXPECT_GT(figure.value, 0) << row.name;
      EXPECT_FALSE(figure.source.empty()) << row.name << " " << figure.value;
    }
    EXPECT_LT(row.outside_arenas.value, row.memory.value) << row.name;
    EXPECT_EQ(MachineOfCard(row.card), &row) << row.card;
  }
}

}  // namespace shardc
