// The parts that decoders share: a stack of pre-norm blocks between an embedding and heads, and what blocks are made
// of. A family puts its blocks together from these and from parts of its own.
#pragma once

#include <string>
#include <string_view>

#include "compiler/model/model_family.h"

namespace shardc {

// Parameters.

/// The factors of a norm, NAME.weight.
auto NormSpec(std::string_view name, int64_t width) -> ParameterSpec;
/// MODULE.PROJECTION.weight [outputs, inputs]: cut along its outputs, or along its inputs if the projection leads back
/// into the residual stream.
auto ProjectionSpec(std::string_view module, std::string_view projection, ParameterKind kind, int64_t outputs,
                    int64_t inputs) -> ParameterSpec;
/// MODULE.PROJECTION.bias [outputs], cut as the results that it is added to, which are those of a projection that is
/// cut along its outputs. `inputs`: those of the projection.
auto BiasSpec(std::string_view module, std::string_view projection, int64_t outputs, int64_t inputs) -> ParameterSpec;
/// The parameters that a family has after the matrix of `projection`, which is one of q_proj, k_proj and v_proj and has
/// so many outputs.
using SpecsAfterProjection = auto(*)(const ModelSizes& sizes, std::string_view projection, int64_t outputs)
                                 -> ParameterSpecs;
/// A block: a norm, the projections of attention, a norm, the gate, up and down projections of a SwiGLU layer.
auto BlockSpecs(const ModelSizes& sizes, SpecsAfterProjection after_projection) -> ParameterSpecs;
template <SpecsAfterProjection after_projection>
auto BlockWith(const ModelSizes& sizes) -> ParameterSpecs {
  return BlockSpecs(sizes, after_projection);
}
/// For a family that has none.
inline auto NoSpecs(const ModelSizes&, std::string_view, int64_t) -> ParameterSpecs { return {}; }
/// The embedding, the last norm, the head of a model that is not tied, and further heads.
auto DecoderSpecs(const ModelSizes& sizes) -> ParameterSpecs;

// The forward.

/// The ops of one block, whose parameters have names that begin with its prefix.
class BlockBuilder {
 public:
  BlockBuilder(ForwardBuilder* builder, const ModelSizes* sizes, std::string prefix)
      : f(*builder), m(*sizes), prefix_(std::move(prefix)) {}

  ForwardBuilder& f;
  const ModelSizes& m;

  /// The parameter NAME.weight.
  auto Weight(std::string_view name) const -> ValueId;
  auto Norm(ValueId x, std::string_view name) const -> ValueId;
  /// Emits the product with the projection, and its adapter if it has one.
  auto Linear(ValueId x, std::string_view name) const -> ValueId;
  /// x with the bias NAME.bias added.
  auto Bias(ValueId x, std::string_view name) const -> ValueId;
  /// Each head of x by itself.
  auto HeadNorm(ValueId x, std::string_view name) const -> ValueId;
  /// down(silu(gate(x)) * up(x)).
  auto Swiglu(ValueId x) const -> ValueId;

 private:
  std::string prefix_;
};

/// What a family makes of queries, keys or values, as `projection` (q_proj, k_proj or v_proj) gave them.
using OpsAfterProjection = auto(*)(const BlockBuilder& block, ValueId projected, std::string_view projection)
                               -> ValueId;
/// Attention of x, with queries and keys rotated by their positions.
auto RotaryAttention(const BlockBuilder& block, ValueId x, OpsAfterProjection after_projection) -> ValueId;
/// For a family that takes them as they are.
inline auto NoOps(const BlockBuilder&, ValueId projected, std::string_view) -> ValueId { return projected; }

/// x with attention, and with a SwiGLU layer, each of the norm of what it is added to. `attention` makes of x what
/// self_attn.o_proj takes.
using AttentionOfBlock = auto(*)(const BlockBuilder& block, ValueId x) -> ValueId;

/// Embedding, blocks, the last norm and the heads.
auto DecoderForward(ForwardBuilder& f, const ModelSizes& sizes, AttentionOfBlock attention) -> ModelOutput;

/// That of a family whose blocks have rotary attention.
template <OpsAfterProjection after_projection>
auto RotaryForward(ForwardBuilder& f, const ModelSizes& sizes) -> ModelOutput {
  return DecoderForward(
      f, sizes, [](const BlockBuilder& block, ValueId x) { return RotaryAttention(block, x, after_projection); });
}

}  // namespace shardc
