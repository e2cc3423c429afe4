// What is refused before evaluation: the whole list of errors, with their places, messages and suggestions.

#include <gtest/gtest.h>

#include "tests/expr/expr_case.h"

namespace shardc {
namespace {

/// The errors in order, a line each: "column:length name: message [closest]".
auto ListErrors(std::string_view text, ExprKind kind) -> std::string {
  std::string list;
  for (const ExprError& error : ParseExpr(text, kind).errors) {
    list += fmt::format("{}:{} {}: {}{}\n", error.column, error.length, error.name, error.message,
                        error.closest.empty() ? "" : fmt::format(" [{}]", error.closest));
  }
  return list;
}

struct ErrorCase {
  std::string_view text;
  std::string_view errors;
  ExprKind kind = ExprKind::Rule;
};

constexpr ErrorCase ErrorCases[] = {
    // Single tokens.
    {"1_000", "1:5 expr-syntax: `1_000` is not a number\n"},
    {"1_x", "1:3 expr-syntax: `1_x` is not a number\n"},
    {"2x", "1:2 expr-syntax: `2x` is not a number\n"},
    {"1..2", "1:4 expr-syntax: `1..2` is not a number\n"},
    {"0x10", "1:4 expr-syntax: `0x10` is not a number\n"},
    {"1e", "1:2 expr-syntax: `1e` is not a number\n"},
    {"1e+", "1:3 expr-syntax: `1e+` is not a number\n"},
    {"1e400", "1:5 expr-domain: `1e400` is beyond double precision, 4.9e-324 to 1.8e308\n"},
    {"1e-400", "1:6 expr-domain: `1e-400` is beyond double precision, 4.9e-324 to 1.8e308\n"},
    {"3 $ 4", "3:1 expr-syntax: `$` is not part of the language\n"},
    {"3 \xe2\x88\x92 4", "3:3 expr-syntax: `\\u2212` is not part of the language\n"},
    {"3 \xff 4", "3:1 expr-syntax: `\\xff` is not part of the language\n"},
    {std::string_view("3 \0 4", 5), "3:1 expr-syntax: `\\u0000` is not part of the language\n"},
    {"layer = 3",
     "7:1 expr-syntax: `=` is not an operator; write `==` for equality, and arguments without names [==]\n", Predicate},
    {"true && true", "6:2 expr-syntax: `&&` is not an operator; write `and` for both conditions [and]\n", Predicate},
    {"true || true", "6:2 expr-syntax: `||` is not an operator; write `or` for either condition [or]\n", Predicate},
    {"!true", "1:1 expr-syntax: `!` is not an operator; write `not` for the opposite [not]\n", Predicate},
    {"2 ** 3", "3:2 expr-syntax: `**` is not an operator; write `^` for a power [^]\n"},
    // What an operator of another language takes and gives is not judged.
    {"layer && 1", "7:2 expr-syntax: `&&` is not an operator; write `and` for both conditions [and]\n"},
    {"(layers = 3) * layr",
     "9:1 expr-syntax: `=` is not an operator; write `==` for equality, and arguments without names [==]\n"
     "16:4 expr-unknown-name: `layr` is not known in an init rule [layer]\n"},
    // Structure.
    {"", "1:1 expr-syntax: the text is empty; an init rule is expected here\n"},
    {" \n", "1:1 expr-syntax: the text is empty; a predicate is expected here\n", Predicate},
    {"1 +", "4:1 expr-syntax: expected a value, but the text ends\n"},
    {"1 + * 2", "5:1 expr-syntax: expected a value, found `*`\n"},
    {"+1", "1:1 expr-syntax: expected a value, found `+`\n"},
    {"1 2", "3:1 expr-syntax: expected an operator or the end, found `2`\n"},
    {"true andd false", "6:4 expr-syntax: expected an operator or the end, found `andd` [and]\n", Predicate},
    {"1)", "2:1 expr-syntax: expected an operator or the end, found `)`\n"},
    {"(1", "1:1 expr-syntax: `(` has no `)`\n"},
    {"((1) + 2", "1:1 expr-syntax: `(` has no `)`\n"},
    {"max(1, 2", "4:1 expr-syntax: `(` has no `)`\n"},
    {"()", "2:1 expr-syntax: expected a value, found `)`\n"},
    {"(1, 2)", "3:1 expr-syntax: expected an operator or `)`, found `,`\n"},
    {"max(1 2)", "7:1 expr-syntax: expected an operator, `,` or `)`, found `2`\n"},
    {"max(1,)", "7:1 expr-syntax: expected a value, found `)`\n"},
    {"1 < 2 < 3", "7:1 expr-syntax: comparisons do not chain; `a < b and b < c` compares three\n", Predicate},
    {"if true then 1", "15:1 expr-syntax: expected an operator or `else`, but the text ends\n"},
    {"if true 1 else 2", "9:1 expr-syntax: expected an operator or `then`, found `1`\n"},
    {"if true thn 1 else 2", "9:3 expr-syntax: expected an operator or `then`, found `thn` [then]\n"},
    {"if true else 2", "9:4 expr-syntax: expected an operator or `then`, found `else`\n"},
    {"1 + if true then 1 else 2", "5:2 expr-syntax: expected a value, found `if`; put it in parentheses\n"},
    {"true == not true", "9:3 expr-syntax: expected a value, found `not`; put it in parentheses\n", Predicate},
    {"then", "1:4 expr-syntax: expected a value, found `then`\n"},
    // Names for values.
    {"let", "4:1 expr-syntax: expected a name, but the text ends\n"},
    {"let 3 = 4 in 5", "5:1 expr-syntax: expected a name, found `3`\n"},
    {"let in = 4 in 5", "5:2 expr-syntax: expected a name, found `in`\n"},
    {"let a 4 in a", "7:1 expr-syntax: expected `=`, found `4`\n"},
    {"let a == 4 in a", "7:2 expr-syntax: expected `=`, found `==`\n"},
    {"let a = in 2", "9:2 expr-syntax: expected a value, found `in`\n"},
    {"let a = 1", "10:1 expr-syntax: expected an operator or `in`, but the text ends\n"},
    {"let a = 1, b = 2 in a",
     "10:1 expr-syntax: expected an operator or `in`, found `,`\n"
     "14:1 expr-syntax: `=` is not an operator; write `==` for equality, and arguments without names [==]\n"},
    {"let a = 1 inn a", "11:3 expr-syntax: expected an operator or `in`, found `inn` [in]\n"},
    {"let a = 1 + in a + layr",
     "13:2 expr-syntax: expected a value, found `in`\n"
     "20:4 expr-unknown-name: `layr` is not known in an init rule [layer]\n"},
    {"1 + let a = 1 in a", "5:3 expr-syntax: expected a value, found `let`; put it in parentheses\n"},
    {"1 in 2", "3:2 expr-syntax: expected an operator or the end, found `in`\n"},
    {"let layers = 2 in layers",
     "5:6 expr-name-taken: `layers` is a variable, known in a predicate, an init rule and a frequency\n"},
    {"let step = 2 in 1", "5:4 expr-name-taken: `step` is a variable, known in a schedule\n"},
    {"let pi = 3 in pi", "5:2 expr-name-taken: `pi` is a constant\n"},
    {"let a = 1 in let a = 2 in a", "18:1 expr-name-taken: `a` is the name of a `let` around this one\n"},
    {"let a = a in a",
     "9:1 expr-unknown-name: `a` is not known in an init rule; known here: layer, layers, hidden, fan_in, "
     "fan_out, numel, num_dims, heads, kv_heads, head_dim, ffn, vocab, seq, init_std, pi, true, false\n"},
    {"(let width = 1 in width) + widht + (let height = 1 in heigth)",
     "28:5 expr-unknown-name: `widht` is not known in an init rule; known here: layer, layers, hidden, fan_in, "
     "fan_out, numel, num_dims, heads, kv_heads, head_dim, ffn, vocab, seq, init_std, pi, true, false\n"
     "55:6 expr-unknown-name: `heigth` is not known in an init rule [height]\n"},
    {"let a = true in 1 + a", "21:1 expr-type: `+` takes numbers; `a` is a condition\n"},
    {"2 * (let a = true in a)", "5:19 expr-type: `*` takes numbers; `(let a = true in a)` is a condition\n"},
    {"let a(x) = 2 in a",
     "6:1 expr-syntax: expected `=`, found `(`\n"
     "10:1 expr-syntax: `=` is not an operator; write `==` for equality, and arguments without names [==]\n"},
    // Functions that are written in the language.
    {"zeros", "1:5 expr-argument-count: `zeros` is a function without arguments: `zeros()`\n"},
    {"zeros(1)", "1:5 expr-argument-count: `zeros` takes no arguments, here 1 is given\n"},
    {"clamp(1, 2)", "1:5 expr-argument-count: `clamp` takes 3 arguments (x, low, high), here 2 are given\n"},
    {"clamp(true, normal(0, 1), 1 < 2)",
     "7:4 expr-type: `clamp` takes numbers; `true` is a condition\n"
     "27:5 expr-type: `clamp` takes numbers; `1 < 2` is a condition\n"},
    {"clamp(layr, 0, 1) + 1", "7:4 expr-unknown-name: `layr` is not known in an init rule [layer]\n"},
    {"cosin(2, 3)", "1:5 expr-unknown-name: `cosin` is not known in a schedule [cosine]\n", Schedule},
    // Frequencies know the pair and the sizes of heads, and nothing is drawn or copied.
    {"index(0) == 0", "1:13 expr-type: a frequency is a number; `index(0) == 0` is a condition\n", Frequency},
    {"normal(0, 1)",
     "1:6 expr-unknown-name: `normal` is not known in a frequency, but in an init rule; known here: min, max, abs, "
     "floor, ceil, sqrt, pow, exp, log, "
     "sin, cos, tanh, erf, erfinv, index, clamp, trunc_factor, linear_rope, llama3_rope\n",
     Frequency},
    {"1 + copy('x')",
     "5:4 expr-unknown-name: `copy` is not known in a frequency, but in an init rule; known here: min, max, abs, "
     "floor, ceil, sqrt, pow, exp, log, "
     "sin, cos, tanh, erf, erfinv, index, clamp, trunc_factor, linear_rope, llama3_rope\n"
     "10:3 expr-syntax: expected a value, found `'x'`\n",
     Frequency},
    {"row_norm(1)",
     "1:8 expr-unknown-name: `row_norm` is not known in a frequency, but in an init rule; known here: min, max, abs, "
     "floor, ceil, sqrt, pow, exp, log, "
     "sin, cos, tanh, erf, erfinv, index, clamp, trunc_factor, linear_rope, llama3_rope\n",
     Frequency},
    {"layer + step",
     "1:5 expr-unknown-name: `layer` is not known in a frequency, but in a predicate and an init rule; known here: "
     "layers, hidden, heads, "
     "kv_heads, head_dim, seq, rope_theta, pi, true, false\n"
     "9:4 expr-unknown-name: `step` is not known in a frequency, but in a schedule; known here: layers, hidden, heads, "
     "kv_heads, head_dim, seq, rope_theta, pi, true, false\n",
     Frequency},
    {"llama3_rop(8, 1, 4, 8192)", "1:10 expr-unknown-name: `llama3_rop` is not known in a frequency [llama3_rope]\n",
     Frequency},
    {"linear_rope(2) == 1",
     "1:11 expr-unknown-name: `linear_rope` is not known in a predicate, but in a frequency; known here: min, max, "
     "abs, "
     "floor, ceil, sqrt, pow, exp, log, sin, cos, tanh, erf, erfinv, clamp, trunc_factor\n",
     Predicate},
    // Names.
    {"layr", "1:4 expr-unknown-name: `layr` is not known in an init rule [layer]\n"},
    {"Hidden", "1:6 expr-unknown-name: `Hidden` is not known in an init rule [hidden]\n"},
    {"width",
     "1:5 expr-unknown-name: `width` is not known in an init rule; known here: layer, layers, hidden, fan_in, "
     "fan_out, numel, num_dims, heads, kv_heads, head_dim, ffn, vocab, seq, init_std, pi, true, false\n"},
    {"layer",
     "1:5 expr-unknown-name: `layer` is not known in a schedule, but in a predicate and an init rule; known "
     "here: step, steps, pi, true, false\n",
     Schedule},
    {"step < 3",
     "1:4 expr-unknown-name: `step` is not known in a predicate, but in a schedule; known here: layer, layers, "
     "hidden, pi, true, false\n",
     Predicate},
    {"fan_in > 3",
     "1:6 expr-unknown-name: `fan_in` is not known in a predicate, but in an init rule; known here: layer, "
     "layers, hidden, pi, true, false\n",
     Predicate},
    {"sqr(2)", "1:3 expr-unknown-name: `sqr` is not known in an init rule [sqrt]\n"},
    {"normal(0, 1)",
     "1:6 expr-unknown-name: `normal` is not known in a schedule, but in an init rule; known here: min, max, abs, "
     "floor, "
     "ceil, sqrt, pow, exp, log, sin, cos, tanh, erf, erfinv, clamp, trunc_factor, warmup, linear, cosine, wsd, "
     "inverse_sqrt\n",
     Schedule},
    {"normal",
     "1:6 expr-unknown-name: `normal` is not known in a schedule, but in an init rule; known here: step, steps, "
     "pi, true, false\n",
     Schedule},
    {"pi(2)", "1:2 expr-type: `pi` is not a function; a product is written with `*`\n"},
    {"sqrt", "1:4 expr-argument-count: `sqrt` takes 1 argument (x), here none is given\n"},
    // Arguments.
    {"sqrt()", "1:4 expr-argument-count: `sqrt` takes 1 argument (x), here none is given\n"},
    {"sqrt(1, 2)", "1:4 expr-argument-count: `sqrt` takes 1 argument (x), here 2 are given\n"},
    {"normal(0.02)", "1:6 expr-argument-count: `normal` takes 2 arguments (mean, std), here 1 is given\n"},
    // Types.
    {"true", "1:4 expr-type: an init rule is a number or a distribution; `true` is a condition\n"},
    {"layers - 1", "1:10 expr-type: a predicate is a condition; `layers - 1` is a number\n", Predicate},
    {"step < 3", "1:8 expr-type: a schedule is a number; `step < 3` is a condition\n", Schedule},
    {"1 + true", "5:4 expr-type: `+` takes numbers; `true` is a condition\n"},
    {"(1 < 2) * 3", "1:7 expr-type: `*` takes numbers; `(1 < 2)` is a condition\n"},
    {"-true", "2:4 expr-type: `-` takes numbers; `true` is a condition\n"},
    {"2 ^ true", "5:4 expr-type: `^` takes numbers; `true` is a condition\n"},
    {"sqrt(1 < 2)", "6:5 expr-type: `sqrt` takes numbers; `1 < 2` is a condition\n"},
    {"normal(normal(0, 1), true)", "22:4 expr-type: `normal` takes numbers; `true` is a condition\n"},
    {"not 1", "5:1 expr-type: `not` takes conditions; `1` is a number\n", Predicate},
    {"1 and 2 > 1", "1:1 expr-type: `and` takes conditions; `1` is a number\n", Predicate},
    {"true or layer", "9:5 expr-type: `or` takes conditions; `layer` is a number\n", Predicate},
    {"true < false",
     "1:4 expr-type: `<` takes numbers; `true` is a condition\n"
     "8:5 expr-type: `<` takes numbers; `false` is a condition\n",
     Predicate},
    {"layer == true", "10:4 expr-type: `==` takes numbers; `true` is a condition\n", Predicate},
    {"true != layer", "9:5 expr-type: `!=` takes conditions; `layer` is a number\n", Predicate},
    {"if normal(0, 1) == true then 1 else 2", "20:4 expr-type: `==` takes numbers; `true` is a condition\n"},
    {"if normal(0, 1) then 1 else 2", "4:12 expr-type: `if` takes conditions; `normal(0, 1)` is a distribution\n"},
    // Copies.
    {"copy(lm_head)", "6:7 expr-syntax: expected the name of a parameter in quotes, found `lm_head`\n"},
    {"copy('a', 1, 2, 3)",
     "1:4 expr-argument-count: `copy` takes the name of a parameter and up to 2 indices, here 3 are given\n"},
    {"seed(lm_head)", "6:7 expr-syntax: expected the name of a tensor in quotes, found `lm_head`\n"},
    {"seed('a', 1, 2, 3)",
     "1:4 expr-argument-count: `seed` takes the name of a tensor and up to 2 indices, here 3 are given\n"},
    {"copy('a', true)", "11:4 expr-type: `copy` takes numbers; `true` is a condition\n"},
    {"copy('layers.{layr}.x')", "15:4 expr-unknown-name: `layr` is not known in an init rule [layer]\n"},
    {"copy('layers.{layer.x') + 1", "14:1 expr-syntax: `{` has no `}`\n"},
    {"copy('layers.{}.x')", "15:1 expr-syntax: the text is empty; an init rule is expected here\n"},
    {"copy('abc", "6:4 expr-syntax: `'abc` has no end\n"},
    {"1 + 'abc'", "5:5 expr-syntax: expected a value, found `'abc'`\n"},
    {"copy('a')",
     "1:4 expr-unknown-name: `copy` is not known in a schedule, but in an init rule; known here: min, max, abs, "
     "floor, "
     "ceil, sqrt, pow, exp, log, sin, cos, tanh, erf, erfinv, clamp, trunc_factor, warmup, linear, cosine, wsd, "
     "inverse_sqrt\n"
     "6:3 expr-syntax: expected a value, found `'a'`\n",
     Schedule},
    {"if layer then 1 else 2", "4:5 expr-type: `if` takes conditions; `layer` is a number\n"},
    {"if true then 1 else true",
     "21:4 expr-type: both branches of `if` have one type; the first is a number, `true` is a condition\n"},
    {"if true then normal(0, 1) else true",
     "32:4 expr-type: both branches of `if` have one type; the first is a distribution, `true` is a condition\n"},
    {"true + (layer + layer + layer + layer + layer + layer + layer > 1)",
     "1:4 expr-type: `+` takes numbers; `true` is a condition\n"
     "8:59 expr-type: `+` takes numbers; `(layer + layer + layer + layer + laye...` is a condition\n"},
    // Several at once, in text order, and nothing that follows from another.
    {"layr + 1_0 * true + sqr(fan_inn)",
     "1:4 expr-unknown-name: `layr` is not known in an init rule [layer]\n"
     "8:3 expr-syntax: `1_0` is not a number\n"
     "14:4 expr-type: `*` takes numbers; `true` is a condition\n"
     "21:3 expr-unknown-name: `sqr` is not known in an init rule [sqrt]\n"
     "25:7 expr-unknown-name: `fan_inn` is not known in an init rule [fan_in]\n"},
    {"max(*, foo_bar) + min(1 2, 3) + normal(1)",
     "5:1 expr-syntax: expected a value, found `*`\n"
     "8:7 expr-unknown-name: `foo_bar` is not known in an init rule; known here: layer, layers, hidden, fan_in, "
     "fan_out, numel, num_dims, heads, kv_heads, head_dim, ffn, vocab, seq, init_std, pi, true, false\n"
     "25:1 expr-syntax: expected an operator, `,` or `)`, found `2`\n"
     "33:6 expr-argument-count: `normal` takes 2 arguments (mean, std), here 1 is given\n"},
    {"layer ? 2 == 0", "7:1 expr-syntax: `?` is not an operator; write: if condition then a else b\n", Predicate},
    {"if layer ? 2 == 0 then 1 else 2",
     "10:1 expr-syntax: `?` is not an operator; write: if condition then a else b\n"},
    {"(layer ? 2) == 0 and layr > 1",
     "8:1 expr-syntax: `?` is not an operator; write: if condition then a else b\n"
     "22:4 expr-unknown-name: `layr` is not known in a predicate [layer]\n",
     Predicate},
};

TEST(ExprErrors, ListsEveryFaultWithItsPlace) {
  for (const ErrorCase& row : ErrorCases) {
    EXPECT_EQ(ListErrors(row.text, row.kind), row.errors) << row.text;
  }
}

}  // namespace
}  // namespace shardc
