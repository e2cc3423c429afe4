// save_commit: all ranks agree that the checkpoint exists, or that it does not.
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/kernels/kernel.h"

namespace shardc::host {

auto Bind(const op::SaveCommit&, Binder& binder) -> Kernel {
  CheckpointWriter& writer = binder.writer();
  return [&writer](const Moment&) -> Status { return writer.Commit(); };
}

}  // namespace shardc::host
