// load_documents: where documents lie in the samples of this rank's microbatch, sequence-major.
#include "runtime/data/token_reader.h"
#include "runtime/kernels/host/host_memory.h"

namespace shardc::host {

auto Bind(const op::LoadDocuments& op, Binder& binder) -> Kernel {
  const View starts_SB = CheckedView<int32_t>(binder, op.starts);
  const View positions_SB = CheckedView<int32_t>(binder, op.positions);
  CHECK(starts_SB.shape.size() == 2 && starts_SB.shape == positions_SB.shape, "starts {}, positions {}",
        ToText(starts_SB.shape), ToText(positions_SB.shape));
  const int64_t batch = starts_SB.shape[1];
  const Coordinates coordinates = binder.plan().mesh.CoordinatesOf(binder.rank());
  TokenReader& reader = binder.tokens();
  return [=, &reader, starts_memory = HostMemory(binder),
          positions_memory = HostMemory(binder)](const Moment& moment) mutable -> Status {
    const int64_t sample = op.sample.Evaluate({coordinates, moment.repeat, moment.step});
    const int64_t count = starts_SB.num_elements();
    return starts_memory.Write(starts_SB.At<int32_t>(moment), count, [&](int32_t* starts) -> Status {
      return positions_memory.Write(positions_SB.At<int32_t>(moment), count, [&](int32_t* positions) -> Status {
        for (int64_t b = 0; b < batch; ++b) {
          RETURN_IF_ERROR(reader.ReadDocuments(op.split, sample + b, starts + b, positions + b, batch));
        }
        return Success{};
      });
    });
  };
}

}  // namespace shardc::host
