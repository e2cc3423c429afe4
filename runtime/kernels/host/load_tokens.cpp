// load_tokens: the samples of this rank's microbatch, sequence-major.
#include "runtime/data/token_reader.h"
#include "runtime/kernels/host/document_targets.h"

namespace shardc::host {

auto Bind(const op::LoadTokens& op, Binder& binder) -> Kernel {
  const View tokens_SB = CheckedView<int32_t>(binder, op.tokens);
  const View targets_SB = CheckedView<int32_t>(binder, op.targets);
  CHECK(tokens_SB.shape.size() == 2 && tokens_SB.shape == targets_SB.shape, "tokens {}, targets {}",
        ToText(tokens_SB.shape), ToText(targets_SB.shape));
  const int64_t batch = tokens_SB.shape[1];
  const Coordinates coordinates = binder.plan().mesh.CoordinatesOf(binder.rank());
  TokenReader& reader = binder.tokens();
  return [=, &reader, tokens_memory = HostMemory(binder), targets_memory = HostMemory(binder),
          starts = DocumentStarts(binder, op.starts)](const Moment& moment) mutable -> Status {
    const int64_t sample = op.sample.Evaluate({coordinates, moment.repeat, moment.step});
    const int64_t count = tokens_SB.num_elements();
    // A sample is read once, into both.
    return tokens_memory.Write(tokens_SB.At<int32_t>(moment), count, [&](int32_t* tokens) -> Status {
      return targets_memory.Write(targets_SB.At<int32_t>(moment), count, [&](int32_t* targets) -> Status {
        for (int64_t b = 0; b < batch; ++b) {
          RETURN_IF_ERROR(reader.ReadSample(op.split, sample + b, tokens + b, targets + b, batch, op.head));
        }
        return starts.TakeTargets(moment, targets);
      });
    });
  };
}

}  // namespace shardc::host
