#include "runtime/kernels/reference/tensor.h"

namespace shardc::reference {

auto Bind(const op::Fill& op, Binder& binder) -> Kernel {
  return MakeKernel(
      [out = Elements(binder, op.out), value = op.value](const Moment& moment) { out.InPlace(moment).fill_(value); });
}

auto Bind(const op::Swiglu& op, Binder& binder) -> Kernel {
  return MakeKernel([gate = Elements(binder, op.gate), up = Elements(binder, op.up),
                     y = Elements(binder, op.y)](const Moment& moment) {
    const at::Tensor g = gate.Read(moment);
    y.Write(moment, g * g.sigmoid() * up.Read(moment));
  });
}

auto Bind(const op::SwigluBackward& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.dgate, op.gate);
  CheckSameBytes(binder, op.dup, op.up);
  return MakeKernel([dy = Elements(binder, op.dy), dgate = Elements(binder, op.dgate),
                     dup = Elements(binder, op.dup)](const Moment& moment) {
    const at::Tensor d = dy.Read(moment);
    const at::Tensor g = dgate.Read(moment);
    const at::Tensor u = dup.Read(moment);
    const at::Tensor s = g.sigmoid();
    dgate.Write(moment, d * u * s * (g * (1 - s) + 1));
    dup.Write(moment, d * g * s);
  });
}

auto Bind(const op::SwigluBackwardAgain& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.y, op.dy);
  const Kernel backward =
      Bind(op::SwigluBackward{.dy = op.dy, .gate = op.gate, .up = op.up, .dgate = op.dgate, .dup = op.dup}, binder);
  return MakeKernel([backward, gate = Elements(binder, op.gate), up = Elements(binder, op.up),
                     y = Elements(binder, op.y)](const Moment& moment) -> Status {
    const at::Tensor g = gate.Read(moment);
    const at::Tensor product = g * g.sigmoid() * up.Read(moment);
    RETURN_IF_ERROR(backward(moment));
    y.Write(moment, product);
    return Success{};
  });
}

/// What LibTorch calls the forms of gelu.
static auto FormOfGelu(bool tanh_form) -> std::string_view { return tanh_form ? "tanh" : "none"; }

auto Bind(const op::Gelu& op, Binder& binder) -> Kernel {
  return MakeKernel([x = Elements(binder, op.x), y = Elements(binder, op.y), form = FormOfGelu(op.tanh_form)](
                        const Moment& moment) { y.Write(moment, at::gelu(x.Read(moment), form)); });
}

auto Bind(const op::GeluBackward& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.dx, op.x);
  return MakeKernel([dy = Elements(binder, op.dy), dx = Elements(binder, op.dx),
                     form = FormOfGelu(op.tanh_form)](const Moment& moment) {
    dx.Write(moment, at::gelu_backward(dy.Read(moment), dx.Read(moment), form));
  });
}

auto Bind(const op::Add& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.y, op.b);
  return MakeKernel([a = Elements(binder, op.a), y = Elements(binder, op.y)](const Moment& moment) {
    y.Write(moment, a.Read(moment), /*adds=*/true);
  });
}

auto Bind(const op::Scale& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.y, op.x);
  return MakeKernel([y = Elements(binder, op.y), factor = op.factor](const Moment& moment) {
    y.Write(moment, y.Read(moment) * factor);
  });
}

auto Bind(const op::ResidualAdd& op, Binder& binder) -> Kernel {
  return MakeKernel([x = Elements(binder, op.x), branch = Elements(binder, op.branch), y = Elements(binder, op.y)](
                        const Moment& moment) { y.Write(moment, x.Read(moment) + branch.Read(moment)); });
}

auto Bind(const op::Cast& op, Binder& binder) -> Kernel {
  return MakeKernel([x = Elements(binder, op.x), y = Elements(binder, op.y)](const Moment& moment) {
    y.InPlace(moment).copy_(x.InPlace(moment));
  });
}

auto Bind(const op::BiasAdd& op, Binder& binder) -> Kernel {
  CheckSameBytes(binder, op.y, op.x);
  return MakeKernel([bias = Elements(binder, op.bias), y = Elements(binder, op.y)](const Moment& moment) {
    y.Write(moment, y.ReadRows(moment) + bias.Read(moment));
  });
}

auto Bind(const op::BiasAddBackward& op, Binder& binder) -> Kernel {
  return MakeKernel([dy = Elements(binder, op.dy), dbias = Elements(binder, op.dbias),
                     adds = AddsOnto(binder, op.dbias, op.dbias_onto)](const Moment& moment) {
    dbias.Write(moment, dy.ReadRows(moment).sum(0), adds);
  });
}

}  // namespace shardc::reference
