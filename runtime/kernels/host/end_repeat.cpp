// end_repeat: a bracket of the list; nothing is left for a kernel.
#include "runtime/kernels/kernel.h"

namespace shardc::host {

auto Bind(const op::EndRepeat&, Binder&) -> Kernel {
  return [](const Moment&) -> Status { return Success{}; };
}

}  // namespace shardc::host
