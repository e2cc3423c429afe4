// control: one small gather in which the ranks agree on a stop request, on the first parameter with a non-finite
// gradient, and, if the plan asks for it, on whether the loss is a spike. Sets flags to 0 or 1, and bad_parameter to
// the parameter's id or -1. All ranks have the same loss; they agree on what follows from it all the same, so that a
// rank whose memory is broken makes no update that others leave out.
#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/kernels/host/host_memory.h"

namespace shardc::host {

namespace {

struct Word {
  int64_t stop = 0;
  /// A parameter with a non-finite gradient; the number of parameters if there is none and the loss is a spike; one
  /// more if all is well. The least of all ranks counts.
  int64_t bad = 0;
};

}  // namespace

auto Bind(const op::Control& op, Binder& binder) -> Kernel {
  Communicator& comm = binder.communicator();
  const int64_t num_parameters = binder.plan().parameters.size();
  std::vector<Word> all(static_cast<size_t>(binder.plan().mesh.size(op.axes)));
  const RunSettings& run = binder.plan().run;
  return [&comm, &run, &queue = binder.queue(), &scalars = binder.scalars(), bad = CheckedView<int64_t>(binder, op.bad),
          op, num_parameters, all, memory = HostMemory(binder)](const Moment& moment) mutable -> Status {
    ASSIGN_OR_RETURN(const auto own_bad, memory.First<int64_t>(bad, moment));
    const double loss = op.spike.valid() ? scalars[op.loss] : 0;
    const bool own_spike = op.spike.valid() && scalars.losses().Judge(loss, run.spike_window, run.spike_sigma);
    const Word mine{.stop = scalars.stop_requested() ? 1 : 0,
                    .bad = own_bad < num_parameters ? own_bad : num_parameters + (own_spike ? 0 : 1)};
    RETURN_IF_ERROR(comm.Exchange(queue, op.axes, reinterpret_cast<const std::byte*>(&mine), sizeof(Word),
                                  reinterpret_cast<std::byte*>(all.data())));
    Word agreed{.stop = 0, .bad = num_parameters + 1};
    for (const Word& word : all) {
      agreed.stop = std::max(agreed.stop, word.stop);
      agreed.bad = std::min(agreed.bad, word.bad);
    }
    const bool nonfinite = agreed.bad < num_parameters;
    scalars[op.stop] = static_cast<double>(agreed.stop);
    scalars[op.nonfinite] = nonfinite ? 1 : 0;
    scalars[op.bad_parameter] = nonfinite ? static_cast<double>(agreed.bad) : -1;
    if (op.spike.valid()) {
      const bool spike = agreed.bad == num_parameters;
      scalars[op.spike] = spike ? 1 : 0;
      scalars[op.left_out] = nonfinite || spike ? 1 : 0;
      // A spike would widen the window that judges the next loss. In a step without targets, a loss with one term is
      // NaN, and a loss with several terms is 0.
      if (!nonfinite && !spike && std::isfinite(loss) && loss != 0) {
        scalars.losses().Add(loss, run.spike_window);
      }
    }
    return Success{};
  };
}

}  // namespace shardc::host
