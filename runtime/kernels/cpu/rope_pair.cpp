// rope_pair: rope of q, then of k.
#include "runtime/kernels/parts.h"

namespace shardc::cpu {

auto Bind(const op::RopePair& op, Binder& binder) -> Kernel { return BindInParts(op, binder); }

}  // namespace shardc::cpu
