// Which blocks a text of a recipe chooses: those for which a predicate holds, or an exact fraction of them.
#pragma once

#include <cstdint>

#include "compiler/expr/expr.h"

namespace shardc {

/// Returns for each block whether the predicate holds.
/// Errors: expr-domain, for the first block where the predicate has no value; the message names it.
auto LayersWhere(const Expr& predicate, int64_t layers, int64_t hidden) -> ExprResult<std::vector<bool>>;

/// Returns the blocks that a fraction or a predicate chooses. A fraction p, `1/3` or `0.3`, chooses block k (from 1) if
/// floor(k p + 1/2) > floor((k - 1) p + 1/2): floor(n p + 1/2) of n blocks, spread evenly. Whole numbers decide, as no
/// double is 7/10.
/// Errors: those of ParseExpr and LayersWhere; block-fraction.
/// Source: the rule of foundation-model-stack/fms-fsdp, fms_fsdp/policies/ac_handler.py, which computes with doubles.
auto ChooseLayers(std::string_view text, int64_t layers, int64_t hidden) -> ExprResult<std::vector<bool>>;

}  // namespace shardc
