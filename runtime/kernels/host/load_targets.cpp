// load_targets: a head's targets of this rank's microbatch, sequence-major.
#include "runtime/data/token_reader.h"
#include "runtime/kernels/host/document_targets.h"

namespace shardc::host {

auto Bind(const op::LoadTargets& op, Binder& binder) -> Kernel {
  const View targets_SB = CheckedView<int32_t>(binder, op.targets);
  CHECK(targets_SB.shape.size() == 2, "targets {}", ToText(targets_SB.shape));
  const int64_t batch = targets_SB.shape[1];
  const Coordinates coordinates = binder.plan().mesh.CoordinatesOf(binder.rank());
  TokenReader& reader = binder.tokens();
  return [=, &reader, memory = HostMemory(binder),
          starts = DocumentStarts(binder, op.starts)](const Moment& moment) mutable -> Status {
    const int64_t sample = op.sample.Evaluate({coordinates, moment.repeat, moment.step});
    return memory.Write(targets_SB.At<int32_t>(moment), targets_SB.num_elements(), [&](int32_t* targets) -> Status {
      for (int64_t b = 0; b < batch; ++b) {
        RETURN_IF_ERROR(reader.ReadTargets(op.split, sample + b, op.head, targets + b, batch));
      }
      return starts.TakeTargets(moment, targets);
    });
  };
}

}  // namespace shardc::host
