// rope_table_at: cosines and sines of the position of each token, as rope_table computes them (rotary.h).
#include <algorithm>

#include "compiler/expr/math.h"
#include "compiler/expr/rotary.h"
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc::cpu {

auto Bind(const op::RopeTableAt& op, Binder& binder) -> Kernel {
  const Dims shape = binder.ViewOf(op.table).shape;
  CHECK(shape.size() == 4 && shape[2] == 2, "a rope table of {}", ToText(shape));
  const auto frequency = ReadReducedFrequency(op.frequency);
  CHECK(frequency.has_value(), "the frequency `{}`", op.frequency);
  const std::vector<double> frequencies = RotaryFrequencies(*frequency, shape[3]);
  const double greatest = std::ranges::max(frequencies);
  return BindOver(
      [tokens = shape[0] * shape[1], half = shape[3], frequencies, greatest](const int32_t* positions_N,
                                                                             float* table_N2D) -> Status {
        const int64_t last = *std::max_element(positions_N, positions_N + tokens);
        FAIL_IF(static_cast<double>(last) * greatest > MostAngle, ExitCode::RecipeRejected,
                "position {} of a document has an angle of {} in the rotary embedding, and angles end at 2^30: lower "
                "model.rope_frequency",
                last, static_cast<double>(last) * greatest);
        ParallelRanges(tokens, SinesPerThread(half), [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            float* const row = table_N2D + i * 2 * half;
            // Sequences that begin with a document have the same positions beside one another.
            if (i > begin && positions_N[i] == positions_N[i - 1]) {
              std::copy_n(row - 2 * half, 2 * half, row);
            } else {
              WriteRotaryRow(frequencies, positions_N[i], row);
            }
          }
        });
        return Success{};
      },
      Resolve<const int32_t>(binder, op.positions), Resolve<float>(binder, op.table));
}

}  // namespace shardc::cpu
