// How a run begins: it becomes the owner of its checkpoints, finds the newest one and comes back from it, or makes its
// first state by rules or from a seed, and looks at the state before a step is taken.
#include <algorithm>
#include <numeric>

#include "compiler/base/stopwatch.h"
#include "compiler/plan/init_rule.h"
#include "runtime/checkpoint/find_newest.h"
#include "runtime/checkpoint/own_checkpoints.h"
#include "runtime/control/agree.h"
#include "runtime/core/check_state.h"
#include "runtime/core/compare_replicas.h"
#include "runtime/core/initial_state.h"
#include "runtime/core/runner.h"
#include "runtime/core/what_changed.h"
#include "runtime/init/initial_values.h"
#include "runtime/memory/available_memory.h"

namespace shardc {

auto RankRunner::OpenCheckpoint(const std::string& path, ReadPurpose purpose) -> Status {
  ASSIGN_OR_RETURN(reader_, CheckpointReader::Open({.path = path,
                                                    .plan = &plan_,
                                                    .data_fingerprint = tokens_->Fingerprint(),
                                                    .source_fingerprints = tokens_->SourceFingerprints(),
                                                    .data_digests = context_.data_digests,
                                                    .purpose = purpose,
                                                    .control = context_.control}));
  restored_from_ = path;
  services_.reader = reader_.get();
  programs_[static_cast<size_t>(SectionKind::Restore)].emplace(SectionKind::Restore, binder_, execution_);
  return Success{};
}

auto RankRunner::StartFirst() -> Status {
  const Seed& seed = plan_.seed;
  std::unique_ptr<CheckpointReader> reader;
  if (seed.is_set()) {
    auto opened = CheckpointReader::Open(
        {.path = seed.path, .plan = &plan_, .purpose = ReadPurpose::Seed, .control = context_.control});
    if (!opened) {
      return Fail(opened.error().code, "the run begins from another's parameters: {}", opened.error().message);
    }
    reader = *std::move(opened);
    writer_->set_seed({.run_id = seed.run_id, .step = seed.step, .digest = seed.manifest});
  }
  services_.seed = reader.get();
  const auto kernels = SharedInitKernels();
  Status fired = Fire(TriggerKind::First);
  if (fired) {
    // It does not run again, and its ops may keep kernels, which nothing may free on a device that is lost.
    programs_[static_cast<size_t>(SectionKind::Init)].reset();
  }
  if (fired && reader != nullptr) {
    fired = reader->CheckMapped();
  }
  services_.seed = nullptr;
  RETURN_IF_ERROR(fired);
  if (reader != nullptr) {
    ASSIGN_OR_RETURN(seed_manifest_, reader->Record());
  }
  RETURN_IF_ERROR(CheckFirstState(binder_));
  // The moments are zero.
  RETURN_IF_ERROR(CompareReplicas(binder_, std::array{StateRole::Parameter}));
  if (!leads()) {
    return Success{};
  }
  const std::string why = fmt::format("no checkpoint of it in {}, and none on record", checkpoint_dir_);
  if (!seed.is_set()) {
    Say(fmt::format("run {}: started from scratch, seed {} ({})\n", plan_.run.run_id, plan_.run.init_seed, why));
    return Success{};
  }
  start_ = {.kind = AttemptStart::Kind::Seed,
            .path = seed.path,
            .step = seed.step,
            .run_id = seed.run_id,
            .digest = seed.manifest};
  const auto loaded = std::count_if(plan_.parameters.begin(), plan_.parameters.end(),
                                    [](const Parameter& parameter) { return LoadedTensorOf(parameter).has_value(); });
  const std::vector<bool> reads = ReadsSeed(plan_);
  const auto read = std::count(reads.begin(), reads.end(), true);
  Say(fmt::format("run {}: started from seed {} ({}), {} parameters loaded{}{}, {} generated ({})\n", plan_.run.run_id,
                  seed.path, ToText(seed), loaded, ConversionsOf(plan_),
                  read == 0 ? "" : fmt::format(", {} read by rules", read), plan_.parameters.size() - loaded - read,
                  why));
  return Success{};
}

auto RankRunner::Resume(const CheckpointInfo& newest) -> Status {
  RETURN_IF_ERROR(OpenCheckpoint(newest.path, ReadPurpose::Resume));
  RETURN_IF_ERROR(Fire(TriggerKind::Restart));
  RETURN_IF_ERROR(CheckLoadedState(binder_, StateRoles, newest.path));
  RETURN_IF_ERROR(CompareReplicas(binder_, StateRoles));
  divergence_.ResumesFrom(newest.path, newest.before);
  start_ = {.kind = AttemptStart::Kind::Checkpoint, .path = newest.path, .step = CompletedSteps()};
  if (leads()) {
    Say(fmt::format("run {}: resumed from {} at step {}\n", plan_.run.run_id, newest.path, CompletedSteps()));
    if (!context_.data_digests.empty() && reader_->manifest().data.digests.empty()) {
      Say("the checkpoint holds no digest of all bytes of the token files: a sample of them was compared\n");
    }
    if (const std::string note = records_.CompareVersions(); !note.empty()) {
      Say(note + "\n");
    }
    if (const std::string changes = WhatChanged(reader_->manifest().recipe, plan_, CompletedSteps());
        !changes.empty()) {
      Say(changes + "\n");
    }
  }
  writer_->set_seed(reader_->manifest().seed);
  return Success{};
}

auto RankRunner::OwnCheckpointDirectory() -> Status {
  LeaseOptions options;
  options.note = [this](const std::string& text) { Say(fmt::format("run {}: {}\n", plan_.run.run_id, text)); };
  options.while_waiting = [this]() -> Status {
    return context_.control->StopIsRequested()
               ? Status(Fail(ExitCode::Preempted, "stopped while it waited for {}", checkpoint_dir_))
               : Status(Success{});
  };
  ASSIGN_OR_RETURN(auto owner,
                   OwnCheckpoints(checkpoint_dir_, plan_.run.run_id, *context_.control, std::move(options)));
  for (const std::string& warning : owner.warnings) {
    Say(fmt::format("warning: {}\n", warning));
  }
  lease_ = std::move(owner.lease);
  writer_->UseLease(lease_.get());
  // Better now than at the first save.
  return FollowRankZero(*context_.control, leads() ? writer_->CheckManifestSize() : Status(Success{}));
}

auto RankRunner::CompareWithSaves(const std::optional<CheckpointInfo>& newest) -> Status {
  Status compared = Success{};
  if (leads()) {
    for (const std::string& skipped : newest ? newest->skipped : std::vector<std::string>()) {
      Say(fmt::format("warning: {}\n", skipped));
    }
    const auto note = records_.CompareWithSaves(newest);
    if (!note) {
      compared = note.error();
    } else if (!note->empty()) {
      Say(*note + "\n");
    }
  }
  return FollowRankZero(*context_.control, compared);
}

auto RankRunner::Begin() -> ErrorOr<int64_t> {
  RETURN_IF_ERROR(OwnCheckpointDirectory());
  // The time does not include the wait for another launch.
  const Stopwatch watch;
  ASSIGN_OR_RETURN(auto newest, ChooseNewest(checkpoint_dir_, plan_.run.run_id, *context_.control));
  RETURN_IF_ERROR(CompareWithSaves(newest));
  RETURN_IF_ERROR(Fire(TriggerKind::Load));
  ASSIGN_OR_RETURN(const auto rotary_table, CompareRotaryTables(binder_));
  if (newest) {
    RETURN_IF_ERROR(Resume(*newest));
  } else {
    RETURN_IF_ERROR(StartFirst());
  }
  ASSIGN_OR_RETURN(const auto drawn, SumDrawn(*context_.control, plan_, drawn_));
  if (!newest) {
    ASSIGN_OR_RETURN(realised_, RealisedInit(plan_, drawn));
    realised_->rotary_table = rotary_table;
  }
  if (leads()) {
    const Seconds loading =
        std::accumulate(drawn_.begin(), drawn_.end(), Seconds{},
                        [](Seconds sum, const Drawn& of_parameter) { return sum + of_parameter.load_time; });
    Say(fmt::format("  {:.2f} s to allocate and bind, {:.2f} s to {}{}, {} elements drawn{}\n", bind_seconds_,
                    watch.Elapsed().value, newest ? "load" : "initialise",
                    loading == Seconds{} ? "" : fmt::format(", of which {:.2f} s to load kernels", loading.value),
                    drawn.elements,
                    drawn.read_elements == 0 ? "" : fmt::format(", {} read by rules", drawn.read_elements)));
  }
  // What texts of the plan, files and rules took.
  GiveBackFreedMemory();
  return CompletedSteps();
}

}  // namespace shardc
