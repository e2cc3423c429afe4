// Memory of a job that no arena holds: the program with its libraries, the heap, the stacks. One formula for explain
// and for the check at the start of a run; tests/footprint holds runs to it.
#pragma once

#include "compiler/base/units.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Source: the PSS of launcher and ranks at the end of a run, summed, less the pages of the arenas
/// (`build/tests/tests_footprint` prints both; figures and date in docs/explain.md). LibTorch's pages are most of it.
struct OutsideArenas {
  /// Once: pages of the program's files and its libraries'. How many the kernel maps round those that are read depends
  /// on how the files lie in its cache: 77 to 110 MiB were seen.
  Bytes files{int64_t{80} << 20};
  /// Once: what the libraries relocate, and their heap, which the ranks share with the launcher.
  Bytes host{int64_t{62} << 20};
  /// Each rank: what it changes of that heap, its stack, its slots in the control block.
  Bytes rank{int64_t{3} << 20};
  /// Each thread of a rank beyond the first: stack and buffers of the products.
  Bytes thread{int64_t{1} << 20};

  /// Of so many ranks on one host. `threads`: that each computes with.
  constexpr auto Of(int64_t num_ranks, int64_t threads) const -> Bytes {
    return files + host + (rank + thread * (threads - 1)) * num_ranks;
  }
};

/// With all ranks of the plan on one host. Threads that the plan leaves to the machine count as one.
inline auto OutsideArenasOf(const Plan& plan) -> Bytes {
  return OutsideArenas{}.Of(plan.mesh.num_ranks(), plan.run.threads > 0 ? plan.run.threads : 1);
}

}  // namespace shardc
