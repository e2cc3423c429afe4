#include "compiler/model/forward_builder.h"

namespace shardc {

auto ForwardBuilder::EnterLayer(int64_t layer, std::string prefix) -> void {
  emitter_->set_layer(layer);
  prefix_ = std::move(prefix);
}

auto ForwardBuilder::Parameter(const std::string& name) -> ValueId {
  const auto found = parameters_->find(name);
  CHECK(found != parameters_->end(), "the family did not declare {}", name);
  return found->second;
}

auto ForwardBuilder::NewActivation(const ValueType& type, const std::string& name) -> ValueId {
  return emitter_->New(type, Category::Activations, prefix_ + name);
}

auto ForwardBuilder::InType(ValueId x, DType dtype) -> ValueId {
  if (TypeOf(x) == dtype) {
    return x;
  }
  const auto [cast, fresh] = casts_.try_emplace(x);
  if (fresh) {
    const Value& value = emitter_->plan().values[x];
    cast->second =
        emitter_->New({dtype, value.shape}, Category::Activations, fmt::format("{}.{}", value.name, ToText(dtype)));
    emitter_->Emit(op::Cast{.x = x, .y = cast->second});
  }
  return cast->second;
}

auto ForwardBuilder::Enter(ValueId x, ValueId weight) -> ValueId {
  return wide_residual_ ? x : InType(x, TypeOf(weight));
}

auto ForwardBuilder::Embedding(ValueId tokens, ValueId weight) -> ValueId {
  op::Embedding body{.tokens = tokens, .weight = weight, .y = {}};
  ValueType type = Shape(body, emitter_->plan())[0];
  type.dtype = wide_residual_ ? DType::F32 : type.dtype;
  body.y = NewActivation(type, "embedding");
  emitter_->Emit(body);
  return body.y;
}

auto ForwardBuilder::RmsNorm(ValueId x, ValueId weight, double eps, const std::string& name) -> ValueId {
  // What it reads is of weight's type or wider.
  op::RmsNorm body{
      .x = TypeOf(weight) == DType::F32 ? InType(x, DType::F32) : x, .weight = weight, .y = {}, .rstd = {}, .eps = eps};
  const auto types = Shape(body, emitter_->plan());
  body.y = NewActivation(types[0], name);
  body.rstd = NewActivation(types[1], name + ".rstd");
  emitter_->Emit(body);
  return body.y;
}

auto ForwardBuilder::Linear(ValueId x, ValueId weight, const std::string& name) -> ValueId {
  op::Matmul body{.a = InType(x, TypeOf(weight)),
                  .b = weight,
                  .out = {},
                  .out_onto = {},
                  .transpose_a = false,
                  .transpose_b = true};
  body.out = NewActivation(Shape(body, emitter_->plan())[0], name);
  emitter_->Emit(body);
  return body.out;
}

auto ForwardBuilder::Narrow(ValueId x, const AdapterOperands& adapter) -> ValueId {
  const auto [scaled, fresh] = narrow_.try_emplace(adapter.down);
  if (fresh) {
    const ValueId down = Linear(x, adapter.down, adapter.narrow);
    const Value narrow = emitter_->plan().values[down];
    scaled->second = emitter_->Alias(down, {narrow.dtype, narrow.shape}, narrow.name + ".scaled");
    emitter_->Emit(op::Scale{.x = down, .y = scaled->second, .factor = adapter.scale});
  }
  return scaled->second;
}

auto ForwardBuilder::Adapt(ValueId x, ValueId y, const AdapterOperands& adapter, const std::string& name) -> ValueId {
  const ValueId scaled = Narrow(x, adapter);
  const Value wide = emitter_->plan().values[y];
  const ValueId sum = emitter_->Alias(y, {wide.dtype, wide.shape}, prefix_ + name);
  emitter_->Emit(op::Matmul{.a = scaled,
                            .b = adapter.up,
                            .out = sum,
                            .out_onto = y,
                            .scratch = {},
                            .transpose_a = false,
                            .transpose_b = true});
  return sum;
}

auto ForwardBuilder::BiasAdd(ValueId x, ValueId bias) -> ValueId {
  op::BiasAdd body{.x = InType(x, TypeOf(bias)), .bias = bias, .y = {}};
  body.y = emitter_->Alias(body.x, Shape(body, emitter_->plan())[0], emitter_->plan().values[x].name + ".biased");
  emitter_->Emit(body);
  return body.y;
}

auto ForwardBuilder::HeadNorm(ValueId x, ValueId weight, double eps, const std::string& name) -> ValueId {
  op::HeadNorm body{.x = InType(x, TypeOf(weight)), .weight = weight, .y = {}, .rstd = {}, .eps = eps};
  const auto types = Shape(body, emitter_->plan());
  body.y = NewActivation(types[0], name);
  body.rstd = NewActivation(types[1], name + ".rstd");
  emitter_->Emit(body);
  return body.y;
}

auto ForwardBuilder::Rope(ValueId x, int64_t head_dim) -> ValueId {
  CHECK(places_.rope_table.valid(), "the family lacks the keys of the rotary table");
  op::Rope body{.x = x, .table = places_.rope_table, .y = {}, .head_dim = head_dim, .inverse = false};
  body.y = emitter_->Alias(x, Shape(body, emitter_->plan())[0], emitter_->plan().values[x].name + ".rope");
  emitter_->Emit(body);
  return body.y;
}

auto ForwardBuilder::Attention(ValueId q, ValueId k, ValueId v, int64_t head_dim) -> ValueId {
  const DType dtype = TypeOf(q);
  op::Attention body{.q = q,
                     .k = InType(k, dtype),
                     .v = InType(v, dtype),
                     .starts = places_.document_starts,
                     .y = {},
                     .lse = {},
                     .scratch = {},
                     .head_dim = head_dim};
  const auto types = Shape(body, emitter_->plan());
  body.y = NewActivation(types[0], "attention");
  body.lse = NewActivation(types[1], "attention.lse");
  emitter_->Emit(body);
  return body.y;
}

auto ForwardBuilder::Swiglu(ValueId gate, ValueId up) -> ValueId {
  op::Swiglu body{.gate = gate, .up = InType(up, TypeOf(gate)), .y = {}};
  body.y = NewActivation(Shape(body, emitter_->plan())[0], "swiglu");
  emitter_->Emit(body);
  return body.y;
}

auto ForwardBuilder::AddResidual(ValueId x, ValueId branch) -> ValueId {
  const Plan& plan = emitter_->plan();
  if (TypeOf(x) != DType::F32) {
    branch = InType(branch, TypeOf(x));
  }
  const std::string name = plan.values[branch].name + ".sum";
  if (plan.values[x].dtype != plan.values[branch].dtype) {
    op::ResidualAdd body{.x = x, .branch = branch, .y = {}};
    body.y = emitter_->New(Shape(body, plan)[0], Category::Activations, name);
    emitter_->Emit(body);
    return body.y;
  }
  op::Add body{.a = x, .b = branch, .y = {}};
  body.y = emitter_->Alias(branch, Shape(body, plan)[0], name);
  emitter_->Emit(body);
  return body.y;
}

}  // namespace shardc
