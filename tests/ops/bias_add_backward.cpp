#include <gtest/gtest.h>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(BiasAddBackward, SumsRows) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const auto& [sequence, batch, width] :
         {std::array{1, 1, 1}, {1, 3, 10}, {17, 3, 70}, {65, 1, 257}, {5, 2, 2048}, {400, 3, 5}}) {
      for (const bool adds : {false, true}) {
        SCOPED_TRACE(fmt::format("S={} B={} H={} onto {}", sequence, batch, width, adds));
        KernelFixture fixture(backend);
        const Dims shape{sequence, batch, width};
        const auto dy = RandomNumbers(dtype, NumElements(shape), 1);
        const auto before = RandomNumbers(width, 2);
        std::vector<double> expected = adds ? before : std::vector<double>(static_cast<size_t>(width));
        for (size_t i = 0; i < dy.size(); ++i) {
          expected[i % static_cast<size_t>(width)] += dy[i];
        }
        const ValueId onto = adds ? fixture.F32({width}, before) : fixture.Add(DType::F32, {width});
        const ValueId dbias = fixture.Over(onto);
        fixture.Run(op::BiasAddBackward{
            .dy = fixture.Floats(dtype, shape, dy), .dbias = dbias, .dbias_onto = adds ? onto : ValueId{}});
        ExpectClose(OpKind::BiasAddBackward, "dbias", fixture, dbias, expected);
      }
    }
  });
}

}  // namespace shardc
