// A stage: a run that continues the checkpoint of another one. What it takes from there beside the parameters, by the
// recipe's `reset`.
//
// Moments come with the number of updates that they have seen, from which the run's count and its bias corrections go
// on. With the schedule, expressions see the steps of the stages before. With the data, each source goes on after the
// last sample that was taken of it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// The part of a checkpoint that the stage after it takes. What it does not take is 0.
struct Stage {
  int64_t updates = 0;
  int64_t first_step = 0;
  /// The samples that were taken of each source, by its name; "" is that of one token stream.
  std::map<std::string, int64_t> samples;
  int64_t steps_before = 0;
};

/// Returns true for the parts that a stage takes.
using KeepsPart = std::function<bool(StagePart part)>;
/// Returns what the lines `recipe` of a plan say of it, or without them the plan's own numbers.
auto KeptBy(const Plan& plan) -> KeepsPart;

/// Errors: ExitCode::Checkpoint: the samples of a mixture cannot be counted. Cost: that of counting them, if the data
/// are kept.
auto StageOf(const Manifest& manifest, const KeepsPart& keeps) -> ErrorOr<Stage>;

/// Returns why a plan cannot take what it keeps, with what to type: "`data.seed` is 1 there, 2 here; ..."; empty if it
/// can. Files, which a plan does not know, are compared at the start.
auto StageFault(const Manifest& manifest, const Plan& plan, const KeepsPart& keeps) -> std::string;

/// Puts the stage into a plan whose parameters, sources and seed are there.
auto PutStage(const Manifest& manifest, const Stage& stage, Plan& plan) -> void;
/// Returns what of a plan is not as PutStage makes it; empty if all is.
auto StageDifference(const Manifest& manifest, const Stage& stage, const Plan& plan) -> std::string;

/// Returns "moments of 400 updates go on, 2 parameters begin with moments of 0; the schedule goes on at step 400; the
/// data begin again"; empty if the plan continues nothing.
auto KeptText(const Plan& plan) -> std::string;

/// Returns what a plan's run puts on record of the seed or the checkpoint that it begins from.
auto RecordOf(const Plan& plan) -> ManifestSeed;

}  // namespace shardc
