// Which part of which tensor of a seed each parameter is loaded from, and which shapes these tensors have to have.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/checkpoint/manifest.h"
#include "compiler/checkpoint/published_rows.h"
#include "compiler/expr/expr.h"
#include "compiler/model/model_family.h"

namespace shardc {

struct LoadedParts {
  /// One for each parameter: the tensor of its name, unless a row says which elements of which tensor it is made of.
  std::vector<Expr> rules;
  /// Shapes of the tensors that the rules name: each element of one is in one part.
  std::map<std::string, Dims, std::less<>> shapes;
};

/// Returns the rows of HF_MADE of the model that a seed holds, which are empty if a run wrote the seed; and those of
/// the adapter of peft that is beside it, if the recipe makes fused modules of it.
auto MadeRowsOf(const Manifest& seed, const AdapterSizes& of_peft = {}) -> std::vector<published::MadeRow>;

/// Returns the parts that parameters are, of whole tensors or by the rows of a class. CHECKs that the rows use each
/// element of a tensor once.
auto PartsOf(const ParameterSpecs& specs, const ModelSizes& sizes, std::span<const published::MadeRow> made)
    -> LoadedParts;

/// Returns what rules know of the model alone.
auto ModelVariables(const ModelSizes& sizes) -> ExprVariables;

}  // namespace shardc
