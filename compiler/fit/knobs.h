// What a recipe could say instead, to take less memory or to compute and send less.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "compiler/cost/fit_keys.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// One change of a recipe: the values of its keys that `--set` changes. The batch of a step and the number of ranks
/// stay.
struct Knob {
  /// "recompute.policy=full".
  std::vector<std::string> sets;
  /// Why there is no such change, in short; empty where the recipe with it can be planned, or refused by its checks.
  std::string refused;
};

/// Returns what comes after a `--set` as a word of a shell: in quotes if it has a space.
auto ShellWord(const std::string& set) -> std::string;
/// Returns what comes after each `--set`: "mesh.dp=4 mesh.tp=2".
auto SetsText(const Knob& knob) -> std::string;

/// Returns the values of a row that the plan's recipe may set. Chunks divide the sequence.
auto ValuesOf(const FitKey& row, const Plan& plan) -> std::vector<std::string>;

/// Returns the numbers of copies of the model that the recipe may have instead: one on each host, two, and one in all.
/// Copies on one host only take memory.
auto CopiesOffered(const Plan& plan, int64_t ranks_of_host) -> std::set<int64_t>;
/// Returns the ranks of the groups that dp may be cut into instead: those of a host, two, and half of all. None if no
/// unit is gathered again.
auto GroupsOffered(const Plan& plan, int64_t ranks_of_host) -> std::set<int64_t>;

/// Returns the changes that are worth a look on hosts that have so many ranks, without those that change nothing.
/// Requires: the plan knows its recipe.
auto KnobsOf(const Plan& plan, int64_t ranks_of_host) -> std::vector<Knob>;

}  // namespace shardc
