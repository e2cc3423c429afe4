// Random expressions, printed with as few and with as many parentheses as the grammar allows, have the value that a
// direct evaluation of the tree gives, bit for bit, or an error where it has none.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "compiler/expr/functions.h"
#include "tests/expr/expr_case.h"

namespace shardc {
namespace {

/// How tightly an operation binds, as in the grammar's lines; the looser the smaller.
enum Binding {
  IfBinding,
  OrBinding,
  AndBinding,
  NotBinding,
  CompareBinding,
  SumBinding,
  ProductBinding,
  UnaryBinding,
  PowerBinding,
  AtomBinding
};

struct Sample {
  /// The text before, between and after the operands.
  std::vector<std::string> pieces;
  std::vector<std::shared_ptr<const Sample>> operands;
  Binding binding = AtomBinding;
  /// The loosest binding that each operand may have without parentheses.
  std::vector<Binding> loosest;
  /// The value, of a condition 1 or 0; evaluates the operands that it needs.
  std::function<std::optional<double>()> value;
};
using SamplePointer = std::shared_ptr<const Sample>;

auto Print(const Sample& sample, bool all_parentheses) -> std::string {
  std::string text = sample.pieces[0];
  for (size_t i = 0; i < sample.operands.size(); ++i) {
    const Sample& operand = *sample.operands[i];
    const bool is_atom = operand.binding == AtomBinding;
    const bool has_parentheses = operand.binding < sample.loosest[i] || (all_parentheses && !is_atom);
    const std::string inner = Print(operand, all_parentheses);
    text += has_parentheses ? "(" + inner + ")" : inner;
    text += sample.pieces[i + 1];
  }
  return text;
}

class Generator {
 public:
  explicit Generator(unsigned seed) : random_(seed) {}

  auto Number(int depth) -> SamplePointer {
    switch (depth == 0 ? Pick(2) : Pick(11)) {
      case 0: return Literal();
      case 1: return VariableOf();
      case 2:
        return Strict({"", " + ", ""}, SumBinding, {SumBinding, ProductBinding}, depth,
                      [](double a, double b) { return a + b; });
      case 3:
        return Strict({"", "-", ""}, SumBinding, {SumBinding, ProductBinding}, depth,
                      [](double a, double b) { return a - b; });
      case 4:
        return Strict({"", "*", ""}, ProductBinding, {ProductBinding, UnaryBinding}, depth,
                      [](double a, double b) { return a * b; });
      case 5:
        return Strict({"", " / ", ""}, ProductBinding, {ProductBinding, UnaryBinding}, depth,
                      [](double a, double b) { return b == 0 ? NAN : a / b; });
      case 6:
        return Strict({"", "^", ""}, PowerBinding, {AtomBinding, UnaryBinding}, depth, [](double a, double b) {
          return EvaluateFunction(ExprFunction::Pow, std::array{a, b}).value_or(NAN);
        });
      case 7: return Negate(depth);
      case 8:
        return Strict({"", " % ", ""}, ProductBinding, {ProductBinding, UnaryBinding}, depth, [](double a, double b) {
          const double rest = std::abs(a / b) < 0x1p53 ? std::fmod(a, b) : NAN;
          return rest != 0 && std::signbit(rest) != std::signbit(b) ? rest + b : rest + 0.0;
        });
      case 9: return Let(depth);
      default: return If(depth, [&](int inner) { return Number(inner); });
    }
  }

  auto Condition(int depth) -> SamplePointer {
    switch (depth == 0 ? 0 : Pick(6)) {
      case 0: return Truth();
      case 1:
        return Strict({"", " < ", ""}, CompareBinding, {SumBinding, SumBinding}, depth,
                      [](double a, double b) { return a < b ? 1.0 : 0.0; });
      case 2:
        return Strict({"", ">=", ""}, CompareBinding, {SumBinding, SumBinding}, depth,
                      [](double a, double b) { return a >= b ? 1.0 : 0.0; });
      case 3: return Not(depth);
      case 4: return Lazy(depth, " and ", AndBinding, NotBinding, 0);
      default:
        return If(depth, [&](int inner) {
          return Pick(2) == 0 ? Lazy(inner, " or ", OrBinding, AndBinding, 1) : Condition(inner);
        });
    }
  }

 private:
  auto Pick(unsigned count) -> unsigned { return static_cast<unsigned>(random_() % count); }

  auto Literal() -> SamplePointer {
    static constexpr double Values[] = {0, 1, 2, 3, 0.5, 1e-3, 1e300, 7.25};
    const double value = Values[Pick(std::size(Values))];
    return std::make_shared<Sample>(Sample{{fmt::format("{}", value)}, {}, AtomBinding, {}, [value] { return value; }});
  }

  auto VariableOf() -> SamplePointer {
    static const ExprVariables variables = TestVariables();
    static constexpr std::string_view Names[] = {"layer", "layers", "hidden", "fan_in", "fan_out"};
    if (!locals_.empty() && Pick(2) == 0) {
      const auto& [local, sample] = locals_[Pick(static_cast<unsigned>(locals_.size()))];
      return std::make_shared<Sample>(Sample{{local}, {}, AtomBinding, {}, sample->value});
    }
    const std::string name(Names[Pick(std::size(Names))]);
    return std::make_shared<Sample>(Sample{{name}, {}, AtomBinding, {}, [name] { return variables.at(name); }});
  }

