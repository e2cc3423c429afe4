// How much a base in bf16 takes, for those whose recipe or model asks for weights of 4 or 8 bits.
#pragma once

#include <string>
#include <vector>

namespace shardc {

/// Returns "a base in bf16 takes 1.87 GiB of each of 8 ranks, and what is trained beside it 80.0 MiB": what the plan of
/// the recipe keeps, computed in bf16 and from scratch, with adapters if nothing in it is frozen. Empty if the recipe
/// has other faults than words that ask for such weights. `overrides` are those of the command line.
auto Bf16BaseText(const std::string& path, const std::string& text, const std::vector<std::string>& overrides)
    -> std::string;

}  // namespace shardc
