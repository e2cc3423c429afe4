// load_moment: the owned elements of what the optimizer keeps of one parameter, out of the checkpoint that the run
// continues; the rest of the slice stays as it is.
#include "compiler/plan/init_rule.h"
#include "runtime/kernels/host/host.h"
#include "runtime/kernels/host/load_owned.h"

namespace shardc::host {

auto Bind(const op::LoadMoment& op, Binder& binder) -> Kernel {
  return LoadOwned(op, binder,
                   [role = op.role, tensor = LoadedBlockOf(binder.plan().parameters[op.parameter])->tensor](
                       CheckpointReader& seed, const BoxInterval& piece, DType dtype, std::byte* to) {
                     return seed.ReadElements(tensor, role, piece, dtype, to);
                   });
}

}  // namespace shardc::host
