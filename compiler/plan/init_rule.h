// What the elements of a plan's parameter begin with.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/expr/element_program.h"
#include "compiler/expr/expr.h"
#include "compiler/mesh/box_interval.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Nothing where the init rule is a formula.
/// Requires: the rule reads.
auto InitDistribution(const Parameter& parameter) -> std::optional<Distribution>;

/// Returns the block of a tensor of the seed that the parameter begins as; nothing if it is generated, as one is that
/// begins as a transposed block. Requires: the rule reads.
auto LoadedBlockOf(const Parameter& parameter) -> std::optional<LoadedBlock>;
/// Returns the tensor of that block.
auto LoadedTensorOf(const Parameter& parameter) -> std::optional<std::string>;
/// Returns elements of a parameter as elements of the tensor, of this shape, that they are a block of.
/// Requires: the shape has the block.
auto InTensor(const LoadedBlock& block, const Dims& tensor, const Parameter& parameter, BoxInterval elements)
    -> BoxInterval;

/// Returns " (3 widened from bf16 to f32, 2 rounded from f32 to bf16)" of the parameters that are loaded; empty if all
/// are kept in the types of their tensors. Requires: the rules read.
auto ConversionsOf(const Plan& plan) -> std::string;

/// The parameters of a plan as rules see them, by name; each is read when it is asked for.
class InitSources {
 public:
  /// Requires: the plan outlives it; its rules read.
  explicit InitSources(const Plan& plan) : plan_(plan) {}

  /// Null if no parameter has that name.
  auto Find(std::string_view name) -> const ElementSource*;
  /// Of the tensors of the plan's seed; empty where it has none. Holds as long as this does.
  auto FindLoaded() -> FindLoadedShape;

 private:
  const Plan& plan_;
  std::map<std::string, ElementSource, std::less<>> sources_;
  std::map<std::string, std::vector<int64_t>, std::less<>> shapes_;
};

}  // namespace shardc
