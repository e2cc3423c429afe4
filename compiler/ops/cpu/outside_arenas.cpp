#include "compiler/ops/cpu/outside_arenas.h"

#include "compiler/ops/cpu/usable_threads.h"

namespace shardc {

// What an entry of each list takes, with its names and with what the allocator adds. Measured together, on plans of 4
// to 400 blocks (docs/explain.md).
static constexpr int64_t OpBytes = 360;
static constexpr int64_t ValueBytes = 360;
static constexpr int64_t BufferBytes = 160;
/// Of each op, bound by a rank.
static constexpr int64_t CallBytes = 210;

auto OutsideArenasOf(const Plan& plan, int64_t threads) -> OutsideArenas {
  const int64_t num_ops = plan.num_ops();
  const UsableThreads usable = UsableThreadsOf(plan, threads);
  return {.num_ranks = plan.mesh.ranks_per_host(),
          .plan = Bytes{num_ops * OpBytes + int64_t{plan.values.size()} * ValueBytes +
                        int64_t{plan.buffers.size()} * BufferBytes},
          .calls = Bytes{num_ops * CallBytes},
          .threads = (usable.products > 1 ? OutsideArenas::ProductThreads : Bytes{}) +
                     OutsideArenas::ProductThread * (usable.products - 1) +
                     OutsideArenas::PlainThread * (usable.all - usable.products)};
}

}  // namespace shardc
