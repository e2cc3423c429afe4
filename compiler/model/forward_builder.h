// What a model family writes its forward with: one call an op, results typed by the op's Shape. A family reads as the
// model's forward and knows nothing of meshes, units or gradients.
#pragma once

#include <string>
#include <unordered_map>

#include "compiler/keys/model_sizes.h"
#include "compiler/ops/emitter.h"

namespace shardc {

/// Logits are hidden [S, B, H] by a head's matrix [V, H] transposed.
struct HeadOperands {
  ValueId hidden;
  ValueId matrix;
};
/// What a model's forward ends with: the model's own head, then those of ModelSizes::loss_heads.
using ModelOutput = std::vector<HeadOperands>;

/// The matrices A [R, K] and B [N, R] of an adapter. Adapters of one x may share A.
struct AdapterOperands {
  ValueId down;
  ValueId up;
  double scale = 0;
  /// "self_attn.q_proj.lora_A", the name of x A^T.
  std::string narrow;
};

/// Operands that say where tokens are in their documents.
struct PlaceOperands {
  /// Invalid for a family without the keys of one.
  ValueId rope_table;
  /// Invalid where a sequence is one document.
  ValueId document_starts;
};

class ForwardBuilder {
 public:
  /// `parameters`: the full value of each declared parameter, by name, in the type that its unit computes in.
  /// `wide_residual`: the residual stream is f32 whatever units compute in.
  ForwardBuilder(Emitter* emitter, const std::unordered_map<std::string, ValueId>* parameters, ValueId tokens,
                 const PlaceOperands& places, bool wide_residual)
      : emitter_(emitter), parameters_(parameters), tokens_(tokens), places_(places), wide_residual_(wide_residual) {}

  auto tokens() const -> ValueId { return tokens_; }
  /// Ops from here on belong to block `layer`, or to none for -1; its name prefixes theirs.
  auto EnterLayer(int64_t layer, std::string prefix) -> void;
  /// The whole, unsharded matrix of a declared parameter. Requires: the family's parameters name it.
  auto Parameter(const std::string& name) -> ValueId;

  /// The residual stream x on its way into a block that adds what `weight` [H, K] makes: in that type.
  auto Enter(ValueId x, ValueId weight) -> ValueId;
  /// Rows in the residual stream's type.
  auto Embedding(ValueId tokens, ValueId weight) -> ValueId;
  auto RmsNorm(ValueId x, ValueId weight, double eps, const std::string& name) -> ValueId;
  /// x [S, B, K] by weight [N, K], transposed: [S, B, N], computed in weight's type.
  auto Linear(ValueId x, ValueId weight, const std::string& name) -> ValueId;
  /// Adds scale (x A^T) B^T to y [S, B, N], over the bytes of y; x [S, B, K].
  auto Adapt(ValueId x, ValueId y, const AdapterOperands& adapter, const std::string& name) -> ValueId;
  /// x [S, B, N] with `bias` [N] added to each row, over the bytes of x, if it is of bias's type.
  auto BiasAdd(ValueId x, ValueId bias) -> ValueId;
  /// Each head of x [S, B, A*D] by itself, with `weight` [D].
  auto HeadNorm(ValueId x, ValueId weight, double eps, const std::string& name) -> ValueId;
  auto Rope(ValueId x, int64_t head_dim) -> ValueId;
  auto Attention(ValueId q, ValueId k, ValueId v, int64_t head_dim) -> ValueId;
  auto Swiglu(ValueId gate, ValueId up) -> ValueId;
  /// The residual stream x with a branch added; over the bytes of the branch, if it is of x's type.
  auto AddResidual(ValueId x, ValueId branch) -> ValueId;
  /// The last hidden state as a head takes it.
  auto Head(ValueId x, ValueId matrix) -> HeadOperands { return {InType(x, TypeOf(matrix)), matrix}; }

 private:
  /// x, or a cast of it that is made once.
  auto InType(ValueId x, DType dtype) -> ValueId;
  auto TypeOf(ValueId value) const -> DType { return emitter_->plan().values[value].dtype; }
  /// Returns scale x A^T, which is made once for all adapters that share A.
  auto Narrow(ValueId x, const AdapterOperands& adapter) -> ValueId;
  auto NewActivation(const ValueType& type, const std::string& name) -> ValueId;

  Emitter* emitter_;
  const std::unordered_map<std::string, ValueId>* parameters_;
  ValueId tokens_;
  PlaceOperands places_;
  bool wide_residual_;
  std::string prefix_;
  /// By what was cast: there are two types, so one cast of each.
  std::unordered_map<ValueId, ValueId> casts_;
  /// By A.
  std::unordered_map<ValueId, ValueId> narrow_;
};

}  // namespace shardc
