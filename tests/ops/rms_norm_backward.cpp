#include <gtest/gtest.h>

#include "tests/ops/norm_case.h"

namespace shardc {

TEST(RmsNormBackward, EqualsLibTorchInF64) {
  ForResidualTypes([](const Backend& backend, DType dtype, DType residual) {
    for (const auto& [sequence, batch, hidden] : NormShapes(2)) {
      ExpectTorchNormBackward<op::RmsNormBackward>(
          OpKind::RmsNormBackward, backend,
          {dtype, residual, {sequence, batch, hidden}, {sequence, batch}, hidden, 1e-5});
    }
  });
}

// More rows than there are sums of rows on their way.
TEST(RmsNormBackward, TakesManyRows) {
  ForResidualTypes([](const Backend& backend, DType dtype, DType residual) {
    ExpectTorchNormBackward<op::RmsNormBackward>(OpKind::RmsNormBackward, backend,
                                                 {dtype, residual, {260, 1, 2056}, {260, 1}, 2056, 1e-5, 0.25});
  });
}

}  // namespace shardc
