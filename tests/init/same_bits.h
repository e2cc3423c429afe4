// A rule's values by generated code and by the evaluator that goes through its program for one element.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <map>

#include "compiler/expr/element.h"
#include "runtime/init/initial_values.h"
#include "tests/init/random_rule.h"
#include "tests/support/vector_of.h"

namespace shardc {

inline constexpr int64_t Rows = 24;
inline constexpr int64_t Columns = 37;

/// A few parameters that copy each other.
inline auto Others() -> std::map<std::string, ElementSource, std::less<>> {
  std::map<std::string, ElementSource, std::less<>> others;
  others["vector"] = VectorOf("normal(1, 0.5)", 3, "vector", {Columns});
  others["constant"] = VectorOf("2", 3, "constant", {Columns});
  others["matrix"] = VectorOf("index(0) + uniform(0, 1)", 3, "matrix", {Rows, Columns});
  others["copied"] = VectorOf("copy('matrix', index(0), index(1)) * normal(0, 1)", 3, "copied", {Rows, Columns});
  others["bfloat16"] = VectorOf("normal(0, 1)", 3, "bfloat16", {Columns, Rows});
  others["bfloat16"].is_bfloat16 = true;
  return others;
}

/// Every element of a matrix, by InitialValues and by the evaluator.
inline auto ExpectSameBits(const std::string& text) -> void {
  const auto others = Others();
  const FindElementSource find = [&](std::string_view name) {
    const auto found = others.find(name);
    return found == others.end() ? nullptr : &found->second;
  };
  const ElementSource matrix = VectorOf(text, 7, "w", {Rows, Columns});
  auto program = MakeElementProgram(matrix, find);
  ASSERT_TRUE(program.ok()) << text << ": " << program.errors.front().message;
  ElementEvaluator evaluator(std::move(program.value));
  std::vector<float> values(Rows * Columns);
  const Status made = InitialValues(matrix, find).Fill({0, Rows * Columns}, values.data());
  bool has_fault = false;
  for (int64_t i = 0; i < Rows * Columns; ++i) {
    const auto value = evaluator.At(i);
    has_fault = has_fault || value.has_fault;
    if (made.ok() && !value.has_fault) {
      ASSERT_EQ(std::bit_cast<int32_t>(values[static_cast<size_t>(i)]),
                std::bit_cast<int32_t>(static_cast<float>(value.number)))
          << text << " at " << i;
    }
  }
  EXPECT_EQ(made.ok(), !has_fault) << text;
}

/// Some texts have a known fault, and some are numbers: these do not count. Kernels are dropped now and then: each
/// takes two mappings, of which a process may have 65,530.
inline auto ExpectSameBitsOfRandomRules(RandomRule& random, int count) -> void {
  std::shared_ptr<ElementJit> kernels;
  while (count > 0 && !testing::Test::HasFailure()) {
    if (kernels == nullptr || kernels->num_kernels() > 1000) {
      kernels.reset();
      kernels = SharedInitKernels();
    }
    const std::string text = random.Next(Columns);
    const auto rule = ReduceRule(ParseExpr(text, ExprKind::Rule).value, {});
    if (rule.ok() && !DistributionOf(rule.value)) {
      ExpectSameBits(text);
      --count;
    }
  }
}

}  // namespace shardc
