// rope_table: cosines and sines of s * theta^(-2i / D) at [s, 0, i] and [s, 1, i]. Angles are formed in f64: at
// position 100,000 an f32 angle has an error of 0.004. Source: Su et al. 2021, "RoFormer", eq. 15; halves instead of
// neighbours, as Hugging Face's rotate_half has them.
#include <cmath>

#include "runtime/kernels/cpu/operand.h"

namespace shardc {

auto Bind(const op::RopeTable& op, Binder& binder) -> Kernel {
  const Dims shape = binder.ViewOf(op.table).shape;
  CHECK(shape.size() == 3 && shape[1] == 2, "a rope table of {}", ToText(shape));
  return [table = Resolve<float>(binder, op.table), positions = shape[0], half = shape[2],
          theta = op.theta](const Moment& moment) -> Status {
    float* row = table.At(moment);
    for (int64_t s = 0; s < positions; ++s, row += 2 * half) {
      for (int64_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(s) * std::pow(theta, -static_cast<double>(i) / static_cast<double>(half));
        row[i] = static_cast<float>(std::cos(angle));
        row[half + i] = static_cast<float>(std::sin(angle));
      }
    }
    return Success{};
  };
}

}  // namespace shardc
