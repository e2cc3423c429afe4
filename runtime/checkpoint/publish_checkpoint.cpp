// What rank 0 does in a save besides its own file: the temporary directory, the manifest, the final name, and the
// removal of older checkpoints.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <ranges>

#include "compiler/base/files.h"
#include "compiler/checkpoint/cover.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/keys/plan_keys.h"
#include "compiler/plan/header.h"
#include "runtime/checkpoint/checkpoint_save.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/checkpoint/leftovers.h"
#include "runtime/checkpoint/read_manifest.h"

namespace shardc {

/// Errors: no whole checkpoint bears the name.
static auto ManifestAt(const Descriptor& parent, const std::string& name) -> ErrorOr<Manifest> {
  const auto directory = OpenDirectoryAt(parent, name);
  return directory ? ReadManifest(*directory) : directory.error();
}

auto CheckpointWriter::OtherRun(const std::string& run_id) const -> Error {
  return Fail(ExitCode::Checkpoint,
              "{}/{} belongs to run {}, and this is run {}; set `checkpoint.dir` to another folder",
              options_.checkpoint_dir, save_->final_name, run_id, options_.plan->run.run_id);
}

auto CheckpointWriter::MakeTemporary() -> Status {
  const RunSettings& run = options_.plan->run;
  FAIL_IF(!IsPlainName(run.run_id), ExitCode::RecipeRejected,
          "run_id \"{}\" is no plain name (letters, digits, `.`, `_`, `-`)", run.run_id);
  RETURN_IF_ERROR(CheckOwner());
  RETURN_IF_ERROR(CheckManifestSize());
  RETURN_IF_ERROR(MakeDirectories(*options_.fs, options_.checkpoint_dir));
  ASSIGN_OR_RETURN(auto parent, OpenDirectory(*options_.fs, options_.checkpoint_dir));
  // Before anything is written. A checkpoint of this run is replaced when the new one is whole.
  const auto manifest = ManifestAt(parent, save_->final_name);
  if (manifest && manifest->run_id != run.run_id) {
    return OtherRun(manifest->run_id);
  }
  ASSIGN_OR_RETURN(const auto cleared, ClearTemporary(parent, save_->temporary_name));
  if (!cleared.empty()) {
    warnings_.push_back(cleared);
  }
  if (options_.fs->MakeDirectory(parent.get(), save_->temporary_name.c_str()) != 0) {
    const int code = errno;
    return Fail(ExitCode::Environment, "cannot make directory {}/{}: {}", options_.checkpoint_dir,
                save_->temporary_name, std::strerror(code));
  }
  // The fsync after the last rename is that of this name too.
  return Success{};
}

auto CheckpointWriter::MakeManifest(const std::vector<Written>& written) const -> Manifest {
  const Plan& plan = *options_.plan;
  Manifest manifest;
  manifest.run_id = plan.run.run_id;
  manifest.plan_hash = options_.plan_hash;
  manifest.model = plan.model;
  for (const RecipeEntry& entry : plan.recipe) {
    manifest.recipe[entry.key] = entry.value;
  }
  manifest.seed = options_.seed;
  manifest.optimizer = plan.run.optimizer;
  manifest.data = DescribeData(plan, options_.data_fingerprint, options_.source_fingerprints, options_.data_digests);
  DescribeState(plan, options_.left_to_base, manifest);
  for (int64_t rank = 0; rank < plan.mesh.num_ranks(); ++rank) {
    const Written& of_rank = written[static_cast<size_t>(rank)];
    manifest.files[RankFileName(rank)] = {.bytes = of_rank.bytes, .digest = ToText(of_rank.digest)};
  }
  return manifest;
}

auto CheckpointWriter::CheckBytes(int64_t manifest_bytes) const -> Status {
  if (manifest_bytes <= options_.max_manifest_bytes) {
    return Success{};
  }
  return Fail(
      ExitCode::DoesNotFit,
      "the manifest has {}, and at most {} are read: it has a line for each of {} ranks and {} parameters; use fewer "
      "ranks",
      FormatMemory(Bytes{manifest_bytes}), FormatMemory(Bytes{options_.max_manifest_bytes}),
      options_.plan->mesh.num_ranks(), options_.plan->parameters.size());
}

auto CheckpointWriter::CheckManifestSize() -> Status {
  if (manifest_fits_) {
    return Success{};
  }
  const Plan& plan = *options_.plan;
  Manifest manifest = MakeManifest(std::vector<Written>(static_cast<size_t>(plan.mesh.num_ranks())));
  for (const Scalar& scalar : plan.scalars) {
    if (scalar.kind == ScalarKind::State) {
      manifest.state[StoredName(scalar)] = 0;
    }
  }
  // The step, values of scalars and sizes of files are not known yet, so each counts as the longest.
  constexpr int64_t LongestNumber = 24;
  const int64_t losses = plan.FindScalar(ScalarRole::Spike).valid() ? plan.run.spike_window : 0;
  const auto numbers = static_cast<int64_t>(1 + manifest.state.size() + manifest.files.size()) + 2 * losses;
  RETURN_IF_ERROR(CheckBytes(static_cast<int64_t>(ToText(manifest).size()) + LongestNumber * numbers));
  manifest_fits_ = true;
  return Success{};
}

auto CheckpointWriter::PutBack(const std::string& aside) const -> void {
  if (aside.empty()) {
    return;
  }
  const auto there = StatusAt(save_->parent, save_->final_name);
  if (there.ok() && there->kind == EntryKind::Missing) {
    static_cast<void>(RenameAt(save_->parent, aside, save_->final_name));
  }
}

auto CheckpointWriter::FreeFinalName() -> ErrorOr<std::string> {
  const CheckpointSave& save = *save_;
  ASSIGN_OR_RETURN(const auto there, StatusAt(save.parent, save.final_name));
  if (there.kind == EntryKind::Missing) {
    return std::string();
  }
  const auto manifest = ManifestAt(save.parent, save.final_name);
  if (manifest && manifest->run_id != options_.plan->run.run_id) {
    return OtherRun(manifest->run_id);
  }
  ASSIGN_OR_RETURN(const auto aside, FreeNameAt(save.parent, save.final_name + (manifest ? ".replaced" : ".damaged")));
  RETURN_IF_ERROR(CheckOwner());
  RETURN_IF_ERROR(RenameAt(save.parent, save.final_name, aside));
  warnings_.push_back(fmt::format("{}/{} was there already{}; it was moved to {}", options_.checkpoint_dir,
                                  save.final_name, manifest ? "" : " and is no whole checkpoint", aside));
  return aside;
}

auto CheckpointWriter::Publish(const std::vector<Written>& written) -> Status {
  CheckpointSave& save = *save_;
  Manifest manifest = MakeManifest(written);
  manifest.step = save.step;
  manifest.state = save.state;
  manifest.recent_losses = save.recent_losses;
  RETURN_IF_ERROR(CheckCover(manifest));
  const std::string text = ToText(manifest);
  RETURN_IF_ERROR(CheckBytes(static_cast<int64_t>(text.size())));
  RETURN_IF_ERROR(PutFileAt(save.directory, ManifestName, text));
  ASSIGN_OR_RETURN(const auto aside, FreeFinalName());
  // Nothing but the rename may come after this look.
  Status published = CheckOwner();
  if (published) {
    published = RenameAt(save.parent, save.temporary_name, save.final_name);
  }
  if (!published) {
    PutBack(aside);
    return published.error();
  }
  if (const Status synced = save.parent.Fsync(); !synced) {
    return Fail(ExitCode::Environment, "{}: {} is there, but its durability is unknown", synced.error().message,
                save.final_name);
  }
  return Success{};
}

/// Judges if a recipe keeps the checkpoint of that step for good.
static auto IsKeptForGood(const PlanKeys& keys, int64_t step) -> bool {
  const int64_t between = keys.checkpoint.every.value_or(0) * keys.checkpoint.keep_every.value_or(0);
  const auto& steps = keys.checkpoint.keep_steps;
  return (between > 0 && step % between == 0) || (steps && std::ranges::find(*steps, step) != steps->end());
}

auto CheckpointWriter::Retire() -> void {
  const RunSettings& run = options_.plan->run;
  if (run.checkpoint_keep <= 0) {
    return;
  }
  if (const Status owned = CheckOwner(); !owned) {
    warnings_.push_back(fmt::format("older checkpoints not removed: {}", owned.error().message));
    return;
  }
  const auto names = ListDirectory(save_->parent);
  if (!names) {
    warnings_.push_back(names.error().message);
    return;
  }
  // The keys of the recipe that saved each checkpoint of the run, newest first.
  std::map<int64_t, std::map<std::string, std::string>, std::greater<>> recipes;
  for (const std::string& name : *names) {
    auto manifest = IsCheckpointName(name) ? ManifestAt(save_->parent, name) : Fail(ExitCode::Checkpoint, "");
    if (manifest && manifest->run_id == run.run_id && CheckpointName(manifest->step) == name) {
      recipes[manifest->step] = std::move(manifest->recipe);
    }
  }
  const PlanKeys keys = KeysOf(*options_.plan);
  for (const auto& [step, recipe] : recipes | std::views::drop(run.checkpoint_keep)) {
    // No later recipe takes back a promise of the one that saved it.
    if (IsKeptForGood(keys, step) || IsKeptForGood(ReadKeys(recipe).keys, step)) {
      continue;
    }
    // First the name goes, at once; then the files: never is half a checkpoint found under a good name.
    const std::string temporary =
        TemporaryName(step, run.run_id, lease_ == nullptr ? "" : lease_->token().substr(0, TagBytes - 1));
    Status removed = RenameAt(save_->parent, CheckpointName(step), temporary);
    if (removed) {
      removed = RemoveDirectoryAt(save_->parent, temporary);
    }
    if (!removed) {
      warnings_.push_back(fmt::format("old checkpoint of step {} not removed: {}", step, removed.error().message));
    }
  }
}

}  // namespace shardc
