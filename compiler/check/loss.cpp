// Rules of [loss]: the chunks divide the sequence.
#include <algorithm>

#include "compiler/check/check_context.h"

namespace shardc {

auto CheckLoss(CheckContext& context) -> void {
  const Located<int64_t>& chunks = context.recipe().loss.chunks;
  const Located<int64_t>& seq = context.recipe().model.seq;
  if (!context.IsSound(chunks, seq) || *seq % *chunks == 0) {
    return;
  }
  // 1 divides everything, so the search ends.
  int64_t below = std::min(*chunks, *seq);
  while (*seq % below != 0) {
    --below;
  }
  context.diags()
      .Build(chunks.at, DiagnosticKind::LossChunksNotDivisor, *chunks, *seq)
      .Note(seq.at, "`seq` set here")
      .Help(fmt::format("use chunks = {}", below))
      .Emit();
}

}  // namespace shardc
