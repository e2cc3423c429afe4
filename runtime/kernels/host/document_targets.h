// The targets that a microbatch lacks because its documents end: what load_tokens and load_targets take away.
#pragma once

#include "runtime/data/document_ends.h"
#include "runtime/kernels/host/host_memory.h"

namespace shardc::host {

/// Borders of the documents of a microbatch, as a load reads them; its op may have no such value.
class DocumentStarts {
 public:
  /// Requires: called by Bind.
  DocumentStarts(Binder& binder, ValueId starts)
      : memory_(binder), starts_SB_(starts.valid() ? CheckedView<int32_t>(binder, starts) : View{}) {}

  /// Writes -1 to the targets of the positions whose next token is of another document, or of the next sample.
  /// Requires: targets_SB are of the shape of `starts`.
  auto TakeTargets(const Moment& moment, int32_t* targets_SB) -> Status {
    if (starts_SB_.base == nullptr) {
      return Success{};
    }
    const int64_t sequence = starts_SB_.shape[0];
    const int64_t batch = starts_SB_.shape[1];
    ASSIGN_OR_RETURN(const auto bytes, memory_.Read(starts_SB_.At<std::byte>(moment),
                                                    sequence * batch * static_cast<int64_t>(sizeof(int32_t))));
    const auto* starts = reinterpret_cast<const int32_t*>(bytes);
    for (int64_t b = 0; b < batch; ++b) {
      TakeTargetsAtEnds(starts + b, sequence, batch, targets_SB + b);
    }
    return Success{};
  }

 private:
  HostMemory memory_;
  View starts_SB_;
};

}  // namespace shardc::host
