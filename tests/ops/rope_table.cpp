#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(RopeTable, HoldsCosinesThenSines) {
  ForBackends([](const Backend& backend) {
    for (const auto& [positions, head_dim] : {std::pair{1, 2}, {17, 6}, {65, 32}, {300, 128}}) {
      KernelFixture fixture(backend);
      const ValueId table = fixture.Add(DType::F32, {positions, 2, head_dim / 2});
      fixture.Run(op::RopeTable{.table = table, .frequency = fmt::format("10000 ^ (-2 * index(0) / {})", head_dim)});
      std::vector<double> expected;
      for (int s = 0; s < positions; ++s) {
        for (int part = 0; part < 2; ++part) {
          for (int i = 0; i < head_dim / 2; ++i) {
            const double angle = s / std::pow(10000.0, 2.0 * i / head_dim);
            expected.push_back(part == 0 ? std::cos(angle) : std::sin(angle));
          }
        }
      }
      ExpectClose(OpKind::RopeTable, "table", fixture.At<float>(table), expected);
    }
  });
}

TEST(RopeTable, TurnsByTheFormulaOfThePair) {
  ForBackends([](const Backend& backend) {
    KernelFixture fixture(backend);
    const ValueId table = fixture.Add(DType::F32, {70, 2, 5});
    fixture.Run(op::RopeTable{.table = table, .frequency = "if index(0) == 2 then 0 else 1 / (1 + index(0) ^ 2)"});
    std::vector<double> expected;
    for (int s = 0; s < 70; ++s) {
      for (int part = 0; part < 2; ++part) {
        for (int i = 0; i < 5; ++i) {
          const double angle = i == 2 ? 0 : s / (1.0 + i * i);
          expected.push_back(part == 0 ? std::cos(angle) : std::sin(angle));
        }
      }
    }
    ExpectClose(OpKind::RopeTable, "table", fixture.At<float>(table), expected);
  });
}

}  // namespace shardc
