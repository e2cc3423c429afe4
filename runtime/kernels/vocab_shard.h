// Which ids of the vocabulary a rank has, and checks of token ids before they become addresses. The reader has checked
// the files; the check keeps a fault there from reading or writing outside a matrix.
#pragma once

#include <algorithm>

#include "compiler/base/error_or.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

/// Returns an error that names the first id outside [least, vocabulary).
inline auto CheckTokens(const int32_t* ids, int64_t count, int32_t least, int64_t vocabulary) -> Status {
  int32_t smallest = least;
  int32_t greatest = least;
  for (int64_t i = 0; i < count; ++i) {
    smallest = std::min(smallest, ids[i]);
    greatest = std::max(greatest, ids[i]);
  }
  if (smallest >= least && greatest < vocabulary) [[likely]] {
    return Success{};
  }
  const int32_t* const bad = std::find_if(ids, ids + count, [&](int32_t id) { return id < least || id >= vocabulary; });
  return Fail(ExitCode::InternalFault, "token id {} at position {} is outside the vocabulary of {}", *bad, bad - ids,
              vocabulary);
}

/// The range of the vocabulary that lies on this rank: ids [first, first + size), of `total`.
struct VocabShard {
  int64_t first = 0;
  int64_t size = 0;
  int64_t total = 0;

  auto Has(int64_t id) const -> bool { return id >= first && id < first + size; }
};

/// Returns this rank's part of the vocabulary. `rows`: those of the matrix on each rank of `axes`, padding included;
/// the whole vocabulary if there are no axes. `head`: the head that the vocabulary belongs to.
inline auto VocabShardOf(Binder& binder, AxisSet axes, int64_t rows, HeadId head = {}) -> VocabShard {
  if (axes == AxisSet{}) {
    return {.first = 0, .size = rows, .total = rows};
  }
  const Plan& plan = binder.plan();
  const int64_t first = plan.mesh.IndexIn(axes, binder.rank()) * rows;
  const int64_t total = VocabOf(plan, head);
  return {.first = first, .size = std::clamp<int64_t>(total - first, 0, rows), .total = total};
}

}  // namespace shardc
