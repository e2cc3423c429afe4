// rope_table: cosines and sines of s * frequency(i) at [s, 0, i] and [s, 1, i]. Source: Su et al. 2021, "RoFormer",
// eq. 15; halves instead of neighbours, as Hugging Face's rotate_half has them.
#include "compiler/expr/rotary.h"
#include "runtime/kernels/host/host_memory.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::host {

auto Bind(const op::RopeTable& op, Binder& binder) -> Kernel {
  const Dims shape = binder.ViewOf(op.table).shape;
  CHECK(shape.size() == 3 && shape[1] == 2, "a rope table of {}", ToText(shape));
  const auto frequency = ReadReducedFrequency(op.frequency);
  CHECK(frequency.has_value(), "the frequency `{}`", op.frequency);
  return
      [memory = HostMemory(binder), table = CheckedView<float>(binder, op.table), positions = shape[0], half = shape[2],
       frequencies = RotaryFrequencies(*frequency, shape[2])](const Moment& moment) mutable -> Status {
        return memory.Write(table.At<float>(moment), table.num_elements(), [&](float* rows) -> Status {
          ParallelRanges(positions, SinesPerThread(half), [&](int64_t begin, int64_t end) {
            for (int64_t s = begin; s < end; ++s) {
              WriteRotaryRow(frequencies, s, rows + s * 2 * half);
            }
          });
          return Success{};
        });
      };
}

}  // namespace shardc::host
