// A view as the communicator takes it.
#pragma once

#include <optional>

#include "runtime/comm/communicator.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

inline auto CommSpanOf(const View& view, const Moment& moment) -> CommSpan {
  return {.data = view.At<std::byte>(moment),
          .bytes = view.num_elements() * SizeOf(view.dtype),
          .arena = view.arena,
          .offset = view.arena_offset + view.bytes_per_repeat * moment.repeat};
}

/// Returns the scratch of a collective, which it has if its group spans several hosts.
inline auto ScratchOf(ValueId scratch, Binder& binder) -> std::optional<View> {
  return scratch.valid() ? std::optional(binder.ViewOf(scratch)) : std::nullopt;
}
inline auto CommSpanOf(const std::optional<View>& view, const Moment& moment) -> CommSpan {
  return view ? CommSpanOf(*view, moment) : CommSpan{};
}

}  // namespace shardc
