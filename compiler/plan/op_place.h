// What a message says of an op besides its number: its mnemonic, its layer, its section, and the line of the recipe.
#pragma once

#include <string>

#include "compiler/plan/plan.h"

namespace shardc {

/// Returns "from recipe line 12, model.ffn", "from --set model.ffn=8", "from the default of shard.units"; empty if
/// nothing in the recipe made the op.
auto OriginText(const Plan& plan, const Origin& origin) -> std::string;

/// Returns "matmul of layer 3 in section step; from recipe line 12, model.ffn"; empty if the plan has no such op.
auto OpPlaceText(const Plan& plan, SectionKind section, int64_t index) -> std::string;

}  // namespace shardc
