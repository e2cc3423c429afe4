// Memory of a job that no arena holds: the program with its libraries, the plan itself, the heap, the stacks. One
// formula for explain and for the check at the start of a run; tests/footprint holds runs to it.
#pragma once

#include "compiler/base/units.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Source: the PSS of launcher and ranks at the end of a run, summed, less the pages of the arenas
/// (`build/tests/tests_footprint` prints both; figures and date in docs/explain.md). LibTorch's pages are most of it.
struct OutsideArenas {
  /// Once: pages of the program's files and its libraries'. How many the kernel maps round those that are read depends
  /// on how the files lie in its cache: 77 to 110 MiB were seen.
  static constexpr Bytes Files{int64_t{80} << 20};
  /// Once: what the libraries relocate, and their heap, which the ranks share with the launcher.
  static constexpr Bytes Libraries{int64_t{61} << 20};
  /// Each rank: what it changes of that heap, its stack, its slots in the control block.
  static constexpr Bytes Process{int64_t{2} << 20};
  /// Each thread of a rank beyond the first, of those that multiply matrices: stack, buffers and kernels of products.
  static constexpr Bytes ProductThread{int64_t{736} << 10};
  /// Once, where a rank has more than one thread that multiplies matrices: what the threads have in common.
  static constexpr Bytes ProductThreads{int64_t{3} << 20};
  /// Each further thread: stack, and what the allocator keeps for it.
  static constexpr Bytes PlainThread{int64_t{48} << 10};

  /// Ranks of one host.
  int64_t num_ranks = 1;
  /// Once, shared by the ranks: the lists of the plan.
  Bytes plan;
  /// Each rank: the ops as bound calls.
  Bytes calls;
  /// Each rank: all threads beyond the first.
  Bytes threads;

  /// Returns what a host takes once.
  auto host() const -> Bytes { return Files + Libraries + plan; }
  auto rank() const -> Bytes { return Process + calls + threads; }
  auto all() const -> Bytes { return host() + rank() * num_ranks; }
};

/// Returns what one host takes, whose ranks may compute with so many threads each.
auto OutsideArenasOf(const Plan& plan, int64_t threads) -> OutsideArenas;
/// Returns what one host takes; threads that the plan leaves to the machine count as one.
inline auto OutsideArenasOf(const Plan& plan) -> OutsideArenas {
  return OutsideArenasOf(plan, plan.run.threads > 0 ? plan.run.threads : 1);
}

}  // namespace shardc
