// FLOPs depend on the policy and the ranks along tp alone, and bytes on the wire on the cost subjects alone. So:
// 1. a cell is a number of ranks along tp with units; drop the cells that do not fit with all that lowers memory and
//    the policy that keeps the least
// 2. take the policies and numbers of tp with the fewest FLOPs; drop the cells that do not fit with all that lowers
//    memory; if none is left, go on to the next FLOPs
// 3. from the fewest bytes on the wire of each cell, go on to more in the order of bytes, until one fits
// 4. of the free subjects, change as few as it takes
// "Does not fit" is judged by LeastFiguresOf, which grow wherever an offer takes more memory; what a packing reserves
// may not. In between, all offers of the free subjects are planned.

#include "compiler/fit/fit_search.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>

#include "compiler/fit/trials.h"

namespace shardc {

namespace {

class Search {
 public:
  Search(const FitUse& fit, const AllOffers& offers, const TrialOptions& options)
      : fit_(fit), offers_(offers), as_is_(AsItIs(offers)), trials_(fit, offers, options) {}
  auto Run() -> std::optional<Found>;

 private:
  static auto At(Combination& combination, Subject subject) -> size_t& {
    return combination[static_cast<size_t>(subject)];
  }
  auto Of(Subject subject) const -> const SubjectOffers& { return offers_[static_cast<size_t>(subject)]; }
  auto LayoutOf(const Combination& combination) const -> const Offer& { return shardc::LayoutOf(offers_, combination); }
  /// Returns the offers of a subject that make a difference with this layout: all of them, or as it is.
  auto EachOf(Subject subject, const Combination& combination) const -> std::vector<size_t>;
  /// Returns the offers of which one takes least memory.
  auto LeastOf(Subject subject, const Combination& combination) const -> std::vector<size_t> {
    return Applies(subject, LayoutOf(combination)) ? Of(subject).least : std::vector{Of(subject).as_is};
  }

  auto Plan(const Combinations& combinations) -> void { trials_.Plan(combinations); }
  auto TrialOf(const Combination& combination) const -> const Trial& { return trials_.of(combination); }
  auto Fits(const Combination& combination) const -> bool { return trials_.Fits(combination); }
  /// Returns whether it may fit if it is packed better, or takes this share of its memory.
  auto MayFit(const Combination& combination, double share = 1) const -> bool;

  /// Returns `combination` with each offer of the subjects from `first` on in the place of its own: those of `least`,
  /// or all.
  auto WithEach(const Combination& combination, Subject first, bool least) const -> Combinations;
  /// Returns the first of those with the offers of `least`.
  auto AtLeast(const Combination& combination, Subject first) const -> Combination;
  /// Returns those with whose layout, policy and units some combination may fit.
  auto LayoutsThatMayFit(const Combinations& combinations) -> Combinations;
  /// Returns those with whose ranks along tp, policy and units some combination may fit. Requires: they have the last
  /// layout of their ranks.
  auto CellsThatMayFit(const Combinations& cells) -> Combinations;
  /// Returns true if a combination fits that differs in the free subjects alone.
  auto FitsAtBest(const Combination& combination) -> bool;
  /// Returns it with the offers that send the fewest bytes.
  auto Cheapest(Combination combination) const -> Combination;
  /// Returns the next combinations that send more than this one.
  auto Dearer(const Combination& combination) -> Combinations;
  /// Returns the cheapest of all that have the FLOPs of these cells.
  auto CheapestOf(const Combinations& cells) -> Combinations;
  auto FewestKeys(const Combinations& cheapest) -> Found;
  /// Returns all cells that the recipe's checks take, with the policy that keeps the least.
  auto Cells() -> Combinations;

