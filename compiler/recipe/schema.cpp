// The JSON schema of recipes, from the key and value tables. It can say less than the compiler checks (nothing across
// keys), but what it rejects the compiler rejects too.

#include <nlohmann/json.hpp>
#include <utility>

#include "compiler/base/check.h"
#include "compiler/recipe/key_rows.h"
#include "compiler/recipe/reference.h"

namespace shardc {

using Json = nlohmann::ordered_json;

/// Editors mark the key itself by it, where `false` would mark each key of the table.
static auto NoOtherKey() -> Json { return {{"not", {{"title", "unknown key"}}}}; }

static auto TypeSchema(std::string_view type) -> Json {
  if (type == "Int") {
    return {{"type", "integer"}};
  }
  if (type == "Real") {
    return {{"type", "number"}};
  }
  if (type == "Bool") {
    return {{"type", "boolean"}};
  }
  if (type == "Text" || IsOneOf(type)) {
    return {{"type", "string"}};
  }
  if (type == "Texts") {
    return {{"type", "array"}, {"items", {{"type", "string"}}}};
  }
  if (type == "Ints") {
    return {{"type", "array"}, {"items", {{"type", "integer"}}}};
  }
  if (type == "Reals") {
    return {{"type", "array"}, {"items", {{"type", "number"}}}};
  }
  if (type == "Formula") {
    return {{"type", {"number", "string"}}};
  }
  if (type == "ByteSize") {
    return {{"anyOf", {{{"enum", {0}}}, {{"type", "string"}}}}};
  }
  if (type == "FirstStart") {
    const Json globs{{"type", "array"}, {"items", {{"type", "string"}}}};
    const Json table{{"type", "object"},
                     {"additionalProperties", NoOtherKey()},
                     {"properties",
                      {{"seed", {{"type", "string"}}},
                       {"continue", {{"type", "string"}}},
                       {"adapter", {{"type", "string"}}},
                       {"reset", {{"type", "array"}, {"items", {{"enum", EnumNames<StagePart>::names}}}}},
                       {"missing", globs},
                       {"unused", globs}}}};
    return {{"anyOf", {{{"type", "string"}}, table}}};
  }
  CHECK(type == "Condition", "type {}", type);
  return {{"type", {"boolean", "string"}}};
}

/// Defaults and bounds are TOML literals that JSON spells alike, inf and nan excepted, which never occur.
static auto KeySchema(const RecipeKeyRow& row) -> Json {
  Json schema;
  schema["description"] = row.doc;
  schema.update(TypeSchema(row.type));
  if (!row.default_text.empty()) {
    schema["default"] = Json::parse(row.default_text);
  }
  if (const auto range = RangeOf(row.path())) {
    schema["minimum"] = Json::parse(range->low_text);
    schema["maximum"] = Json::parse(range->high_text);
  }
  Json& of_words = row.type == "FirstStart" ? schema["anyOf"][0] : schema;
  for (const Choice& choice : ChoicesOf(row.path())) {
    if (choice.accepted) {
      of_words["enum"].push_back(choice.word);
    }
  }
  return schema;
}

/// The table with the keys of a section, or of a list in it.
static auto TableSchema(const RecipeSectionRow& table) -> Json {
  Json schema{{"description", table.doc}, {"type", "object"}, {"additionalProperties", NoOtherKey()}};
  Json required = Json::array();
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    if (row.section == table.section && row.list == table.list) {
      schema["properties"][row.name] = KeySchema(row);
      if (row.required && row.is_of_all) {
        required.push_back(row.name);
      }
    }
  }
  // For keys of sections a preset may stand in. An `anyOf` of both ways would make each mistake below it several.
  if (!required.empty() && !table.list.empty()) {
    schema["required"] = required;
  }
  return schema;
}

auto RecipeSchema() -> std::string {
  Json schema{{"$schema", "http://json-schema.org/draft-04/schema#"},
              {"title", "shardc recipe"},
              {"description", "A training run: what to train, and how to spread it."},
              {"type", "object"},
              {"additionalProperties", NoOtherKey()},
              {"required", Json::array({"model"})}};
  for (const RecipeSectionRow& table : RecipeSectionRows()) {
    Json table_schema = TableSchema(table);
    if (table.list.empty()) {
      schema["properties"][table.section] = std::move(table_schema);
    } else {
      schema["properties"][table.section]["properties"][table.list] = {
          {"description", table.doc}, {"type", "array"}, {"items", std::move(table_schema)}};
    }
  }
  return schema.dump(2) + "\n";
}

}  // namespace shardc
