// What people write who know Python or C: each is answered with its translation, in one error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/expr/expr.h"

namespace shardc {
namespace {

struct Case {
  std::string_view text;
  ExprKind kind;
  /// Of the only error: its message, or the name that it suggests.
  std::string_view answer;
};

constexpr Case Cases[] = {
    {"1e-3 if step < 3 else 1e-4", ExprKind::Schedule, "write: if condition then a else b"},
    {"2 * (1e-3 if step < 3 else 1e-4)", ExprKind::Schedule, "write: if condition then a else b"},
    {"min(1e-3 if step < 3 else 1e-4, 1)", ExprKind::Schedule, "write: if condition then a else b"},
    {"1e-3 if step < 3", ExprKind::Schedule, "write: if condition then a else b"},
    {"step < 3 ? 1e-3 : 1e-4", ExprKind::Schedule, "write: if condition then a else b"},
    {"step ** 2", ExprKind::Schedule, "write `^` for a power"},
    {"step // 2", ExprKind::Schedule, "write floor(a / b) for a // b"},
    {"layer > 0 && layer < 3", ExprKind::Predicate, "write `and` for both conditions"},
    {"layer > 0 || layer < 3", ExprKind::Predicate, "write `or` for either condition"},
    {"!(layer > 0)", ExprKind::Predicate, "write `not` for the opposite"},
    {"sum(1, 2)", ExprKind::Schedule, "write a + b"},
    {"if step is 3 then 1 else 2", ExprKind::Schedule, "write `==` for equality"},
    {"if step is not 3 then 1 else 2", ExprKind::Schedule, "write `!=`"},
    {"step && 1", ExprKind::Schedule, "write `and` for both conditions"},
    {"True", ExprKind::Predicate, "true"},
    {"False", ExprKind::Predicate, "false"},
    {"None", ExprKind::Schedule, "leave the key out, or write a number"},
    {"step / total_steps", ExprKind::Schedule, "steps"},
    {"layer_idx < 3", ExprKind::Predicate, "layer"},
    {"0 < layer < 3", ExprKind::Predicate, "`a < b and b < c` compares three"},
};

TEST(OtherLanguages, AreTranslatedInOneError) {
  for (const Case& c : Cases) {
    const auto errors = ParseExpr(c.text, c.kind).errors;
    ASSERT_EQ(errors.size(), 1U) << c.text << "\n" << (errors.empty() ? "" : errors[0].message);
    EXPECT_TRUE(errors[0].closest == c.answer || errors[0].message.find(c.answer) != std::string::npos)
        << c.text << ": " << errors[0].message << " [" << errors[0].closest << "]";
  }
}

}  // namespace
}  // namespace shardc
