// docs/expressions.md: its tables are those of schemas/, and its examples are sound.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <regex>

#include "compiler/expr/init_schemes.h"
#include "compiler/expr/names.h"
#include "tests/expr/expr_case.h"
#include "tests/support/recorded.h"
#include "tests/support/repository.h"

namespace shardc {
namespace {

auto KindsText(const std::vector<ExprKind>& kinds) -> std::string {
  if (kinds.size() == EnumNames<ExprKind>::names.size()) {
    return "all";
  }
  std::string text;
  for (const ExprKind kind : kinds) {
    std::string_view name = ToText(kind);
    const bool ends_with_y = name.ends_with('y');
    name.remove_suffix(ends_with_y ? 1 : 0);
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", name, ends_with_y ? "ies" : "s");
  }
  return text;
}

auto NamesText() -> std::string {
  std::string text = "| name | in | is |\n|---|---|---|\n";
  for (const ExprVariableRow& row : ExprVariableRows()) {
    text += fmt::format("| `{}` | {} | {} |\n", row.name, KindsText(row.kinds), row.doc);
  }
  for (const ExprConstantRow& row : ExprConstantRows()) {
    text += fmt::format("| `{}` | all | {} |\n", row.name, row.doc);
  }
  return text;
}

auto FunctionsText(bool of_library) -> std::string {
  std::string text = of_library
                         ? "| function | in | domain | value | is written | source |\n|---|---|---|---|---|---|\n"
                         : "| function | in | domain | value | error, ulp | source |\n|---|---|---|---|---|---|\n";
  for (const ExprFunctionRow& row : ExprFunctionRows()) {
    if (row.is_library() == of_library) {
      text += fmt::format("| `{}({})` | {} | {} | {} |{} {} |\n", row.name, row.parameters, KindsText(row.kinds),
                          row.parameters.empty() ? ""
                          : row.domain.empty()   ? "numbers"
                                                 : row.domain,
                          row.doc,
                          fmt::format(" {} |", of_library ? fmt::format("`{}`", row.body) : std::string(row.error)),
                          row.source);
    }
  }
  return text;
}

auto SchemesText() -> std::string {
  std::string text = "\nA scheme has a rule for each kind of parameter:\n\n| kind | is |\n|---|---|\n";
  for (size_t kind = 0; kind < CountOf<ParameterKind>(); ++kind) {
    text += fmt::format("| {} | {} |\n", ToText(static_cast<ParameterKind>(kind)), ParameterKindDocs[kind]);
  }
  for (const InitScheme& scheme : InitSchemes()) {
    text += fmt::format("\n**`{}`**: {}.\n\n| kinds | rule |\n|---|---|\n", scheme.name, scheme.doc);
    for (const InitSchemeRule& rule : scheme.rules) {
      std::string kinds;
      for (const ParameterKind kind : rule.kinds) {
        kinds += fmt::format("{}{}", kinds.empty() ? "" : ", ", ToText(kind));
      }
      text += fmt::format("| {} | `{}` |\n", kinds, rule.value);
    }
  }
  return text;
}

/// Returns the page from its heading "Names" on.
auto ExprReference() -> std::string {
  return fmt::format(
      "## Names\n\n{}\n"
      "## Functions\n\nA function takes numbers and returns a number or a distribution. Angles are in radians. `n`, "
      "`begin` and "
      "`decay` of\nschedules are numbers of steps. All other numbers have no unit. The functions have the same bits on "
      "every machine. A\ntest with MPFR measures that no function is off by more than the error of its row.\n\n{}\n"
      "### Written in the language\n\n{}\n"
      "## Schemes of init rules\n{}",
      NamesText(), FunctionsText(false), FunctionsText(true), SchemesText());
}

constexpr std::string_view Page = "docs/expressions.md";

TEST(ExprReference, TablesOfThePageAreCurrent) {
  const std::string page = ReadRepositoryFile(Page);
  const size_t begin = page.find("## Names\n");
  ASSERT_NE(begin, std::string::npos);
  ExpectRecorded("docs/expressions.md", page.substr(0, begin) + ExprReference(),
                 "SHARDC_UPDATE_GOLDENS=1 build/tests/tests_expr --gtest_filter='ExprReference.*'");
}

// Lines `    key = "expression"` of the page.
TEST(ExprReference, ExamplesOfThePageHaveAValue) {
  const std::string page = ReadRepositoryFile(Page);
  const std::regex line("\n    ([a-z_]+) = \"([^\"]+)\"");
  ExprVariables variables = TestVariables();
  variables["steps"] = 10'000;
  int num_examples = 0;
  for (std::sregex_iterator match(page.begin(), page.end(), line); match != std::sregex_iterator(); ++match) {
    const std::string key = (*match)[1];
    const ExprKind kind = key == "lr" || key == "weight" ? Schedule
                          : key == "value"               ? ExprKind::Rule
                          : key == "rope_frequency"      ? Frequency
                                                         : Predicate;
    EXPECT_EQ(ValueOrErrors((*match)[2].str(), kind, variables).find("expr-"), std::string::npos)
        << key << " = " << (*match)[2];
    ++num_examples;
  }
  EXPECT_GE(num_examples, 10);
}

}  // namespace
}  // namespace shardc
