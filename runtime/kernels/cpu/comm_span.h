// A view as the communicator takes it.
#pragma once

#include "runtime/comm/communicator.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

inline auto CommSpanOf(const View& view, const Moment& moment) -> CommSpan {
  return {.data = view.At<std::byte>(moment),
          .bytes = view.num_elements() * SizeOf(view.dtype),
          .arena = view.arena,
          .offset = view.arena_offset + view.bytes_per_repeat * moment.repeat};
}

}  // namespace shardc
