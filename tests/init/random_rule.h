// Random init rules for a matrix: every operation, function and draw, copies, and tensors that are loaded.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <random>
#include <string>

namespace shardc {

class RandomRule {
 public:
  /// Up to so many operations inside one another.
  RandomRule(unsigned seed, int depth) : random_(seed), depth_(depth) {}

  /// For a matrix of so many columns.
  auto Next(int64_t columns) -> std::string {
    columns_ = columns;
    return Number(depth_);
  }

 private:
  auto Pick(int n) -> int { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  auto Leaf() -> std::string {
    switch (Pick(11)) {
      case 0: return "index(0)";
      case 1: return "index(1)";
      case 2: return "normal(0, 1)";
      case 3: return fmt::format("uniform(-{}, {})", 1 + Pick(4), 1 + Pick(3));
      case 4: return "trunc_normal(0, 1, -2, 2)";
      case 5: return fmt::format("copy('matrix', index(0), {} - index(1))", columns_ - 1);
      case 6: return "seed('loaded')";
      case 7: return fmt::format("seed('loaded', index(0), {} - index(1))", columns_ - 1);
      case 8: return "copy('of_loaded', (index(0) + 5) % 24, index(1))";
      default: return fmt::format("{}", (Pick(41) - 20) / 8.0);
    }
  }

  auto Condition(int depth) -> std::string {
    static constexpr const char* Comparisons[] = {"<", "<=", ">", ">=", "==", "!="};
    if (depth > 0 && Pick(3) == 0) {
      switch (Pick(3)) {
        case 0: return fmt::format("({} and {})", Condition(depth - 1), Condition(depth - 1));
        case 1: return fmt::format("({} or {})", Condition(depth - 1), Condition(depth - 1));
        default: return fmt::format("(not {})", Condition(depth - 1));
      }
    }
    return fmt::format("({} {} {})", Number(depth - 1), Comparisons[Pick(6)], Number(depth - 1));
  }

  auto Number(int depth) -> std::string {
    if (depth <= 0) {
      return Leaf();
    }
    static constexpr const char* Signs[] = {"+", "-", "*", "/", "%", "^"};
    static constexpr const char* Functions[] = {"abs", "floor", "ceil", "sqrt", "exp",   "log",
                                                "sin", "cos",   "tanh", "erf",  "erfinv"};
    const int next = depth - 1;
    switch (Pick(12)) {
      case 0:
      case 1:
      case 2:
      case 3: return fmt::format("({} {} {})", Number(next), Signs[Pick(4)], Number(next));
      case 4: return fmt::format("({} {} {})", Number(next), Signs[4 + Pick(2)], Number(next));
      case 5:
      case 6: return fmt::format("{}({})", Functions[Pick(11)], Number(next));
      case 7: return fmt::format("{}({}, {})", Pick(2) == 0 ? "min" : "max", Number(next), Number(next));
      case 8: return fmt::format("(if {} then {} else {})", Condition(next), Number(next), Number(next));
      case 9: return fmt::format("(let x{0} = {1} in x{0} * x{0} - {2})", depth, Number(next), Number(next));
      case 10: return fmt::format("normal({}, abs({}))", Number(next), Number(next));
      default: return Leaf();
    }
  }

  std::mt19937 random_;
  int depth_;
  int64_t columns_ = 1;
};

}  // namespace shardc
