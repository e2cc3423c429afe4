// How a run begins: it becomes the owner of its checkpoints, finds the newest one and comes back from it, or makes its
// first state by rules or from a seed, and looks at the state before a step is taken.
#include <algorithm>
#include <numeric>

#include "compiler/base/stopwatch.h"
#include "compiler/checkpoint/stage.h"
#include "compiler/checkpoint/stage_changes.h"
#include "compiler/plan/init_rule.h"
#include "runtime/control/agree.h"
#include "runtime/core/check_state.h"
#include "runtime/core/compare_replicas.h"
#include "runtime/core/initial_state.h"
#include "runtime/core/runner.h"
#include "runtime/core/what_changed.h"
#include "runtime/init/initial_values.h"
#include "runtime/memory/available_memory.h"

namespace shardc {

auto RankRunner::StartFirst() -> Status {
  const Seed& seed = rank_.plan().seed;
  std::unique_ptr<CheckpointReader> reader;
  if (seed.is_set()) {
    auto opened = checkpoints_.OpenSeed();
    FAIL_IF(!opened, opened.error().code, "the run begins from another's {}: {}",
            seed.updates > 0 ? "parameters and moments" : "parameters", opened.error().message);
    reader = *std::move(opened);
    checkpoints_.writer().set_seed(RecordOf(rank_.plan()));
    begun_.start = {.kind = AttemptStart::Kind::Seed,
                    .path = seed.path,
                    .step = seed.step,
                    .run_id = seed.run_id,
                    .digest = seed.manifest,
                    .steps_before = seed.steps_before};
  }
  const auto kernels = SharedInitKernels();
  RETURN_IF_ERROR(MakeFirstState(reader.get()));
  if (reader != nullptr) {
    ASSIGN_OR_RETURN(begun_.seed, reader->Record());
    ASSIGN_OR_RETURN(auto left, reader->SumBase());
    checkpoints_.writer().set_left_to_base(std::move(left));
  }
  RETURN_IF_ERROR(CheckFirstState(rank_.binder()));
  // Moments are zero if none are loaded.
  RETURN_IF_ERROR(
      CompareReplicas(rank_.binder(), std::span(StateRoles).first(seed.updates > 0 ? StateRoles.size() : 1)));
  if (rank_.leads()) {
    TellFirst(reader.get());
  }
  return Success{};
}

auto RankRunner::MakeFirstState(CheckpointReader* seed) -> Status {
  rank_.services().seed = seed;
  Status fired = training_.Fire(TriggerKind::First);
  if (fired) {
    // It does not run again, and its ops may keep kernels, which nothing may free on a device that is lost.
    rank_.FreeSection(SectionKind::Init);
  }
  if (fired && seed != nullptr) {
    fired = seed->CheckMapped();
  }
  rank_.services().seed = nullptr;
  rank_.scalars()[rank_.plan().ScalarOf(ScalarRole::Updates)] = static_cast<double>(rank_.plan().seed.updates);
  return fired;
}

auto RankRunner::TellFirst(const CheckpointReader* reader) const -> void {
  const Seed& seed = rank_.plan().seed;
  const std::string why = fmt::format("no earlier checkpoint in {}", checkpoints_.directory());
  if (!seed.is_set()) {
    rank_.Say(fmt::format("run {}: started from scratch, seed {} ({})\n", rank_.plan().run.run_id,
                          rank_.plan().run.init_seed, why));
    return;
  }
  const auto loaded = std::count_if(rank_.plan().parameters.begin(), rank_.plan().parameters.end(),
                                    [](const Parameter& parameter) { return LoadedTensorOf(parameter).has_value(); });
  const std::vector<bool> reads = ReadsSeed(rank_.plan());
  const auto read = std::count(reads.begin(), reads.end(), true);
  const std::string kept = KeptText(rank_.plan());
  rank_.Say(fmt::format("run {}: {} {}{} ({}), {} parameters loaded{}{}, {} generated{} ({})\n",
                        rank_.plan().run.run_id, kept.empty() ? "started from seed" : "continues", seed.path,
                        seed.adapter.empty() ? "" : " with " + seed.adapter_path, ToText(seed), loaded,
                        ConversionsOf(rank_.plan()), read == 0 ? "" : fmt::format(", {} read by rules", read),
                        rank_.plan().parameters.size() - loaded - read, kept.empty() ? "" : "; " + kept, why));
  if (reader != nullptr && !kept.empty()) {
    for (const std::string& change : StageChanges(reader->manifest(), rank_.plan())) {
      rank_.Say(fmt::format("  {}\n", change));
    }
  }
}

auto RankRunner::Resume(const CheckpointInfo& newest) -> Status {
  RETURN_IF_ERROR(checkpoints_.Open(newest.path, ReadPurpose::Resume));
  RETURN_IF_ERROR(training_.Fire(TriggerKind::Restart));
  ASSIGN_OR_RETURN(auto left, checkpoints_.SumBase());
  checkpoints_.writer().set_left_to_base(std::move(left));
  checkpoints_.CloseFiles();
  RETURN_IF_ERROR(CheckLoadedState(rank_.binder(), StateRoles, newest.path));
  RETURN_IF_ERROR(CompareReplicas(rank_.binder(), StateRoles));
  training_.ResumesFrom(newest.path, newest.before);
  begun_.start = {.kind = AttemptStart::Kind::Checkpoint, .path = newest.path, .step = rank_.CompletedSteps()};
  if (rank_.leads()) {
    TellResumed(newest);
  }
  checkpoints_.writer().set_seed(checkpoints_.manifest().seed);
  return Success{};
}

auto RankRunner::TellResumed(const CheckpointInfo& newest) const -> void {
  const Manifest& manifest = checkpoints_.manifest();
  const RunSettings& run = rank_.plan().run;
  rank_.Say(rank_.CompletedSteps() < run.steps
                ? fmt::format("run {}: resumed from {} at step {}\n", run.run_id, newest.path, rank_.CompletedSteps())
                : fmt::format("run {}: finished at step {}, by {}\n", run.run_id, rank_.CompletedSteps(), newest.path));
  if (!rank_.context().data_digests.empty() && manifest.data.digests.empty()) {
    rank_.Say("the checkpoint holds no digest of all bytes of the token files: a sample of them was compared\n");
  }
  if (const std::string note = records_.CompareVersions(); !note.empty()) {
    rank_.Say(note + "\n");
  }
  if (const std::string changes = WhatChanged(manifest.recipe, rank_.plan(), rank_.CompletedSteps());
      !changes.empty()) {
    rank_.Say(changes + "\n");
  }
}

auto RankRunner::CompareWithSaves(const std::optional<CheckpointInfo>& newest) -> Status {
  Status compared = Success{};
  if (rank_.leads()) {
    for (const std::string& skipped : newest ? newest->skipped : std::vector<std::string>()) {
      rank_.Say(fmt::format("warning: {}\n", skipped));
    }
    const auto note = records_.CompareWithSaves(newest);
    if (!note) {
      compared = note.error();
    } else if (!note->empty()) {
      rank_.Say(*note + "\n");
    }
  }
  return FollowRankZero(rank_.control(), compared);
}

auto RankRunner::Begin() -> ErrorOr<int64_t> {
  RETURN_IF_ERROR(checkpoints_.Own());
  // The time does not include the wait for another launch.
  const Stopwatch watch;
  ASSIGN_OR_RETURN(const auto newest, checkpoints_.Choose());
  RETURN_IF_ERROR(CompareWithSaves(newest));
  RETURN_IF_ERROR(training_.Fire(TriggerKind::Load));
  ASSIGN_OR_RETURN(const auto rotary_table, CompareRotaryTables(rank_.binder()));
  if (newest) {
    RETURN_IF_ERROR(Resume(*newest));
  } else {
    RETURN_IF_ERROR(StartFirst());
  }
  ASSIGN_OR_RETURN(const auto drawn, SumDrawn(rank_.control(), rank_.plan(), rank_.drawn()));
  if (!newest) {
    ASSIGN_OR_RETURN(begun_.drawn, RealisedInit(rank_.plan(), drawn));
    begun_.drawn->rotary_table = rotary_table;
  }
  if (rank_.leads()) {
    const Seconds loading =
        std::accumulate(rank_.drawn().begin(), rank_.drawn().end(), Seconds{},
                        [](Seconds sum, const Drawn& of_parameter) { return sum + of_parameter.load_time; });
    rank_.Say(fmt::format("  {:.2f} s to allocate and bind, {:.2f} s to {}{}, {} elements drawn{}\n", bind_time_.value,
                          watch.Elapsed().value, newest ? "load" : "initialise",
                          loading == Seconds{} ? "" : fmt::format(", of which {:.2f} s to load kernels", loading.value),
                          drawn.elements,
                          drawn.read_elements == 0 ? "" : fmt::format(", {} read by rules", drawn.read_elements)));
  }
  // What texts of the plan, files and rules took.
  GiveBackFreedMemory();
  begun_.step = rank_.CompletedSteps();
  return begun_.step;
}

}  // namespace shardc
