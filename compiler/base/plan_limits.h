// What a plan may hold at most. The verifier and the parser refuse a plan that has more, so checks and passes refuse
// the recipe first, by the keys that make it so large.
#pragma once

#include <cstdint>

namespace shardc {

constexpr int64_t MostRanks = int64_t{1} << 20;
constexpr int64_t MostOps = int64_t{1} << 20;
constexpr int64_t MostRepeats = int64_t{1} << 40;
/// Steps, tokens of a step, and other counts of the run.
constexpr int64_t MostCount = int64_t{1} << 40;
constexpr int64_t MostLayers = int64_t{1} << 20;
/// Of a parameter, a value, a buffer, or an arena of a rank: 64 TiB.
constexpr int64_t MostBytes = int64_t{1} << 46;
/// Names of scalars are searched for one by one.
constexpr int64_t MostScalars = 1024;

}  // namespace shardc
