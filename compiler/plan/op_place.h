// What a message says of an op besides its number: its mnemonic, its layer, its section, and the line of the recipe.
#pragma once

#include <string>

#include "compiler/plan/plan.h"

namespace shardc {

/// "from recipe line 12, model.ffn", "from --set model.ffn=8", "from the default of shard.units"; empty where nothing
/// in the recipe made it.
auto OriginText(const Plan& plan, const Origin& origin) -> std::string;

/// "matmul of layer 3 in section step; from recipe line 12, model.ffn"; empty where the plan has no such op.
auto OpPlaceText(const Plan& plan, SectionKind section, int64_t index) -> std::string;

}  // namespace shardc