  auto Truth() -> SamplePointer {
    const bool value = Pick(2) == 0;
    return std::make_shared<Sample>(
        Sample{{value ? "true" : "false"}, {}, AtomBinding, {}, [value] { return value ? 1.0 : 0.0; }});
  }

  auto Strict(std::vector<std::string> pieces, Binding binding, std::vector<Binding> loosest, int depth,
              double (*operation)(double, double)) -> SamplePointer {
    const SamplePointer a = Number(depth - 1);
    const SamplePointer b = Number(depth - 1);
    return std::make_shared<Sample>(
        Sample{std::move(pieces), {a, b}, binding, std::move(loosest), [a, b, operation]() -> std::optional<double> {
                 const auto left = a->value();
                 const auto right = b->value();
                 if (!left || !right) {
                   return std::nullopt;
                 }
                 const double result = operation(*left, *right);
                 return std::isfinite(result) ? std::optional(result) : std::nullopt;
               }});
  }

  auto Negate(int depth) -> SamplePointer {
    const SamplePointer a = Number(depth - 1);
    return std::make_shared<Sample>(
        Sample{{"-", ""}, {a}, UnaryBinding, {UnaryBinding}, [a]() -> std::optional<double> {
                 const auto value = a->value();
                 return value ? std::optional(-*value) : std::nullopt;
               }});
  }

  auto Not(int depth) -> SamplePointer {
    const SamplePointer a = Condition(depth - 1);
    return std::make_shared<Sample>(Sample{{"not ", ""}, {a}, NotBinding, {NotBinding}, [a]() -> std::optional<double> {
                                             const auto value = a->value();
                                             return value ? std::optional(*value == 0 ? 1.0 : 0.0) : std::nullopt;
                                           }});
  }

  /// `and`, which 0 decides, or `or`, which 1 decides.
  auto Lazy(int depth, std::string sign, Binding binding, Binding right_binding, double deciding) -> SamplePointer {
    const SamplePointer a = Condition(std::max(0, depth - 1));
    const SamplePointer b = Condition(std::max(0, depth - 1));
    return std::make_shared<Sample>(Sample{{"", std::move(sign), ""},
                                           {a, b},
                                           binding,
                                           {binding, right_binding},
                                           [a, b, deciding]() -> std::optional<double> {
                                             const auto left = a->value();
                                             return !left || *left == deciding ? left : b->value();
                                           }});
  }

  template <class Branch>
  auto If(int depth, const Branch& branch) -> SamplePointer {
    const SamplePointer condition = Condition(depth - 1);
    const SamplePointer a = branch(depth - 1);
    const SamplePointer b = branch(depth - 1);
    return std::make_shared<Sample>(Sample{{"if ", " then ", " else ", ""},
                                           {condition, a, b},
                                           IfBinding,
                                           {IfBinding, IfBinding, IfBinding},
                                           [condition, a, b]() -> std::optional<double> {
                                             const auto chosen = condition->value();
                                             return !chosen ? chosen : *chosen != 0 ? a->value() : b->value();
                                           }});
  }

  /// Its name is known in its body only.
  auto Let(int depth) -> SamplePointer {
    const std::string name = fmt::format("v{}", locals_.size());
    const SamplePointer a = Number(depth - 1);
    locals_.emplace_back(name, a);
    const SamplePointer body = Number(depth - 1);
    locals_.pop_back();
    return std::make_shared<Sample>(
        Sample{{"let " + name + " = ", " in ", ""}, {a, body}, IfBinding, {IfBinding, IfBinding}, [body] {
                 return body->value();
               }});
  }

  std::mt19937 random_;
  std::vector<std::pair<std::string, SamplePointer>> locals_;
};

auto ValueOf(const std::string& text) -> std::optional<double> {
  const auto parsed = ParseExpr(text, ExprKind::Rule);
  EXPECT_TRUE(parsed.ok()) << text << ": " << (parsed.ok() ? "" : parsed.errors[0].message);
  if (!parsed.ok()) {
    return std::nullopt;
  }
  const auto result = EvaluateNumber(parsed.value, TestVariables());
  return result.ok() ? std::optional(result.value) : std::nullopt;
}

auto Bits(std::optional<double> value) -> std::optional<uint64_t> {
  return value ? std::optional(std::bit_cast<uint64_t>(*value)) : std::nullopt;
}

TEST(ExprProperty, RandomTreesHaveTheirDirectValue) {
  int num_values = 0;
  constexpr int NumTrees = 20'000;
  for (unsigned seed = 0; seed < NumTrees; ++seed) {
    Generator generator(seed);
    // Conditions are checked as those of a rule, which knows the most variables.
    const bool is_condition = seed % 2 == 1;
    const int depth = 1 + static_cast<int>(seed / 2 % 6);
    const SamplePointer sample = is_condition ? generator.Condition(depth) : generator.Number(depth);
    const auto expected = sample->value();
    num_values += expected ? 1 : 0;
    for (const bool all_parentheses : {false, true}) {
      const std::string printed = Print(*sample, all_parentheses);
      const std::string text = is_condition ? fmt::format("if {} then 1 else 0", printed) : printed;
      ASSERT_EQ(Bits(ValueOf(text)), Bits(expected)) << "seed " << seed << ": " << text;
    }
  }
  // Enough of them must have a value for the comparison to mean something.
  EXPECT_GT(num_values, NumTrees / 2);
}

}  // namespace
}  // namespace shardc
