// control: one small gather in which the ranks agree on a stop request and on the first parameter with a non-finite
// gradient. Sets stop and nonfinite to 0 or 1, and bad_parameter to the parameter's id or -1.
#include <algorithm>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/kernels/host/host_memory.h"

namespace shardc {

namespace {

struct Word {
  int64_t stop = 0;
  int64_t bad = 0;
};

}  // namespace

auto Bind(const op::Control& op, Binder& binder) -> Kernel {
  Communicator& comm = binder.communicator();
  const int64_t num_parameters = binder.plan().parameters.size();
  std::vector<Word> all(static_cast<size_t>(binder.plan().mesh.size(op.axes)));
  return [&comm, &queue = binder.queue(), &scalars = binder.scalars(), bad = CheckedView<int64_t>(binder, op.bad), op,
          num_parameters, all, memory = HostMemory(binder)](const Moment& moment) mutable -> Status {
    const auto own_bad = memory.First<int64_t>(bad, moment);
    if (!own_bad) {
      return own_bad.error();
    }
    const Word mine{.stop = scalars.stop_requested() ? 1 : 0, .bad = *own_bad};
    RETURN_IF_ERROR(comm.Exchange(queue, op.axes, reinterpret_cast<const std::byte*>(&mine), sizeof(Word),
                                  reinterpret_cast<std::byte*>(all.data())));
    Word agreed{.stop = 0, .bad = num_parameters};
    for (const Word& word : all) {
      agreed.stop = std::max(agreed.stop, word.stop);
      agreed.bad = std::min(agreed.bad, word.bad);
    }
    const bool nonfinite = agreed.bad < num_parameters;
    scalars[op.stop] = static_cast<double>(agreed.stop);
    scalars[op.nonfinite] = nonfinite ? 1 : 0;
    scalars[op.bad_parameter] = nonfinite ? static_cast<double>(agreed.bad) : -1;
    return Success{};
  };
}

}  // namespace shardc
