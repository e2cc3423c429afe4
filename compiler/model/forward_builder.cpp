#include "compiler/model/forward_builder.h"

#include <array>

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

auto ForwardBuilder::Embedding(ValueId tokens, ValueId weight) -> ValueId {
  op::Embedding body{.tokens = tokens, .weight = weight, .y = {}};
  ValueType type = Shape(body, emitter_->plan())[0];
  type.dtype = residual_;
  body.y = NewActivation(type, "embedding");
  emitter_->Emit(body);
  return body.y;
}

auto ForwardBuilder::RmsNorm(ValueId x, ValueId weight, double eps, const std::string& name) -> ValueId {
  op::RmsNorm body{.x = x, .weight = weight, .y = {}, .rstd = {}, .eps = eps};
  const auto types = Shape(body, emitter_->plan());
  body.y = NewActivation(types[0], name);
  body.rstd = NewActivation(types[1], name + ".rstd");
  emitter_->Emit(body);
  return body.y;
}

auto ForwardBuilder::Linear(ValueId x, ValueId weight, const std::string& name) -> ValueId {
  op::Matmul body{.a = x, .b = weight, .out = {}, .out_onto = {}, .transpose_a = false, .transpose_b = true};
  body.out = NewActivation(Shape(body, emitter_->plan())[0], name);
  emitter_->Emit(body);
  return body.out;
}

auto ForwardBuilder::Rope(ValueId x, int64_t head_dim) -> ValueId {
  op::Rope body{.x = x, .table = rope_table_, .y = {}, .head_dim = head_dim, .inverse = false};
  body.y = emitter_->Alias(x, Shape(body, emitter_->plan())[0], emitter_->plan().values[x].name + ".rope");
  emitter_->Emit(body);
  return body.y;
}

auto ForwardBuilder::Attention(ValueId q, ValueId k, ValueId v, int64_t head_dim) -> ValueId {
  op::Attention body{.q = q, .k = k, .v = v, .y = {}, .lse = {}, .scratch = {}, .head_dim = head_dim};
  const auto types = Shape(body, emitter_->plan());
  body.y = NewActivation(types[0], "attention");
  body.lse = NewActivation(types[1], "attention.lse");
  emitter_->Emit(body);
  return body.y;
}

auto ForwardBuilder::Swiglu(ValueId gate, ValueId up) -> ValueId {
  op::Swiglu body{.gate = gate, .up = up, .y = {}};
  body.y = NewActivation(Shape(body, emitter_->plan())[0], "swiglu");
  emitter_->Emit(body);
  return body.y;
}

auto ForwardBuilder::AddResidual(ValueId x, ValueId branch) -> ValueId {
  const Plan& plan = emitter_->plan();
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

auto FindModelFamily(std::string_view name) -> const ModelFamily* {
  static constexpr std::array families{&LlamaFamily};
  for (const ModelFamily* family : families) {
    if (family->name == name) {
      return family;
    }
  }
  return nullptr;
}

}  // namespace shardc
