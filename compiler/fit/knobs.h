// What a recipe could say instead, to take less memory or to compute and send less.
#pragma once

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

/// Returns the changes that are worth a look on hosts that have so many ranks, without those that change nothing.
/// Requires: the plan knows its recipe.
auto KnobsOf(const Plan& plan, int64_t ranks_of_host) -> std::vector<Knob>;

}  // namespace shardc