  const FitUse& fit_;
  const AllOffers& offers_;
  Combination as_is_{};
  Trials trials_;
};

auto Search::MayFit(const Combination& combination, double share) const -> bool {
  const Trial& trial = TrialOf(combination);
  PlanFigures least = trial.least;
  least.reserved = Bytes{static_cast<int64_t>(static_cast<double>(least.reserved.value) * share)};
  return trial.refused.empty() && fit_.fits(least);
}

auto Search::EachOf(Subject subject, const Combination& combination) const -> std::vector<size_t> {
  if (!Applies(subject, LayoutOf(combination))) {
    return {Of(subject).as_is};
  }
  std::vector<size_t> each(Of(subject).offers.size());
  std::iota(each.begin(), each.end(), size_t{0});
  return each;
}

auto Search::WithEach(const Combination& combination, Subject first, bool least) const -> Combinations {
  Combinations all{combination};
  for (auto i = static_cast<size_t>(first); i < NumSubjects; ++i) {
    const auto subject = static_cast<Subject>(i);
    Combinations wider;
    for (const Combination& one : all) {
      for (const size_t offer : least ? LeastOf(subject, one) : EachOf(subject, one)) {
        wider.push_back(one);
        wider.back()[i] = offer;
      }
    }
    all = std::move(wider);
  }
  return all;
}

auto Search::AtLeast(const Combination& combination, Subject first) const -> Combination {
  Combination least = combination;
  for (auto i = static_cast<size_t>(first); i < NumSubjects; ++i) {
    least[i] = LeastOf(static_cast<Subject>(i), combination).front();
  }
  return least;
}

/// Least share of the first's memory that another takes, where several offers may be the one that takes least.
constexpr double ShareOfLayout = 0.6;
static auto ShareOf(Subject subject) -> double { return subject == Subject::Chunks ? 0.9 : 0.75; }

static auto ShareOf(const Combination& other, const Combination& first) -> double {
  double share = 1;
  for (size_t i = 0; i < NumSubjects; ++i) {
    share *= other[i] == first[i] ? 1 : ShareOf(static_cast<Subject>(i));
  }
  return share;
}

auto Search::LayoutsThatMayFit(const Combinations& combinations) -> Combinations {
  Combinations first;
  std::ranges::transform(combinations, std::back_inserter(first),
                         [&](const Combination& one) { return AtLeast(one, Subject::Reduce); });
  Plan(first);
  Combinations others;
  for (const Combination& one : first) {
    if (!MayFit(one)) {
      std::ranges::copy_if(
          WithEach(one, Subject::Reduce, true), std::back_inserter(others),
          [&](const Combination& other) { return !TrialOf(one).refused.empty() || MayFit(one, ShareOf(other, one)); });
    }
  }
  Plan(others);
  Combinations left;
  std::ranges::copy_if(combinations, std::back_inserter(left), [&](const Combination& one) {
    return std::ranges::any_of(WithEach(one, Subject::Reduce, true),
                               [&](const Combination& each) { return trials_.has(each) && MayFit(each); });
  });
  return left;
}

auto Search::CellsThatMayFit(const Combinations& cells) -> Combinations {
  Combinations left = LayoutsThatMayFit(cells);
  // One microbatch is larger, but its gradients are not added up.
  Combinations uncut;
  std::map<Combination, Combination> cell_of;
  for (const Combination& cell : cells) {
    Combination other = cell;
    while (At(other, Subject::Layout) > 0 && LayoutOf(other).accumulate > 1) {
      --At(other, Subject::Layout);
    }
    if (std::ranges::find(left, cell) == left.end() && other != cell && LayoutOf(other).tp == LayoutOf(cell).tp &&
        MayFit(AtLeast(cell, Subject::Reduce), ShareOfLayout)) {
      uncut.push_back(other);
      cell_of[other] = cell;
    }
  }
  for (const Combination& one : LayoutsThatMayFit(uncut)) {
    left.push_back(cell_of.at(one));
  }
  return left;
}

auto Search::FitsAtBest(const Combination& combination) -> bool {
  constexpr Subject FirstFree = Subject::Chunks;
  const Combination first = AtLeast(combination, FirstFree);
  Plan({first});
  if (Fits(first)) {
    return true;
  }
  Combinations least = WithEach(combination, FirstFree, true);
  std::erase_if(least, [&](const Combination& one) {
    return TrialOf(first).refused.empty() && !MayFit(first, ShareOf(one, first));
  });
  Plan(least);
  if (std::ranges::none_of(least, [&](const Combination& one) { return MayFit(one); })) {
    return false;
  }
  const Combinations all = WithEach(combination, FirstFree, false);
  Plan(all);
  return std::ranges::any_of(all, [&](const Combination& one) { return Fits(one); });
}

auto Search::Cheapest(Combination combination) const -> Combination {
  At(combination, Subject::Reduce) = EachOf(Subject::Reduce, combination).front();
  At(combination, Subject::Reshard) = EachOf(Subject::Reshard, combination).front();
  return combination;
}

auto Search::Dearer(const Combination& combination) -> Combinations {
  Combinations dearer;
  for (const Subject subject : {Subject::Reduce, Subject::Reshard}) {
    Combination next = combination;
    if (++At(next, subject) < Of(subject).offers.size() && Applies(subject, LayoutOf(next))) {
      dearer.push_back(next);
    }
  }
  Combination next = combination;
  while (++At(next, Subject::Layout) < Of(Subject::Layout).offers.size() &&
         LayoutOf(next).tp == LayoutOf(combination).tp) {
    if (!LayoutsThatMayFit({next}).empty()) {
      dearer.push_back(Cheapest(next));
      break;
    }
  }
  return dearer;
}

auto Search::CheapestOf(const Combinations& cells) -> Combinations {
  struct Node {
    int64_t wire;
    Combination combination;
    auto operator>(const Node& other) const -> bool {
      return std::tie(wire, combination) > std::tie(other.wire, other.combination);
    }
  };
  std::priority_queue<Node, std::vector<Node>, std::greater<>> waiting;
  std::set<Combination> seen;
  // A refused combination counts as cheap as the one that it was reached from, and is not taken.
  const auto add = [&](const Combinations& combinations, int64_t wire) {
    Combinations least;
    std::ranges::transform(combinations, std::back_inserter(least),
                           [&](const Combination& one) { return AtLeast(one, Subject::Chunks); });
    Plan(least);
    for (const Combination& one : least) {
      if (seen.insert(one).second) {
        const Trial& trial = TrialOf(one);
        waiting.push({.wire = trial.refused.empty() ? trial.figures.wire.value : wire, .combination = one});
      }
    }
  };
  Combinations begins;
  for (Combination begin : cells) {
    while (At(begin, Subject::Layout) > 0 &&
           Of(Subject::Layout).offers[At(begin, Subject::Layout) - 1].tp == LayoutOf(begin).tp) {
      --At(begin, Subject::Layout);
    }
    begins.push_back(Cheapest(begin));
  }
  add(begins, 0);
  Combinations cheapest;
  int64_t least_wire = 0;
  while (!waiting.empty() && (cheapest.empty() || waiting.top().wire <= least_wire)) {
    const Node node = waiting.top();
    waiting.pop();
    if (FitsAtBest(node.combination)) {
      cheapest.push_back(node.combination);
      least_wire = node.wire;
    }
    // Also those of one that fits: others may send as much with fewer keys.
    add(Dearer(node.combination), node.wire);
  }
  return cheapest;
}

auto Search::FewestKeys(const Combinations& cheapest) -> Found {
  std::map<size_t, Combinations> by_keys;
  for (const Combination& one : cheapest) {
    for (const Combination& each : WithEach(one, Subject::Chunks, false)) {
      by_keys[KnobOf(offers_, each).sets.size()].push_back(each);
    }
  }
  for (auto& [keys, combinations] : by_keys) {
    Plan(combinations);
    std::erase_if(combinations, [&](const Combination& one) { return !Fits(one); });
    if (!combinations.empty()) {
      // The mildest of the offers that take as many keys.
      const auto most = std::ranges::max_element(
          combinations, {}, [&](const Combination& one) { return std::pair(TrialOf(one).figures.reserved, one); });
      return {.combination = *most, .row = trials_.RowOf(*most)};
    }
  }
  CHECK(false, "one of them fits");
}

auto Search::Cells() -> Combinations {
  Combinations layouts;
  for (size_t layout = 0; layout < Of(Subject::Layout).offers.size(); ++layout) {
    const bool is_last = layout + 1 == Of(Subject::Layout).offers.size() ||
                         Of(Subject::Layout).offers[layout + 1].tp != Of(Subject::Layout).offers[layout].tp;
    if (is_last) {
      layouts.push_back(as_is_);
      At(layouts.back(), Subject::Layout) = layout;
    }
  }
  Plan(layouts);
  Combinations cells;
  for (Combination cell : layouts) {
    // A mesh that is refused is refused with any other keys.
    if (TrialOf(cell).refused.empty()) {
      for (const size_t units : EachOf(Subject::Units, cell)) {
        At(cell, Subject::Units) = units;
        At(cell, Subject::Policy) = 0;
        cells.push_back(cell);
      }
    }
  }
  return cells;
}

auto Search::Run() -> std::optional<Found> {
  Combinations cells = Cells();
  const Combinations that_may_fit = CellsThatMayFit(cells);
  // A policy that is refused rules nothing out.
  std::erase_if(cells, [&](const Combination& cell) {
    return TrialOf(AtLeast(cell, Subject::Reduce)).refused.empty() &&
           std::ranges::find(that_may_fit, cell) == that_may_fit.end();
  });
  std::map<int64_t, Combinations> by_flops;
  std::map<std::pair<size_t, int64_t>, int64_t> flops_of;
  for (size_t policy = 0; policy < Of(Subject::Policy).offers.size(); ++policy) {
    for (Combination cell : cells) {
      At(cell, Subject::Policy) = policy;
      const std::pair kind{policy, LayoutOf(cell).tp};
      if (!flops_of.contains(kind)) {
        const Combination planned = AtLeast(cell, Subject::Reduce);
        Plan({planned});
        if (!TrialOf(planned).refused.empty()) {
          continue;
        }
        flops_of[kind] = TrialOf(planned).figures.flops.all().value;
      }
      by_flops[flops_of.at(kind)].push_back(cell);
    }
  }
  for (const auto& [flops, all] : by_flops) {
    if (const Combinations cheapest = CheapestOf(CellsThatMayFit(all)); !cheapest.empty()) {
      return FewestKeys(cheapest);
    }
  }
  return std::nullopt;
}

}  // namespace

auto CheapestThatFits(const FitUse& fit, const AllOffers& offers, const TrialOptions& options) -> std::optional<Found> {
  return Search(fit, offers, options).Run();
}

}  // namespace shardc
