#include <gtest/gtest.h>

#include <array>

#include "tests/ops/norm_case.h"

namespace shardc {

TEST(RmsNormBackward, EqualsLibTorchInF64) {
  ForResidualTypes([](const Backend& backend, DType dtype, DType residual) {
    for (const auto& [sequence, batch, hidden] : {std::array{1, 1, 2},
                                                  {1, 3, 10},
                                                  {17, 3, 70},
                                                  {65, 1, 257},
                                                  {5, 2, 2048},
                                                  {64, 3, 128},
                                                  {3, 1, 8200},
                                                  {3, 1, 4101}}) {
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
