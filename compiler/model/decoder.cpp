#include "compiler/model/decoder.h"

#include "compiler/keys/adapters.h"
#include "compiler/keys/head_parameter.h"

namespace shardc {

constexpr std::string_view EmbeddingName = "model.embed_tokens.weight";
constexpr std::string_view LastNorm = "model.norm";
constexpr std::string_view OwnHeadName = "lm_head.weight";

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

auto BlockSpecs(const ModelSizes& sizes, SpecsAfterProjection after_projection) -> ParameterSpecs {
  using enum ParameterKind;
  const int64_t q_width = sizes.heads * sizes.head_dim;
  const int64_t kv_width = sizes.kv_heads * sizes.head_dim;
  ParameterSpecs specs{NormSpec("input_layernorm", sizes.hidden)};
  const std::pair<std::string_view, int64_t> projections[] = {
      {"q_proj", q_width}, {"k_proj", kv_width}, {"v_proj", kv_width}};
  for (const auto& [projection, width] : projections) {
    specs.push_back(ProjectionSpec("self_attn", projection, AttentionIn, width, sizes.hidden));
    const ParameterSpecs after = after_projection(sizes, projection, width);
    specs.insert(specs.end(), after.begin(), after.end());
  }
  specs.push_back(ProjectionSpec("self_attn", "o_proj", AttentionOut, sizes.hidden, q_width));
  specs.push_back(NormSpec("post_attention_layernorm", sizes.hidden));
  specs.push_back(ProjectionSpec("mlp", "gate_proj", Gate, sizes.ffn, sizes.hidden));
  specs.push_back(ProjectionSpec("mlp", "up_proj", Up, sizes.ffn, sizes.hidden));
  specs.push_back(ProjectionSpec("mlp", "down_proj", Down, sizes.hidden, sizes.ffn));
  return specs;
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
    specs.push_back(VocabularySpec(HeadParameter(head.name), Head, head.vocab, sizes.hidden, Side::After));
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
  const std::string weight = fmt::format("{}{}.weight", prefix_, name);
  const auto adapter = AdapterOf(m.adapter, weight);
  if (!adapter) {
    return f.Linear(x, Weight(name), std::string(name));
  }
  const std::string down = DownOf(m.adapter, weight);
  const std::string_view end = ".weight";
  return f.Adapt(x, f.Linear(x, Weight(name), fmt::format("{}.base", name)),
                 {.down = f.Parameter(down),
                  .up = f.Parameter(AdapterParameter(weight, UpSuffix)),
                  .scale = adapter->scale,
                  .narrow = down.substr(prefix_.size(), down.size() - prefix_.size() - end.size())},
                 std::string(name));
}

auto BlockBuilder::Bias(ValueId x, std::string_view name) const -> ValueId {
  return f.BiasAdd(x, f.Parameter(fmt::format("{}{}.bias", prefix_, name)));
}

auto BlockBuilder::HeadNorm(ValueId x, std::string_view name) const -> ValueId {
  return f.HeadNorm(x, Weight(name), m.norm_eps, std::string(name));
}

auto BlockBuilder::Swiglu(ValueId x) const -> ValueId {
  const ValueId gate = Linear(x, "mlp.gate_proj");
  const ValueId up = Linear(x, "mlp.up_proj");
  return Linear(f.Swiglu(gate, up), "mlp.down_proj");
}

auto RotaryAttention(const BlockBuilder& block, ValueId x, OpsAfterProjection after_projection) -> ValueId {
  const int64_t head_dim = block.m.head_dim;
  const auto projected = [&](std::string_view projection) {
    return after_projection(block, block.Linear(x, fmt::format("self_attn.{}", projection)), projection);
  };
  const ValueId q = block.f.Rope(projected("q_proj"), head_dim);
  const ValueId k = block.f.Rope(projected("k_proj"), head_dim);
  return block.f.Attention(q, k, projected("v_proj"), head_dim);
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
    output.push_back(f.Head(x, f.Parameter(HeadParameter(head.name))));
  }
  return output;
}

}  // namespace shardc
