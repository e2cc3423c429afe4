// What a search for the cheapest combination of keys that fits may choose from. The batch of a step, the number of
// ranks, the element types and the order of sums stay, so a combination trains the same model on the same tokens.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "compiler/fit/knobs.h"

namespace shardc {

/// Ranks of the mesh, and how they share the batch of a step.
struct MeshLayout {
  int64_t replicate = 1;
  int64_t dp = 1;
  int64_t tp = 1;
  int64_t hosts = 1;
  int64_t micro = 1;
  int64_t accumulate = 1;
  /// Sequences of a step; 0 if the recipe does not set their number.
  int64_t global = 0;

  auto SetsFrom(const MeshLayout& now) const -> std::vector<std::string>;
};
/// Returns the layout of a plan.
auto LayoutNow(const Plan& plan) -> MeshLayout;

struct Offer {
  /// As Knob has them; empty: as it is.
  std::vector<std::string> sets;
  /// Ranks and microbatches, of layouts alone; FLOPs depend on the ranks along tp.
  int64_t dp = 1;
  int64_t tp = 1;
  int64_t accumulate = 1;
  /// False if ranks exchange other bytes over other wires than those of the recipe do.
  bool keeps_mesh = true;
  /// Tried on the fastest combination without it alone: from each beginning it would cost a third of the search.
  bool is_last = false;
};

/// Offers of Reduce, of Reshard and of the layouts of one tp are in the order of the bytes on the wire, the fewest
/// first. Those of Policy begin with the one that keeps the least.
struct SubjectOffers {
  std::vector<Offer> offers;
  size_t as_is = 0;
  /// With the others as they may be, one of these takes no more memory than any of the rest.
  std::vector<size_t> least;
};
/// One row for each subject.
using AllOffers = std::array<SubjectOffers, NumSubjects>;

/// One offer of each subject.
using Combination = std::array<size_t, NumSubjects>;

inline auto LayoutOf(const AllOffers& offers, const Combination& combination) -> const Offer& {
  constexpr auto Index = static_cast<size_t>(Subject::Layout);
  return offers[Index].offers[combination[Index]];
}
/// Returns false for a subject that is not offered with this layout: keys of slices if dp is 1, sums over microbatches
/// if there is one.
auto Applies(Subject subject, const Offer& layout) -> bool;

/// Returns the offers for a recipe on the ranks and with the batch of `base`, on hosts of so many ranks: more ranks
/// along tp are offered only if `base` has them. Requires: the plan knows its recipe.
auto OffersOf(const Plan& plan, const MeshLayout& base, int64_t ranks_of_host) -> AllOffers;
inline auto OffersOf(const Plan& plan) -> AllOffers {
  return OffersOf(plan, LayoutNow(plan), plan.mesh.ranks_per_host());
}
/// Returns the offers for the search for the fastest: those of OffersOf, each with its index, and after them copies of
/// the model on the hosts, and groups of dp, which are tried last. Both take memory, and save bytes between hosts.
auto OffersOfFastest(const Plan& plan, int64_t ranks_of_host) -> AllOffers;
/// Returns the offers that keep the mesh.
auto OnMeshOfRecipe(AllOffers offers) -> AllOffers;
/// Returns the combination that sets nothing but the ranks and the batch of `base`.
auto AsItIs(const AllOffers& offers) -> Combination;
/// Returns all that a combination sets.
auto KnobOf(const AllOffers& offers, const Combination& combination) -> Knob;

}  // namespace shardc
