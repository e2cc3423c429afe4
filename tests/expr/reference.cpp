// docs/expressions.md: its tables are those of schemas/, and its examples are sound.

#include "compiler/expr/reference.h"

#include <gtest/gtest.h>

#include <regex>

#include "tests/expr/expr_case.h"
#include "tests/support/recorded.h"
#include "tests/support/repository.h"

namespace shardc {
namespace {

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
