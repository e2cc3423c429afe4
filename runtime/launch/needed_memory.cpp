#include "runtime/launch/needed_memory.h"

#include <algorithm>
#include <array>

#include "runtime/device/device.h"

namespace shardc {

/// Returns the bytes of the largest workspace of an op: mostly slots of its threads.
static auto LargestWorkspace(const Plan& plan) -> int64_t {
  int64_t most = 0;
  for (const Buffer& buffer : plan.buffers) {
    most = std::max(most, buffer.category == Category::Workspace ? buffer.bytes.value : 0);
  }
  return most;
}

auto RemedyText(const Plan& plan, const OutsideArenas& outside) -> std::string {
  // In double: sums over ranks may not fit the integer.
  const auto ranks = static_cast<double>(outside.num_ranks);
  const auto of_ranks = [&](int64_t bytes) { return static_cast<double>(bytes) * ranks; };
  const ArenaSizes sizes = HostArenas(plan);
  const auto arena = [&](Arena which) { return sizes[static_cast<size_t>(which)]; };
  // One thread has a slot in any case.
  const int64_t slots = plan.run.threads > 1 ? LargestWorkspace(plan) / plan.run.threads * (plan.run.threads - 1) : 0;
  const int64_t transient =
      std::max<int64_t>(0, arena(Arena::Transient) + arena(Arena::SharedTransient) + arena(Arena::Host) - slots);
  struct Part {
    double bytes;
    const char* remedy;
  };
  const std::array parts{
      Part{of_ranks(transient) + static_cast<double>(arena(Arena::Gathered)),
           "a smaller batch.micro (with more batch.accumulate) and recompute.policy = \"full\" take less"},
      Part{of_ranks(arena(Arena::Persistent) + arena(Arena::SharedPersistent)),
           "parameters and optimizer state are most of it: fewer model.layers, or a smaller model.hidden, take less"},
      Part{of_ranks(slots + outside.threads.value),
           "threads and their memory are most of it: a smaller run.threads takes less"},
      Part{static_cast<double>(outside.plan.value) + of_ranks(outside.calls.value),
           "the plan itself, op by op, is most of it: fewer model.layers take less"},
      Part{of_ranks(OutsideArenas::Process.value), "the ranks' own memory is most of it: fewer ranks take less"},
      Part{static_cast<double>((OutsideArenas::Files + OutsideArenas::Libraries).value),
           "the program and its libraries are most of it, and no key of a recipe makes them less"},
  };
  const auto& largest =
      *std::max_element(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.bytes < b.bytes; });
  return fmt::format("{}, `shardc plan --explain` says how much", largest.remedy);
}

auto CheckPlanFits(const Plan& plan, const OutsideArenas& outside, const AvailableMemory& available, int64_t num_hosts)
    -> Status {
  return CheckFits(HostArenas(plan), {.num_hosts = num_hosts, .ranks_per_host = outside.num_ranks},
                   {.planned = outside.all(), .taken = MeasureAnonymous()}, available, RemedyText(plan, outside));
}

}  // namespace shardc
