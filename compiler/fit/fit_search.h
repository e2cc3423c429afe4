// The cheapest and a fast combination of keys with which a recipe fits, and the least number of ranks on which it does.
// All are found by plans alone: what is answered was planned, and what is ruled out needs too much by a plan's own
// buffers.
#pragma once

#include <optional>

#include "compiler/fit/trials.h"

namespace shardc {

/// A combination with its plan.
struct Found {
  Combination combination{};
  KnobRow row;
};

/// Returns the combination of `offers` that fits, with the fewest FLOPs of a step on a rank; of these, with the fewest
/// bytes on the wire; of these, with the fewest keys changed. Nothing if none fits.
auto CheapestThatFits(const FitUse& fit, const AllOffers& offers, const TrialOptions& options) -> std::optional<Found>;

/// Returns the combination with the least time of a step to which this search comes. It begins at the recipe and at
/// `cheapest`, or else at the fastest layout of each policy. One subject after another takes the offer that fits
/// with which a step is fastest, until none is faster by LeastGain; then the offers that are tried last. Nothing if it
/// begins at no plan that fits and has a time.
auto FastestThatFits(const std::optional<Combination>& cheapest, const FitUse& fit, const AllOffers& offers,
                     const TrialOptions& options) -> std::optional<Found>;
/// The part of a step's time for which a key is worth changing.
constexpr double LeastGain = 0.002;

/// Returns the least number of ranks along dp on which the recipe fits, its microbatches cut as it takes. The ranks are
/// those of whole hosts, or a divisor of those of one. They come with the batch of a step as it is, or, if there is no
/// such number, with the batch of each rank as it is. Nothing if no number up to MostRanksTried fits.
auto LeastRanksThatFit(const FitUse& fit, const Plan& plan, const TrialOptions& options) -> std::optional<LeastRanks>;
/// Returns the least number of ranks, filling hosts as above, on which some combination of keys fits, and one that
/// does: with the batch of a step as it is, or else with that of each rank. The search looks at more ranks than the
/// recipe has, and at other hosts for these. Nothing if no number up to MostRanksTried fits.
auto LeastRanksWithKeys(const FitUse& fit, const Plan& plan, const TrialOptions& options) -> std::optional<LeastRanks>;

}  // namespace shardc
