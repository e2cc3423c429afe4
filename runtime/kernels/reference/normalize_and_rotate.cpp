#include "compiler/expr/rotary.h"
#include "runtime/kernels/reference/tensor.h"

#include "runtime/kernels/parts.h"

namespace shardc::reference {

auto Bind(const op::RmsNorm& op, Binder& binder) -> Kernel {
  return MakeKernel([x = Elements(binder, op.x), weight = Elements(binder, op.weight), y = Elements(binder, op.y),
                     rstd = Elements(binder, op.rstd), eps = op.eps](const Moment& moment) {
    const at::Tensor x_NH = x.ReadRows(moment);
    const at::Tensor rstd_N1 = (x_NH.square().mean(-1, /*keepdim=*/true) + eps).rsqrt();
    rstd.Write(moment, rstd_N1);
    y.Write(moment, x_NH * rstd_N1 * weight.Read(moment));
  });
}

auto Bind(const op::AddRmsNorm& op, Binder& binder) -> Kernel { return BindInParts(op, binder); }

auto Bind(const op::RmsNormBackward& op, Binder& binder) -> Kernel {
  return MakeKernel([dy = Elements(binder, op.dy), x = Elements(binder, op.x), weight = Elements(binder, op.weight),
                     rstd = Elements(binder, op.rstd), dx = Elements(binder, op.dx),
                     dweight = Elements(binder, op.dweight), adds_dx = AddsOnto(binder, op.dx, op.dx_onto),
                     adds_dweight = AddsOnto(binder, op.dweight, op.dweight_onto)](const Moment& moment) {
    const at::Tensor dy_NH = dy.ReadRows(moment);
    const at::Tensor rstd_N1 = rstd.Read(moment).reshape({-1, 1});
    const at::Tensor normal_NH = x.ReadRows(moment) * rstd_N1;
    const at::Tensor g_NH = dy_NH * weight.Read(moment);
    const at::Tensor mean_N1 = (g_NH * normal_NH).mean(-1, /*keepdim=*/true);
    dx.Write(moment, rstd_N1 * (g_NH - normal_NH * mean_N1), adds_dx);
    dweight.Write(moment, (dy_NH * normal_NH).sum(0), adds_dweight);
  });
}

auto Bind(const op::LayerNorm& op, Binder& binder) -> Kernel {
  return MakeKernel([x = Elements(binder, op.x), weight = Elements(binder, op.weight), bias = Elements(binder, op.bias),
                     y = Elements(binder, op.y), mean = Elements(binder, op.mean), rstd = Elements(binder, op.rstd),
                     eps = op.eps](const Moment& moment) {
    const at::Tensor x_NH = x.ReadRows(moment);
    const at::Tensor mean_N1 = x_NH.mean(-1, /*keepdim=*/true);
    const at::Tensor centered_NH = x_NH - mean_N1;
    const at::Tensor rstd_N1 = (centered_NH.square().mean(-1, /*keepdim=*/true) + eps).rsqrt();
    mean.Write(moment, mean_N1);
    rstd.Write(moment, rstd_N1);
    y.Write(moment, centered_NH * rstd_N1 * weight.Read(moment) + bias.Read(moment));
  });
}

auto Bind(const op::LayerNormBackward& op, Binder& binder) -> Kernel {
  return MakeKernel([dy = Elements(binder, op.dy), x = Elements(binder, op.x), weight = Elements(binder, op.weight),
                     mean = Elements(binder, op.mean), rstd = Elements(binder, op.rstd), dx = Elements(binder, op.dx),
                     dweight = Elements(binder, op.dweight), dbias = Elements(binder, op.dbias),
                     adds_dx = AddsOnto(binder, op.dx, op.dx_onto),
                     adds_dweight = AddsOnto(binder, op.dweight, op.dweight_onto),
                     adds_dbias = AddsOnto(binder, op.dbias, op.dbias_onto)](const Moment& moment) {
    const at::Tensor dy_NH = dy.ReadRows(moment);
    const at::Tensor rstd_N1 = rstd.Read(moment).reshape({-1, 1});
    const at::Tensor normal_NH = (x.ReadRows(moment) - mean.Read(moment).reshape({-1, 1})) * rstd_N1;
    const at::Tensor g_NH = dy_NH * weight.Read(moment);
    const at::Tensor g_mean_N1 = g_NH.mean(-1, /*keepdim=*/true);
    const at::Tensor product_mean_N1 = (g_NH * normal_NH).mean(-1, /*keepdim=*/true);
    dx.Write(moment, rstd_N1 * (g_NH - g_mean_N1 - normal_NH * product_mean_N1), adds_dx);
    dweight.Write(moment, (dy_NH * normal_NH).sum(0), adds_dweight);
    dbias.Write(moment, dy_NH.sum(0), adds_dbias);
  });
}

/// The matrix of all heads of all positions by their width.
static auto HeadsOf(const at::Tensor& x, const at::Tensor& weight_D) -> at::Tensor {
  return x.reshape({-1, weight_D.size(0)});
}

auto Bind(const op::HeadNorm& op, Binder& binder) -> Kernel {
  return MakeKernel([x = Elements(binder, op.x), weight = Elements(binder, op.weight), y = Elements(binder, op.y),
                     rstd = Elements(binder, op.rstd), eps = op.eps](const Moment& moment) {
    const at::Tensor weight_D = weight.Read(moment);
    const at::Tensor x_ND = HeadsOf(x.Read(moment), weight_D);
    const at::Tensor rstd_N1 = (x_ND.square().mean(-1, /*keepdim=*/true) + eps).rsqrt();
    rstd.Write(moment, rstd_N1);
    y.Write(moment, x_ND * rstd_N1 * weight_D);
  });
}

auto Bind(const op::HeadNormBackward& op, Binder& binder) -> Kernel {
  return MakeKernel([dy = Elements(binder, op.dy), x = Elements(binder, op.x), weight = Elements(binder, op.weight),
                     rstd = Elements(binder, op.rstd), dx = Elements(binder, op.dx),
                     dweight = Elements(binder, op.dweight), adds_dx = AddsOnto(binder, op.dx, op.dx_onto),
                     adds_dweight = AddsOnto(binder, op.dweight, op.dweight_onto)](const Moment& moment) {
    const at::Tensor weight_D = weight.Read(moment);
    const at::Tensor dy_ND = HeadsOf(dy.Read(moment), weight_D);
    const at::Tensor rstd_N1 = rstd.Read(moment).reshape({-1, 1});
    const at::Tensor normal_ND = HeadsOf(x.Read(moment), weight_D) * rstd_N1;
    const at::Tensor g_ND = dy_ND * weight_D;
    const at::Tensor mean_N1 = (g_ND * normal_ND).mean(-1, /*keepdim=*/true);
    dx.Write(moment, rstd_N1 * (g_ND - normal_ND * mean_N1), adds_dx);
    dweight.Write(moment, (dy_ND * normal_ND).sum(0), adds_dweight);
  });
}

auto Bind(const op::RopeTable& op, Binder& binder) -> Kernel {
  const auto frequency = ReadReducedFrequency(op.frequency);
  CHECK(frequency.has_value(), "the frequency `{}`", op.frequency);
  const Elements table(binder, op.table);
  return MakeKernel([table, frequencies = RotaryFrequencies(*frequency, table.shape()[2])](const Moment& moment) {
    const at::Tensor angles =
        at::outer(at::arange(table.shape()[0], at::kDouble), at::tensor(frequencies, at::kDouble));
    table.Write(moment, at::stack({angles.cos(), angles.sin()}, 1));
  });
}

auto Bind(const op::RopeTableAt& op, Binder& binder) -> Kernel {
  const auto frequency = ReadReducedFrequency(op.frequency);
  CHECK(frequency.has_value(), "the frequency `{}`", op.frequency);
  const Elements table(binder, op.table);
  return MakeKernel([table, positions = Elements(binder, op.positions),
                     frequencies = RotaryFrequencies(*frequency, table.shape()[3])](const Moment& moment) {
    const at::Tensor angles = at::outer(positions.Read(moment).flatten(), at::tensor(frequencies, at::kDouble));
    table.Write(moment, at::stack({angles.cos(), angles.sin()}, 1));
  });
}

auto Bind(const op::Rope& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.y, op.x);
  return MakeKernel([y = Elements(binder, op.y), table = Elements(binder, op.table), half = op.head_dim / 2,
                     sign = op.inverse ? -1.0 : 1.0](const Moment& moment) {
    const at::Tensor rows = table.Read(moment).reshape({-1, 2, half});
    const at::Tensor x = y.Read(moment).reshape({rows.size(0), -1, 2, half});
    const at::Tensor angles = rows.unsqueeze(1);
    const at::Tensor cosine = angles.select(2, 0);
    const at::Tensor sine = angles.select(2, 1) * sign;
    const at::Tensor a = x.select(2, 0);
    const at::Tensor b = x.select(2, 1);
    y.Write(moment, at::stack({a * cosine - b * sine, b * cosine + a * sine}, 2));
  });
}

auto Bind(const op::RopePair& op, Binder& binder) -> Kernel { return BindInParts(op, binder); }

}  // namespace shardc::reference
