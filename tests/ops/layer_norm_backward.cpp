#include <gtest/gtest.h>

#include "tests/ops/norm_case.h"

namespace shardc {

TEST(LayerNormBackward, EqualsLibTorchInF64) {
  ForResidualTypes([](const Backend& backend, DType dtype, DType residual) {
    const auto sums = [](std::vector<double> numbers, const std::vector<double>& before, bool adds) {
      for (size_t i = 0; adds && i < numbers.size(); ++i) {
        numbers[i] += before[i];
      }
      return numbers;
    };
    auto shapes = NormShapes(2);
    shapes.push_back({260, 1, 2056});
    for (const auto& [sequence, batch, hidden] : shapes) {
      // Which of dx, dweight and dbias are added to what is there, as bits. Of many rows: none or all.
      for (int onto = 0; onto<8; onto += sequence> 100 ? 7 : 1) {
        SCOPED_TRACE(fmt::format("S={} B={} H={} onto {}", sequence, batch, hidden, onto));
        const bool adds_dx = (onto & 1) != 0;
        const bool adds_dweight = (onto & 2) != 0;
        const bool adds_dbias = (onto & 4) != 0;
        KernelFixture fixture(backend);
        const int64_t rows = sequence * batch;
        const Dims shape{sequence, batch, hidden};
        const auto x = RandomNumbers(residual, rows * hidden, 1);
        const auto weight = RandomNumbers(dtype, hidden, 2);
        const auto dy = RandomNumbers(dtype, rows * hidden, 3);
        const auto dx_before = RandomNumbers(residual, rows * hidden, 4);
        const auto dweight_before = RandomNumbers(hidden, 5);
        const auto dbias_before = RandomNumbers(hidden, 6);
        const LayerNormResult expected = TorchLayerNorm(rows, hidden, 1e-5, x, weight, weight, dy);
        const ValueId dx_onto = adds_dx ? fixture.Floats(residual, shape, dx_before) : fixture.Add(residual, shape);
        const ValueId dweight_onto =
            adds_dweight ? fixture.F32({hidden}, dweight_before) : fixture.Add(DType::F32, {hidden});
        const ValueId dbias_onto = adds_dbias ? fixture.F32({hidden}, dbias_before) : fixture.Add(DType::F32, {hidden});
        const ValueId dx = fixture.Over(dx_onto);
        const ValueId dweight = fixture.Over(dweight_onto);
        const ValueId dbias = fixture.Over(dbias_onto);
        fixture.Run(op::LayerNormBackward{.dy = fixture.Floats(dtype, shape, dy),
                                          .x = fixture.Floats(residual, shape, x),
                                          .weight = fixture.Floats(dtype, {hidden}, weight),
                                          .mean = fixture.F32({sequence, batch}, expected.mean),
                                          .rstd = fixture.F32({sequence, batch}, expected.rstd),
                                          .dx = dx,
                                          .dx_onto = adds_dx ? dx_onto : ValueId{},
                                          .dweight = dweight,
                                          .dweight_onto = adds_dweight ? dweight_onto : ValueId{},
                                          .dbias = dbias,
                                          .dbias_onto = adds_dbias ? dbias_onto : ValueId{}});
        ExpectClose(OpKind::LayerNormBackward, "dx", fixture, dx, sums(expected.dx, dx_before, adds_dx));
        ExpectClose(OpKind::LayerNormBackward, "dweight", fixture, dweight,
                    sums(expected.dweight, dweight_before, adds_dweight));
        ExpectClose(OpKind::LayerNormBackward, "dbias", fixture, dbias, sums(expected.dbias, dbias_before, adds_dbias));
      }
    }
  });
}

TEST(LayerNormBackward, RowsFarFromZero) {
  ForBackends([](const Backend& backend) {
    KernelFixture fixture(backend);
    const Dims shape{4, 2, 300};
    auto x = RandomNumbers(NumElements(shape), 1);
    for (double& element : x) {
      element = static_cast<double>(static_cast<float>(element + 1000));
    }
    const auto weight = RandomNumbers(300, 2);
    const auto dy = RandomNumbers(NumElements(shape), 3);
    const LayerNormResult expected = TorchLayerNorm(8, 300, 1e-5, x, weight, weight, dy);
    const ValueId dx = fixture.Add(DType::F32, shape);
    const ValueId dweight = fixture.Add(DType::F32, {300});
    const ValueId dbias = fixture.Add(DType::F32, {300});
    fixture.Run(op::LayerNormBackward{.dy = fixture.F32(shape, dy),
                                      .x = fixture.F32(shape, x),
                                      .weight = fixture.F32({300}, weight),
                                      .mean = fixture.F32({4, 2}, expected.mean),
                                      .rstd = fixture.F32({4, 2}, expected.rstd),
                                      .dx = dx,
                                      .dx_onto = {},
                                      .dweight = dweight,
                                      .dweight_onto = {},
                                      .dbias = dbias,
                                      .dbias_onto = {}});
    // The mean of such a row, in f32, is off by up to 3e-5; a sum over 8 rows by 8 times that and a |dy| of up to 3.
    const auto expect_near = [&](ValueId actual, const std::vector<double>& numbers, double tolerance) {
      const std::vector<double> found = fixture.Numbers(actual);
      for (size_t i = 0; i < numbers.size(); ++i) {
        ASSERT_NEAR(found[i], numbers[i], tolerance) << i;
      }
    };
    expect_near(dx, expected.dx, 1e-4);
    expect_near(dweight, expected.dweight, 1e-3);
    expect_near(dbias, expected.dbias, 1e-5);
  });
}

}  // namespace shardc
