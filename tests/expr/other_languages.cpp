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
    {"1e-3 if step < 3 else 1e-4", ExprKind::Schedule, "write: if step < 3 then 1e-3 else 1e-4"},
    {"2 * (1e-3 if step < 3 else 1e-4)", ExprKind::Schedule, "write: if step < 3 then 1e-3 else 1e-4"},
    {"min(1e-3 if step < 3 else 1e-4, 1)", ExprKind::Schedule, "write: if step < 3 then 1e-3 else 1e-4"},
    {"1e-3 if step < 3", ExprKind::Schedule, "write: if condition then a else b"},
    {"step < 3 ? 1e-3 : 1e-4", ExprKind::Schedule, "write: if condition then a else b"},
    {"step ** 2", ExprKind::Schedule, "write `^` for a power"},
    {"step // 2", ExprKind::Schedule, "write floor(a / b) for a // b"},
    {"layer > 0 && layer < 3", ExprKind::Predicate, "write `and` for both conditions"},
    {"layer > 0 || layer < 3", ExprKind::Predicate, "write `or` for either condition"},
    {"!(layer > 0)", ExprKind::Predicate, "write `not` for the opposite"},
    {"math.cos(step)", ExprKind::Schedule, "write cos(x) for math.cos(x)"},
    {"1 + math.pi", ExprKind::Schedule, "`pi` stand alone"},
    {"np.sqrt(step)", ExprKind::Schedule, "write cos(x) for np.cos(x)"},
    {"normal(std=0.02)", ExprKind::Rule, "write: normal(0, 0.02)"},
    {"normal(mean=0, std=init_std / 2)", ExprKind::Rule, "write: normal(0, init_std / 2)"},
    {"trunc_normal(0, 0.02, b=3, a=-3)", ExprKind::Rule, "write: trunc_normal(0, 0.02, -3, 3)"},
    {"lambda step: 1e-3", ExprKind::Schedule, "write what stands after the `:`"},
    {"copy(f\"model.layers.{layer}.mlp.up_proj.weight\")", ExprKind::Rule, "a text needs no `f`"},
    {"return 1e-3", ExprKind::Schedule, "the expression itself is the value"},
    {"1_000 * step", ExprKind::Schedule, "`1_000` is not a number; write 1000"},
    {"1e-3;", ExprKind::Schedule, "leave it out: an expression ends with its text"},
    {"step; 1", ExprKind::Schedule, "a name for another is `let a = 1 in a + 1`"},
    {"10%", ExprKind::Schedule, "write 0.1 for 10%"},
    {"1.1%", ExprKind::Schedule, "write 0.011 for 1.1%"},
    {"max(2.5 %, 1)", ExprKind::Schedule, "write 0.025 for 2.5%"},
    {"[1, 2]", ExprKind::Schedule, "`[1, 2]` is a list, and the language has none"},
    {"step[0]", ExprKind::Schedule, "`[0]` is a list"},
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
