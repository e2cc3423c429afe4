#include <gtest/gtest.h>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(EmbeddingBackward, AddsRowsByToken) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const auto& [sequence, batch, hidden, vocabulary] :
         {std::array{1, 1, 1, 2}, {17, 3, 10, 257}, {65, 1, 33, 5}, {64, 2, 700, 19}}) {
      for (const bool adds : {false, true}) {
        KernelFixture fixture(backend);
        const auto tokens = RandomTokens(sequence * batch, 1, vocabulary);
        const auto dy = RandomNumbers(dtype, sequence * batch * hidden, 2);
        const auto before = RandomNumbers(vocabulary * hidden, 3);
        const ValueId onto =
            adds ? fixture.F32({vocabulary, hidden}, before) : fixture.Add(DType::F32, {vocabulary, hidden});
        const ValueId dweight = fixture.Over(onto);
        fixture.Run(op::EmbeddingBackward{.tokens = fixture.I32({sequence, batch}, tokens),
                                          .dy = fixture.Floats(dtype, {sequence, batch, hidden}, dy),
                                          .dweight = dweight,
                                          .dweight_onto = adds ? onto : ValueId{}});
        std::vector<double> expected = adds ? before : std::vector<double>(before.size(), 0.0);
        for (size_t i = 0; i < tokens.size(); ++i) {
          for (int h = 0; h < hidden; ++h) {
            expected[static_cast<size_t>(tokens[i] * hidden + h)] +=
                dy[i * static_cast<size_t>(hidden) + static_cast<size_t>(h)];
          }
        }
        ExpectClose(OpKind::EmbeddingBackward, "dweight", fixture, dweight, expected);
      }
    }
  });
}

}  // namespace shardc
