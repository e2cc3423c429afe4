#include <gtest/gtest.h>

#include <array>

#include "tests/ops/norm_case.h"

namespace shardc {

TEST(HeadNorm, EqualsLibTorchsNormOfEachHead) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const auto& [sequence, batch, heads, head_dim] :
         {std::array{1, 1, 1, 2}, {1, 3, 2, 10}, {17, 3, 5, 12}, {65, 1, 3, 64}, {5, 2, 16, 128}}) {
      ExpectTorchNorm<op::HeadNorm>(
          OpKind::HeadNorm, backend,
          {dtype, dtype, {sequence, batch, heads * head_dim}, {sequence, batch, heads}, head_dim, 1e-6});
    }
  });
}

}  // namespace shardc
