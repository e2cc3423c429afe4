#include "runtime/core/run_report.h"

#include <unistd.h>

#include <numeric>
#include <set>

#include "compiler/ops/communicators.h"
#include "compiler/ops/cpu/outside_arenas.h"
#include "runtime/core/compute_threads.h"
#include "runtime/memory/available_memory.h"

namespace shardc {

auto SourcesText(const TokenReader& tokens, int64_t steps) -> ErrorOr<std::string> {
  ASSIGN_OR_RETURN(const auto uses, tokens.CountRun());
  std::string text;
  for (const SourceUse& use : uses) {
    text += fmt::format("  source {}: {}{} samples in {} steps, {:.2f} epochs of {}\n", use.name,
                        use.is_exact ? "" : "about ", use.samples, steps,
                        static_cast<double>(use.samples) / static_cast<double>(use.epoch_samples), use.epoch_samples);
  }
  return text;
}

/// Returns "70.1 MiB (73509376 B)".
static auto ExactText(Bytes bytes) -> std::string {
  return fmt::format("{:>8} ({} B)", FormatMemory(bytes), bytes.value);
}

auto MemoryText(int64_t rank, const RankDevice& device, const std::optional<DeviceMemory>& before, Guard* guard)
    -> ErrorOr<std::string> {
  std::string text = fmt::format("memory of rank {}:\n", rank);
  if (guard != nullptr) {
    ASSIGN_OR_RETURN(const auto uses, guard->MeasurePages());
    for (const PageUse& use : uses) {
      if (use.with_buffers.value > 0) {
        text += fmt::format("  {:<18} {} in pages with buffers, {} in pages that were written\n", ToText(use.arena),
                            ExactText(use.with_buffers), ExactText(use.written));
      }
    }
    return text;
  }
  Bytes arenas;
  for (const ArenaUse& use : device.MeasureUse()) {
    arenas += use.planned;
    if (use.planned.value > 0) {
      text += fmt::format("  {:<18} planned {}, touched {}\n", ToText(use.arena), ExactText(use.planned),
                          ExactText(use.touched));
    }
  }
  if (const auto memory = device.MeasureMemory()) {
    text += fmt::format("  {:<18} taken   {} of {}, {} of them outside of the arenas", "device",
                        ExactText(memory->taken), ExactText(memory->total), ExactText(memory->taken - arenas));
    text += before ? fmt::format(", {} since step 2\n", ExactText(memory->taken - before->taken)) : "\n";
  }
  return text + fmt::format("  {:<18} peak    {} resident, {} by PSS now\n", "process",
                            ExactText(MeasurePeakResident()), ExactText(MeasureProportional(getpid()).all));
}

auto MeasureDevice(const Plan& plan, const RankDevice& device, const MachineRow* machine) -> std::optional<DeviceUse> {
  const auto memory = device.MeasureMemory();
  if (!memory) {
    return std::nullopt;
  }
  DeviceUse use{.arenas = {}, .driver = *memory, .planned_outside = {}};
  for (const ArenaUse& arena : device.MeasureUse()) {
    use.arenas += arena.planned;
  }
  if (machine != nullptr) {
    use.planned_outside =
        Bytes{static_cast<int64_t>(machine->outside_arenas.value)} + NcclCommunicatorsOf(plan).bytes();
  }
  return use;
}

auto DeviceUseText(const DeviceUse& use) -> std::string {
  return fmt::format(
      "memory of the GPU: {} of arenas, as planned; its driver counts {} as taken, of which {} lie outside "
      "of the arenas{}",
      FormatMemory(use.arenas), FormatMemory(use.driver.taken), FormatMemory(use.outside()),
      use.planned_outside ? fmt::format(" ({} reckoned with)", FormatMemory(*use.planned_outside)) : "");
}

auto GatherMemory(RankControl& control, const RankDevice& device) -> ErrorOr<std::vector<RankMemory>> {
  RankMemory mine{.pid = getpid()};
  if (!device.MeasureMemory()) {
    for (const ArenaUse& use : device.MeasureUse()) {
      (use.arena == Arena::Gathered ? mine.gathered : mine.arenas) += use.touched.value;
    }
  }
  const ProportionalMemory proportional = MeasureProportional(getpid());
  mine.proportional = proportional.all.value;
  mine.files = proportional.files.value;
  // Whoever comes out of this has been measured beside all others.
  ASSIGN_OR_RETURN(const auto all, control.GatherValues(AxisSet::All(), mine));
  const Interval local = control.mesh().RanksOfHost(control.mesh().HostOf(control.rank()));
  return std::vector<RankMemory>(all.begin() + local.begin, all.begin() + local.end);
}

auto PlannedMemoryOf(const Plan& plan) -> PlannedMemory {
  const ArenaSizes sizes = HostArenas(plan);
  const int64_t of_all = sizes[static_cast<size_t>(Arena::Gathered)];
  const int64_t of_rank = std::accumulate(sizes.begin(), sizes.end(), -of_all);
  const OutsideArenas outside = OutsideArenasOf(plan, NumComputeThreads(plan));
  return {.arenas = Bytes{of_rank * outside.num_ranks + of_all},
          .own = outside.all() - OutsideArenas::Files,
          .files = OutsideArenas::Files};
}

auto JobMemoryText(const Plan& plan, const std::vector<RankMemory>& ranks, int32_t launcher) -> std::string {
  ProportionalMemory sum = launcher > 0 ? MeasureProportional(launcher) : ProportionalMemory{};
  Bytes arenas{ranks.front().gathered};
  std::set<int64_t> processes;
  for (const RankMemory& rank : ranks) {
    arenas += Bytes{rank.arenas};
    if (processes.insert(rank.pid).second) {
      sum.all += Bytes{rank.proportional};
      sum.files += Bytes{rank.files};
    }
  }
  if (sum.all < arenas + sum.files) {
    return "";
  }
  const PlannedMemory planned = PlannedMemoryOf(plan);
  const auto row = [](std::string_view name, Bytes measured, Bytes expected) {
    constexpr double MiB = 1 << 20;
    return fmt::format("  {:<47} {:>9.1f} {:>9.1f}\n", name, static_cast<double>(measured.value) / MiB,
                       static_cast<double>(expected.value) / MiB);
  };
  const std::string title =
      fmt::format("memory of {}, {} rank{} and launcher, in MiB", plan.mesh.hosts == 1 ? "the job" : "host 0",
                  ranks.size(), ranks.size() == 1 ? "" : "s");
  return fmt::format("{:<49} {:>9} {:>9}\n", title + ":", "measured", "planned") +
         row("arenas", arenas, planned.arenas) +
         row("own memory outside of them", sum.all - arenas - sum.files, planned.own) +
         row("pages of files, which the kernel may drop", sum.files, planned.files);
}

}  // namespace shardc
