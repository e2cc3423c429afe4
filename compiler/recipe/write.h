// Values in TOML: of the effective recipe, and of the defaults in tables and reference.
#pragma once

#include <string>

#include "compiler/recipe/recipe.h"

namespace shardc {

auto WriteToml(int64_t value) -> std::string;
/// The shortest text that reads back to the same number, always as a real one: "1.0", "1e-05".
auto WriteToml(double value) -> std::string;
auto WriteToml(bool value) -> std::string;
auto WriteToml(const std::string& value) -> std::string;
auto WriteToml(const std::vector<std::string>& value) -> std::string;
auto WriteToml(const std::vector<double>& value) -> std::string;
/// Plain numbers, true and false without quotes.
auto WriteToml(const Formula& value) -> std::string;
auto WriteToml(const ByteSize& value) -> std::string;
auto WriteToml(const Condition& value) -> std::string;
auto WriteToml(const FirstStart& value) -> std::string;
template <class E>
auto WriteToml(const OneOf<E>& value) -> std::string {
  return WriteToml(value.text());
}

/// The recipe with all defaults, each line with where its value comes from; reads back to the same recipe.
auto PrintRecipe(const Recipe& recipe) -> std::string;

}  // namespace shardc
