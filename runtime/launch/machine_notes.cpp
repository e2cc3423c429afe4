#include "runtime/launch/machine_notes.h"

#include <algorithm>
#include <filesystem>

#include "compiler/base/processor.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/units.h"
#include "compiler/checkpoint/block_digests.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/cost/figures.h"
#include "compiler/plan/triggers.h"

namespace shardc {

static auto SharedCores(const Plan& plan, int64_t num_ranks) -> std::string {
  const int64_t cores = NumCores();
  return FactsOf(plan.device).family != DeviceFamily::Cpu || num_ranks <= cores
             ? ""
             : fmt::format("note: {} share {}, so that each waits for the others; set mesh to fewer ranks\n",
                           Counted(num_ranks, "rank"), Counted(cores, "core"));
}

/// Returns how many checkpoints the run has at its end.
static auto NumKept(const Plan& plan) -> int64_t {
  const RunSettings& run = plan.run;
  const int64_t num_saves = NumFires(plan, SectionKind::Save, 1);
  int64_t num_for_good = std::ssize(run.keep_steps);
  for (const Trigger& trigger : plan.triggers) {
    if (trigger.section == SectionKind::Save && trigger.kind == TriggerKind::EverySteps && run.keep_every > 0) {
      num_for_good += run.steps / trigger.every / run.keep_every;
    }
  }
  return run.checkpoint_keep == 0 ? num_saves : std::min(num_saves, run.checkpoint_keep + num_for_good);
}

static auto FullDisk(const Plan& plan, const std::string& run_dir) -> std::string {
  std::error_code unknown;
  std::filesystem::path folder = plan.run.checkpoint_dir.empty() ? run_dir + "/checkpoints" : plan.run.checkpoint_dir;
  const auto entries = std::filesystem::directory_iterator(folder, unknown);
  // Those of launches before this one make way for others.
  const auto num_there = std::count_if(begin(entries), end(entries), [](const auto& entry) {
    return IsCheckpointName(entry.path().filename().string());
  });
  while (!std::filesystem::exists(folder, unknown) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  const auto space = std::filesystem::space(folder, unknown);
  const int64_t num_kept = NumKept(plan);
  // And the digests of their blocks.
  const auto bytes =
      static_cast<double>(CheckpointBytesOf(plan).value) * (1 + static_cast<double>(sizeof(DigestBytes)) / BlockBytes);
  if (unknown || static_cast<double>(num_kept - num_there) * bytes <= static_cast<double>(space.available)) {
    return "";
  }
  return fmt::format("note: the run will keep {} of {}, and {} has {} free; set checkpoint.keep or checkpoint.dir\n",
                     Counted(num_kept, "checkpoint"), FormatMemory(CheckpointBytesOf(plan)), folder.string(),
                     FormatMemory(Bytes{static_cast<int64_t>(space.available)}));
}

auto MachineNotes(const Plan& plan, int64_t num_ranks, const std::string& run_dir) -> std::string {
  return SharedCores(plan, num_ranks) + FullDisk(plan, run_dir);
}

}  // namespace shardc
