#include "compiler/model/decoder.h"

namespace shardc {

constexpr std::string_view EmbeddingName = "model.embed_tokens.weight";
constexpr std::string_view LastNorm = "model.norm";
constexpr std::string_view OwnHeadName = "lm_head.weight";

static auto HeadName(const LossHeadSize& head) -> std::string { return fmt::format("heads.{}.weight", head.name); }

static auto VocabularySpec(std::string_view name, ParameterKind kind, int64_t vocab, int64_t hidden, Side side)
    -> ParameterSpec {
  return {.name = std::string(name),
          .kind = kind,
          .shape = {vocab, hidden},
          .fan_in = hidden,
          .placement = CutAlong(0),
          .side = side};
}

auto NormSpec(std::string_view name, int64_t width) -> ParameterSpec {
  return {.name = fmt::format("{}.weight", name), .kind = ParameterKind::Norm, .shape = {width}, .fan_in = width};
}

auto ProjectionSpec(std::string_view module, std::string_view projection, ParameterKind kind, int64_t outputs,
                    int64_t inputs) -> ParameterSpec {
  const bool leads_back = kind == ParameterKind::AttentionOut || kind == ParameterKind::Down;
  return {.name = fmt::format("{}.{}.weight", module, projection),
          .kind = kind,
          .shape = {outputs, inputs},
          .fan_in = inputs,
          .placement = CutAlong(leads_back ? 1 : 0),
          .projection = projection};
}

auto BiasSpec(std::string_view module, std::string_view projection, int64_t outputs, int64_t inputs) -> ParameterSpec {
  return {.name = fmt::format("{}.{}.bias", module, projection),
          .kind = ParameterKind::Bias,
          .shape = {outputs},
          .fan_in = inputs,
          .placement = CutAlong(0)};
}

auto SwigluSpecs(const ModelSizes& sizes) -> ParameterSpecs {
  using enum ParameterKind;
  return {ProjectionSpec("mlp", "gate_proj", Gate, sizes.ffn, sizes.hidden),
          ProjectionSpec("mlp", "up_proj", Up, sizes.ffn, sizes.hidden),
          ProjectionSpec("mlp", "down_proj", Down, sizes.hidden, sizes.ffn)};
}

auto DecoderSpecs(const ModelSizes& sizes) -> ParameterSpecs {
  using enum ParameterKind;
  ParameterSpecs specs{
      VocabularySpec(EmbeddingName, Embedding, sizes.vocab, sizes.hidden, sizes.tied ? Side::Both : Side::Before),
      NormSpec(LastNorm, sizes.hidden)};
  specs.back().side = Side::After;
  if (!sizes.tied) {
    specs.push_back(VocabularySpec(OwnHeadName, Head, sizes.vocab, sizes.hidden, Side::After));
  }
  for (const LossHeadSize& head : sizes.loss_heads) {
    specs.push_back(VocabularySpec(HeadName(head), Head, head.vocab, sizes.hidden, Side::After));
  }
  return specs;
}

auto BlockBuilder::Weight(std::string_view name) const -> ValueId {
  return f.Parameter(fmt::format("{}{}.weight", prefix_, name));
}

auto BlockBuilder::Norm(ValueId x, std::string_view name) const -> ValueId {
  return f.RmsNorm(x, Weight(name), m.norm_eps, std::string(name));
}

auto BlockBuilder::Linear(ValueId x, std::string_view name) const -> ValueId {
  return f.Linear(x, Weight(name), std::string(name));
}

auto BlockBuilder::LinearWithBias(ValueId x, std::string_view name) const -> ValueId {
  return f.BiasAdd(Linear(x, name), f.Parameter(fmt::format("{}{}.bias", prefix_, name)));
}

auto BlockBuilder::HeadNorm(ValueId x, std::string_view name) const -> ValueId {
  return f.HeadNorm(x, Weight(name), m.norm_eps, std::string(name));
}

auto BlockBuilder::Swiglu(ValueId x) const -> ValueId {
  const ValueId gate = Linear(x, "mlp.gate_proj");
  const ValueId up = Linear(x, "mlp.up_proj");
  return Linear(f.Swiglu(gate, up), "mlp.down_proj");
}

static auto Block(const BlockBuilder& block, ValueId x, AttentionOfBlock attention) -> ValueId {
  ForwardBuilder& f = block.f;
  x = f.Enter(x, block.Weight("self_attn.o_proj"));
  const ValueId attended = attention(block, block.Norm(x, "input_layernorm"));
  const ValueId h = f.AddResidual(x, block.Linear(attended, "self_attn.o_proj"));
  return f.AddResidual(h, block.Swiglu(block.Norm(h, "post_attention_layernorm")));
}

auto DecoderForward(ForwardBuilder& f, const ModelSizes& sizes, AttentionOfBlock attention) -> ModelOutput {
  f.EnterLayer(-1, "model.");
  const ValueId embedding = f.Parameter(std::string(EmbeddingName));
  ValueId x = f.Embedding(f.tokens(), embedding);
  for (int64_t layer = 0; layer < sizes.layers; ++layer) {
    f.EnterLayer(layer, BlockPrefix(layer));
    x = Block({&f, &sizes, BlockPrefix(layer)}, x, attention);
  }
  f.EnterLayer(-1, "model.");
  x = f.RmsNorm(x, f.Parameter(fmt::format("{}.weight", LastNorm)), sizes.norm_eps, "norm");
  ModelOutput output{f.Head(x, sizes.tied ? embedding : f.Parameter(std::string(OwnHeadName)))};
  for (const LossHeadSize& head : sizes.loss_heads) {
    output.push_back(f.Head(x, f.Parameter(HeadName(head))));
  }
  return output;
}

}  // namespace shardc
