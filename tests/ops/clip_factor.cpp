#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

struct ClipCase {
  double sum = 0;
  double max_norm = 0;
  double norm = 0;
  double factor = 1;
};

constexpr double Infinity = std::numeric_limits<double>::infinity();
constexpr double Nan = std::numeric_limits<double>::quiet_NaN();
constexpr ClipCase ClipCases[] = {
    {.sum = 16, .max_norm = 1, .norm = 4, .factor = 1 / (4 + 1e-6)},
    {.sum = 0.25, .max_norm = 1, .norm = 0.5, .factor = 1},
    {.sum = 1, .max_norm = 1, .norm = 1, .factor = 1 / (1 + 1e-6)},
    {.sum = 16, .max_norm = 0, .norm = 4, .factor = 1},
    {.sum = 0, .max_norm = 1, .norm = 0, .factor = 1},
    {.sum = Infinity, .max_norm = 1, .norm = Infinity, .factor = 0},
    {.sum = Nan, .max_norm = 1, .norm = Nan, .factor = Nan},
};

TEST(ClipFactor, FollowsTheFormula) {
  ForBackends([](const Backend& backend) {
    for (const ClipCase& test : ClipCases) {
      SCOPED_TRACE(fmt::format("sum {} max_norm {}", test.sum, test.max_norm));
      KernelFixture fixture(backend);
      const ValueId norm = fixture.Add(DType::F64, {1});
      const ValueId factor = fixture.Add(DType::F64, {1});
      fixture.Run(
          op::ClipFactor{.sum = fixture.F64({test.sum}), .norm = norm, .factor = factor, .max_norm = test.max_norm});
      if (std::isfinite(test.sum)) {
        ExpectClose(OpKind::ClipFactor, "norm", fixture.At<double>(norm), {test.norm});
        ExpectClose(OpKind::ClipFactor, "factor", fixture.At<double>(factor), {test.factor});
      } else {
        EXPECT_EQ(std::isnan(test.norm), std::isnan(fixture.At<double>(norm)[0]));
        EXPECT_EQ(fmt::format("{}", fixture.At<double>(factor)[0]), fmt::format("{}", test.factor));
      }
    }
  });
}

}  // namespace shardc
