// Needs of a rank that exchanges with ranks of other hosts: the sets of axes over which it does, and the memory that
// the communicators of NCCL take of its GPU beside the arenas.
#pragma once

#include "compiler/base/units.h"
#include "compiler/mesh/mesh.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Returns the sets over which ops of the plan exchange between hosts: of ops that agree, which exchange memory of the
/// host, or of all others.
auto ExchangedSets(const Plan& plan, bool agree) -> ByAxisSet<bool>;

/// Communicators of a rank, one for all sets over which it exchanges with the same ranks.
struct NcclCommunicators {
  // Source: NCCL 2.28.9 on one H100, 2 to 8 processes as so many hosts over sockets, 2026-11-26: memory of the GPU
  // before and after.
  /// The first of a process.
  static constexpr Bytes First{int64_t{584} << 20};
  static constexpr Bytes Further{int64_t{380} << 20};
  /// Each, when it first sends to each of the others.
  static constexpr Bytes Exchange{int64_t{62} << 20};

  int64_t count = 0;
  /// Terms are exchanged over them.
  bool exchange = false;

  auto bytes() const -> Bytes {
    return count == 0 ? Bytes{} : First + Further * (count - 1) + (exchange ? Exchange * count : Bytes{});
  }
};
/// Returns those of each rank of the plan; 0 if nothing goes by NCCL.
auto NcclCommunicatorsOf(const Plan& plan) -> NcclCommunicators;

}  // namespace shardc
