// Cases that the tests of norms share: shapes, and for rms_norm and head_norm rows of which each has an rstd,
// against LibTorch.
#pragma once

#include <array>
#include <vector>

#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

/// Returns sizes of sequences, batches and hidden states, the least of these as given.
inline auto NormShapes(int least_hidden) -> std::vector<std::array<int, 3>> {
  return {{1, 1, least_hidden}, {1, 3, 10},   {17, 3, 70},  {65, 1, 257},
          {5, 2, 2048},         {64, 3, 128}, {3, 1, 8200}, {3, 1, 4101}};
}

struct NormCase {
  DType dtype = DType::F32;
  /// Of x.
  DType residual = DType::F32;
  /// Of x, whose rows of `columns` elements are counted by the shape of rstd.
  Dims shape;
  Dims rstd_shape;
  int64_t columns = 0;
  double eps = 1e-5;
  /// The spread of dy's numbers.
  double spread = 1;

  auto rows() const -> int64_t { return NumElements(rstd_shape); }
};

template <class Norm>
auto ExpectTorchNorm(OpKind kind, const Backend& backend, const NormCase& norm) -> void {
  SCOPED_TRACE(fmt::format("x {}, rstd {}", ToText(norm.shape), ToText(norm.rstd_shape)));
  KernelFixture fixture(backend);
  const auto x = RandomNumbers(norm.residual, NumElements(norm.shape), 1, 3);
  const auto weight = RandomNumbers(norm.dtype, norm.columns, 2);
  const RmsNormResult expected = TorchRmsNorm(norm.rows(), norm.columns, norm.eps, x, weight, x);
  const ValueId y = fixture.Add(norm.dtype, norm.shape);
  const ValueId rstd = fixture.Add(DType::F32, norm.rstd_shape);
  fixture.Run(Norm{.x = fixture.Floats(norm.residual, norm.shape, x),
                   .weight = fixture.Floats(norm.dtype, {norm.columns}, weight),
                   .y = y,
                   .rstd = rstd,
                   .eps = norm.eps});
  ExpectClose(kind, "y", fixture, y, expected.y);
  ExpectClose(kind, "rstd", fixture, rstd, expected.rstd);
}

/// Writing its results, and adding each of them to what is there.
template <class NormBackward>
auto ExpectTorchNormBackward(OpKind kind, const Backend& backend, const NormCase& norm) -> void {
  const auto sums = [](Numbers a, const Numbers& b, bool adds) {
    for (size_t i = 0; adds && i < a.size(); ++i) {
      a[i] += b[i];
    }
    return a;
  };
  for (const bool adds_dx : {false, true}) {
    for (const bool adds_dweight : {false, true}) {
      SCOPED_TRACE(
          fmt::format("x {}, rstd {}, onto {} {}", ToText(norm.shape), ToText(norm.rstd_shape), adds_dx, adds_dweight));
      KernelFixture fixture(backend);
      const int64_t size = NumElements(norm.shape);
      const auto x = RandomNumbers(norm.residual, size, 1);
      const auto weight = RandomNumbers(norm.dtype, norm.columns, 2);
      const auto dy = RandomNumbers(norm.dtype, size, 3, norm.spread);
      const auto dx_before = RandomNumbers(norm.residual, size, 4);
      const auto dweight_before = RandomNumbers(norm.columns, 5);
      const RmsNormResult expected = TorchRmsNorm(norm.rows(), norm.columns, norm.eps, x, weight, dy);
      const ValueId dx_onto =
          adds_dx ? fixture.Floats(norm.residual, norm.shape, dx_before) : fixture.Add(norm.residual, norm.shape);
      const ValueId dweight_onto =
          adds_dweight ? fixture.F32({norm.columns}, dweight_before) : fixture.Add(DType::F32, {norm.columns});
      const ValueId dx = fixture.Over(dx_onto);
      const ValueId dweight = fixture.Over(dweight_onto);
      fixture.Run(NormBackward{.dy = fixture.Floats(norm.dtype, norm.shape, dy),
                               .x = fixture.Floats(norm.residual, norm.shape, x),
                               .weight = fixture.Floats(norm.dtype, {norm.columns}, weight),
                               .rstd = fixture.F32(norm.rstd_shape, expected.rstd),
                               .dx = dx,
                               .dx_onto = adds_dx ? dx_onto : ValueId{},
                               .dweight = dweight,
                               .dweight_onto = adds_dweight ? dweight_onto : ValueId{}});
      ExpectClose(kind, "dx", fixture, dx, sums(expected.dx, dx_before, adds_dx));
      ExpectClose(kind, "dweight", fixture, dweight, sums(expected.dweight, dweight_before, adds_dweight));
    }
  }
}

}  // namespace shardc
