// A rule's values by generated code and by the evaluator that goes through its program for one element.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compiler/expr/element.h"
#include "runtime/init/initial_values.h"
#include "tests/init/random_rule.h"
#include "tests/support/vector_of.h"

namespace shardc {

inline constexpr int64_t Rows = 24;
inline constexpr int64_t Columns = 37;

/// Numbers that do not repeat, in memory.
class TensorInMemory : public LoadedTensor {
 public:
  explicit TensorInMemory(std::vector<int64_t> shape) : shape_(std::move(shape)) {
    int64_t size = 1;
    for (const int64_t dim : shape_) {
      size *= dim;
    }
    std::mt19937 random(static_cast<unsigned>(size));
    for (int64_t i = 0; i < size; ++i) {
      values_.push_back(std::ldexp(static_cast<float>(static_cast<int32_t>(random())), -29 - static_cast<int>(i % 5)));
    }
  }

  auto shape() const -> const std::vector<int64_t>& { return shape_; }
  auto num_elements() const -> int64_t override { return static_cast<int64_t>(values_.size()); }
  auto Read(int64_t begin, int64_t count, float* out) const -> void override {
    CHECK(begin >= 0 && begin + count <= num_elements(), "{} elements from {} of {}", count, begin, num_elements());
    std::copy_n(values_.begin() + begin, count, out);
  }

 private:
  std::vector<int64_t> shape_;
  std::vector<float> values_;
};

/// Those that rules read as a checkpoint's.
inline auto LoadedTensors() -> const std::map<std::string, TensorInMemory, std::less<>>& {
  static const auto tensors = [] {
    std::map<std::string, TensorInMemory, std::less<>> made;
    made.try_emplace("loaded", std::vector<int64_t>{Rows, Columns});
    made.try_emplace("turned", std::vector<int64_t>{Columns, Rows});
    made.try_emplace("row", std::vector<int64_t>{Columns});
    return made;
  }();
  return tensors;
}

inline auto FindLoaded(std::string_view name) -> const std::vector<int64_t>* {
  const auto found = LoadedTensors().find(name);
  return found == LoadedTensors().end() ? nullptr : &found->second.shape();
}

inline auto OpenLoaded(std::string_view name) -> ErrorOr<const LoadedTensor*> {
  return &LoadedTensors().find(name)->second;
}

/// A few parameters that copy each other.
inline auto Others() -> std::map<std::string, ElementSource, std::less<>> {
  std::map<std::string, ElementSource, std::less<>> others;
  others["vector"] = VectorOf("normal(1, 0.5)", 3, "vector", {Columns});
  others["constant"] = VectorOf("2", 3, "constant", {Columns});
  others["matrix"] = VectorOf("index(0) + uniform(0, 1)", 3, "matrix", {Rows, Columns});
  others["copied"] = VectorOf("copy('matrix', index(0), index(1)) * normal(0, 1)", 3, "copied", {Rows, Columns});
  others["bfloat16"] = VectorOf("normal(0, 1)", 3, "bfloat16", {Columns, Rows});
  others["bfloat16"].is_bfloat16 = true;
  others["of_loaded"] = VectorOf("seed('loaded')", 3, "of_loaded", {Rows, Columns});
  others["of_loaded"].is_bfloat16 = true;
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
  auto program = MakeElementProgram(matrix, find, FindLoaded);
  ASSERT_TRUE(program.ok()) << text << ": " << program.errors.front().message;
  std::vector<const LoadedTensor*> loaded;
  for (const ElementLoad& load : program.value.loads) {
    loaded.push_back(&LoadedTensors().find(load.tensor)->second);
  }
  ElementEvaluator evaluator(std::move(program.value), loaded);
  std::vector<float> values(Rows * Columns);
  const Status made = InitialValues(matrix, find, FindLoaded, OpenLoaded).Fill({0, Rows * Columns}, values.data());
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
  // A part has the bits of the whole.
  std::vector<float> part(Rows * Columns);
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{1, 6}, {Columns + 3, 9 * Columns - 2}}) {
    if (made.ok() && InitialValues(matrix, find, FindLoaded, OpenLoaded).Fill({begin, end}, part.data()).ok()) {
      EXPECT_TRUE(std::equal(part.begin(), part.begin() + (end - begin), values.begin() + begin,
                             [](float a, float b) { return std::bit_cast<int32_t>(a) == std::bit_cast<int32_t>(b); }))
          << text << " from " << begin << " to " << end;
    }
  }
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
