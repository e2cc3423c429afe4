// Chooses by measurement how a library multiplies matrices: `shardc run --tune`. Rank 0 measures before any op is bound
// and any state is made, and the other ranks take its choice.
//
// All products and algorithms are measured in turn, and in several rounds: a card whose power is limited has another
// clock after some seconds, and another temperature after some more, which then all algorithms meet alike.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "runtime/device/product_bench.h"
#include "runtime/record/product_record.h"

namespace shardc {

struct TuneLimits {
  /// Rounds whose times count, after one that finds how often a product has to be repeated.
  int64_t rounds = 5;
  /// The time that one algorithm of one product computes in a round: some periods of a card's power control.
  Seconds batch{0.02};
  /// All rounds together take about this long at most.
  Seconds all{60};
  /// An algorithm that takes so many times as long as the best one in the first round is not measured further.
  double hopeless = 1.5;
};

/// Returns the median time of each product by each of its algorithms; 0 for algorithms that were given up, or that the
/// library refuses. Calls `may_continue` before each measurement. Errors: those of the bench, and of `may_continue`.
auto MeasureProducts(ProductBench& bench, const TuneLimits& limits, const std::function<Status()>& may_continue)
    -> ErrorOr<std::vector<std::vector<Seconds>>>;

/// Returns the number of the algorithm to take: the first one, unless another takes 2 % less time at least. A time of 0
/// is that of an algorithm that was given up.
auto FastestOf(const std::vector<Seconds>& times) -> size_t;

struct RankContext;
class RankBinder;

/// Returns the record of the products that the launch has to use: those of the file that it names, or `known` with the
/// products that rank 0 has measured now, of which it prints a line. Collective over all ranks, before memory holds
/// anything. Errors: the same on all ranks; Environment if the file is for another card or version of the library;
/// Preempted if the run was asked to stop.
auto TuneProducts(const RankContext& context, RankBinder& binder, const ProductRecord& known) -> ErrorOr<ProductRecord>;

}  // namespace shardc
