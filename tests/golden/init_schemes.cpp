// The schemes of init rules: standard deviations by formulas of their own, for every layer; figures of published
// models; and that each scheme says one thing of each parameter.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "compiler/expr/init_schemes.h"
#include "compiler/expr/moments.h"
#include "compiler/passes/init_values.h"
#include "tests/golden/golden_case.h"

namespace shardc {
namespace {

/// The distribution of each parameter, by name.
auto Initialised(std::string_view scheme, const ModelSizes& sizes, double init_std, Recipe recipe = {},
                 const ModelFamily& family = LlamaFamily) -> std::map<std::string, Distribution> {
  recipe.init.scheme = {OneOf<InitSchemeName>(std::string(scheme)), {}, true};
  recipe.init.std = {init_std, {}, true};
  SourceSet sources;
  Diagnostics diags(&sources);
  PassContext context{&recipe, &diags};
  const ParameterSpecs specs = ParametersOf(family, sizes);
  const std::vector<InitValue> values = ChooseInitValues(specs, sizes, context).of_parameters;
  CHECK(!diags.has_errors(), "{}", RenderText(diags, {}));
  std::map<std::string, Distribution> result;
  for (size_t s = 0; s < specs.size(); ++s) {
    result[specs[s].name] = DistributionOf(ParseExpr(values[s].text, ExprKind::Rule).value).value();
  }
  return result;
}

auto Llama(int64_t layers, int64_t hidden, int64_t ffn, int64_t vocab, bool tied = false) -> ModelSizes {
  return {.family = "llama",
          .layers = layers,
          .hidden = hidden,
          .heads = 8,
          .kv_heads = 4,
          .head_dim = hidden / 8,
          .ffn = ffn,
          .vocab = vocab,
          .seq = 128,
          .rope_theta = 1e4,
          .norm_eps = 1e-5,
          .tied = tied};
}

constexpr double S = 0.03;
constexpr double D = 64;
constexpr double H = 160;
constexpr double V = 500;
constexpr double L = 5;

/// Of its parent, where it is cut, as schemes are quoted.
struct Sigma {
  double std;
  /// Bounds are this many times std; infinite: absolute bounds of 2; 0: not cut.
  double cut = 0;
};

/// What a scheme does, of block l.
struct SchemeCase {
  std::string_view scheme;
  Sigma embedding;
  std::function<Sigma(double l)> qkv;
  std::function<Sigma(double l)> out;
  std::function<Sigma(double l)> gate;
  std::function<Sigma(double l)> up;
  std::function<Sigma(double l)> down;
  Sigma head;
};

constexpr double Absolute = HUGE_VAL;

auto Always(double std, double cut = 0) -> std::function<Sigma(double)> {
  return [=](double) { return Sigma{std, cut}; };
}
/// std / sqrt(factor * (l + 1)).
auto ByDepth(double std, double factor, double cut) -> std::function<Sigma(double)> {
  return [=](double l) { return Sigma{std / std::sqrt(factor * (l + 1)), cut}; };
}

const double Residual = S / std::sqrt(2 * L);
const double Width = 1 / std::sqrt(D);
const double Narrow = 1 / std::sqrt(H);

const SchemeCase SchemeCases[] = {
    {"normal", {S}, Always(S), Always(S), Always(S), Always(S), Always(S), {S}},
    {"gpt2", {S}, Always(S), Always(Residual), Always(S), Always(S), Always(Residual), {S}},
    {"fms-llama",
     {Width, Absolute},
     Always(S, Absolute),
     Always(S, Absolute),
     Always(S, Absolute),
     Always(S, Absolute),
     Always(S, Absolute),
     {std::pow(D * V, -0.25)}},
    {"torchtitan-llama",
     {1},
     Always(S, Absolute),
     ByDepth(S, 2, Absolute),
     Always(S, Absolute),
     ByDepth(S, 2, Absolute),
     ByDepth(S, 2, Absolute),
     {Width, 3}},
    {"olmo-mitchell",
     {Width, 3},
     Always(Width, 3),
     ByDepth(Width, 2, 3),
     Always(Width, 3),
     Always(Width, 3),
     ByDepth(Narrow, 2, 3),
     {Width, 3}},
    {"olmo-full-megatron",
     {S, 3},
     Always(S, 3),
     Always(Residual, 3),
     Always(S, 3),
     Always(S, 3),
     Always(Residual, 3),
     {Width, 3}},
    {"olmo-kaiming",
     {std::sqrt(2 / D)},
     Always(std::sqrt(2 / D)),
     Always(std::sqrt(2 / D)),
     Always(std::sqrt(2 / D)),
     Always(std::sqrt(2 / D)),
     Always(std::sqrt(2 / H)),
     {std::sqrt(2 / D)}},
    {"core-normal", {S, 3}, Always(S, 3), Always(S, 3), Always(S, 3), Always(S, 3), Always(S, 3), {S, 3}},
    {"core-llama",
     {1},
     Always(S, 3),
     Always(Residual, 3),
     Always(S, 3),
     Always(Residual, 3),
     Always(Residual, 3),
     {Width, 3}},
    {"core-llama-depth",
     {1},
     Always(S, 3),
     ByDepth(S, 2, 3),
     Always(S, 3),
     ByDepth(S, 2, 3),
     ByDepth(S, 2, 3),
     {Width, 3}},
    {"core-fan-in",
     {1},
     Always(Width, 3),
     Always(Width, 3),
     Always(Width, 3),
     Always(Width, 3),
     Always(Narrow, 3),
     {Width, 3}},
    {"mup", {1}, Always(Width), Always(Width), Always(Width), Always(Width), Always(Narrow), {1 / D}},
};

auto ExpectSigma(const std::map<std::string, Distribution>& values, const std::string& name, const Sigma& sigma)
    -> void {
  const Distribution& value = values.at(name);
  ASSERT_EQ(value.kind, sigma.cut == 0 ? DistributionKind::Normal : DistributionKind::TruncNormal) << name;
  EXPECT_EQ(value.arguments[0], 0) << name;
  EXPECT_NEAR(value.arguments[1] / sigma.std, 1, 1e-15) << name;
  if (sigma.cut != 0) {
    const double bound = sigma.cut == Absolute ? 2 : sigma.cut * sigma.std;
    EXPECT_NEAR(value.arguments[2] / -bound, 1, 1e-15) << name;
    EXPECT_EQ(value.arguments[3], -value.arguments[2]) << name;
  }
}

TEST(InitSchemes, SigmaOfEveryLayer) {
  for (const SchemeCase& row : SchemeCases) {
    SCOPED_TRACE(row.scheme);
    const auto values = Initialised(row.scheme, Llama(5, 64, 160, 500), S);
    ExpectSigma(values, "model.embed_tokens.weight", row.embedding);
    ExpectSigma(values, "lm_head.weight", row.head);
    for (int l = 0; l < static_cast<int>(L); ++l) {
      const std::string block = fmt::format("model.layers.{}.", l);
      for (const char* name : {"q", "k", "v"}) {
        ExpectSigma(values, fmt::format("{}self_attn.{}_proj.weight", block, name), row.qkv(l));
      }
      ExpectSigma(values, block + "self_attn.o_proj.weight", row.out(l));
      ExpectSigma(values, block + "mlp.gate_proj.weight", row.gate(l));
      ExpectSigma(values, block + "mlp.up_proj.weight", row.up(l));
      ExpectSigma(values, block + "mlp.down_proj.weight", row.down(l));
    }
  }
}

TEST(InitSchemes, EveryOneHasCases) {
  for (const InitScheme& scheme : InitSchemes()) {
    const bool is_uniform = scheme.name == "torch-default";
    EXPECT_NE(is_uniform, std::any_of(std::begin(SchemeCases), std::end(SchemeCases),
                                      [&](const SchemeCase& row) { return row.scheme == scheme.name; }))
        << scheme.name;
    EXPECT_FALSE(scheme.doc.empty()) << scheme.name;
  }
}

TEST(InitSchemes, NormsAreOne) {
  for (const InitScheme& scheme : InitSchemes()) {
    for (const auto& [name, value] : Initialised(scheme.name, Llama(2, 64, 160, 500), S)) {
      if (name.ends_with("norm.weight")) {
        EXPECT_EQ(value, (Distribution{DistributionKind::Constant, {1}})) << scheme.name << ": " << name;
      }
    }
  }
}

// As torch.nn.Linear has it, the bound of a bias is that of its matrix.
TEST(InitSchemes, BiasesAreNothingOrAsLinearLayersHaveThem) {
  for (const InitScheme& scheme : InitSchemes()) {
    int num_biases = 0;
    for (const auto& [name, value] : Initialised(scheme.name, Llama(2, 64, 160, 500), S, {}, Qwen2Family)) {
      if (name.ends_with(".bias")) {
        ++num_biases;
        const Distribution expected = scheme.name == "torch-default"
                                          ? Distribution{DistributionKind::Uniform, {-Width, Width}}
                                          : Distribution{DistributionKind::Constant, {0}};
        EXPECT_EQ(value, expected) << scheme.name << ": " << name;
      }
    }
    EXPECT_EQ(num_biases, 6) << scheme.name;
  }
}

// So each parameter of each family has one, whatever it is called.
TEST(InitSchemes, HaveOneRuleForEachKind) {
  for (const InitScheme& scheme : InitSchemes()) {
    std::vector<int> num_rules(CountOf<ParameterKind>());
    for (const InitSchemeRule& rule : scheme.rules) {
      for (const ParameterKind kind : rule.kinds) {
        ++num_rules[static_cast<size_t>(kind)];
      }
    }
    EXPECT_EQ(num_rules, std::vector<int>(CountOf<ParameterKind>(), 1)) << scheme.name;
  }
}

// Tied, and without a single block, too.
TEST(InitSchemes, GiveEachParameterAValue) {
  for (const ModelSizes& sizes : {Llama(2, 64, 160, 500), Llama(2, 64, 160, 500, true), Llama(0, 64, 160, 500)}) {
    for (const InitScheme& scheme : InitSchemes()) {
      EXPECT_EQ(Initialised(scheme.name, sizes, S).size(), ParametersOf(LlamaFamily, sizes).size());
    }
  }
}

auto RuleFor(std::string match, std::string value) -> InitRule {
  InitRule rule;
  rule.match = {std::move(match), {}, true};
  rule.value = {Formula{std::move(value)}, {}, true};
  return rule;
}

// A pattern of the recipe beats what a scheme says of a parameter by its exact name; an exact name beats the pattern.
TEST(InitSchemes, RulesOfTheRecipeComeFirst) {
  Recipe recipe;
  recipe.init.rule.push_back(RuleFor("model.*.weight", "dim(0) / numel"));
  recipe.init.rule.push_back(RuleFor("model.norm.weight", "2 + layers"));
  const auto values = Initialised("fms-llama", Llama(2, 64, 160, 500), S, recipe);
  for (const auto& [name, value] : values) {
    const double expected = name == "model.norm.weight"              ? 4
                            : name.ends_with("norm.weight")          ? 1
                            : name.ends_with("mlp.down_proj.weight") ? 1.0 / 160
                                                                     : 1.0 / 64;
    if (name != "lm_head.weight") {
      EXPECT_EQ(value, (Distribution{DistributionKind::Constant, {expected}})) << name;
    }
  }
  EXPECT_EQ(values.at("lm_head.weight").kind, DistributionKind::Normal);
}

// Fans are those of the whole matrix: what a parameter is initialised with is the same text on every mesh.
TEST(InitSchemes, DoNotDependOnTheMesh) {
  const std::string recipe = "tests/plan/init_scheme.toml";
  const auto values_on = [&](std::vector<std::string> mesh) {
    mesh.emplace_back("init.scheme=core-fan-in");
    mesh.emplace_back("batch.micro=2");
    const auto plan = CompileRecipeFile(recipe, mesh);
    CHECK(plan.ok(), "{}", plan.error().message);
    std::vector<std::string> values;
    for (const Parameter& parameter : plan->parameters) {
      values.push_back(parameter.init);
    }
    return values;
  };
  const std::vector<std::string> alone = values_on({"mesh.dp=1"});
  EXPECT_EQ(alone.size(), 30U);
  for (const std::vector<std::string>& mesh : std::vector<std::vector<std::string>>{
           {"mesh.dp=3"}, {"mesh.dp=1", "mesh.tp=2"}, {"mesh.dp=2", "mesh.tp=2", "mesh.replicate=2"}}) {
    EXPECT_EQ(values_on(mesh), alone) << mesh.back();
  }
}

/// Six digits, as published; of a uniform law its bound.
struct Figure {
  std::string_view scheme;
  ModelSizes sizes;
  std::string_view parameter;
  std::string_view sigma;
  std::string_view realised;
};

TEST(InitSchemes, FiguresOfPublishedModels) {
  const ModelSizes mitchish65 = Llama(80, 8192, 22016, 50304);
  const ModelSizes olmo_1b = Llama(16, 2048, 8192, 50304);
  const ModelSizes llama_7b = Llama(32, 4096, 11008, 32000);
  const Figure figures[] = {
      {"olmo-mitchell", mitchish65, "model.layers.3.self_attn.q_proj.weight", "0.0110485", "0.0109003"},
      {"olmo-mitchell", mitchish65, "model.layers.0.self_attn.o_proj.weight", "0.0078125", "0.00770764"},
      {"olmo-mitchell", mitchish65, "model.layers.79.self_attn.o_proj.weight", "0.000873464", "0.000861741"},
      {"olmo-mitchell", mitchish65, "model.layers.0.mlp.down_proj.weight", "0.00476558", "0.00470162"},
      {"olmo-mitchell", mitchish65, "model.layers.79.mlp.down_proj.weight", "0.000532808", "0.000525657"},
      {"olmo-mitchell", mitchish65, "lm_head.weight", "0.0110485", "0.0109003"},
      {"olmo-mitchell", olmo_1b, "model.layers.0.self_attn.q_proj.weight", "0.0220971", "0.0218005"},
      {"olmo-mitchell", olmo_1b, "model.layers.0.self_attn.o_proj.weight", "0.015625", "0.0154153"},
      {"olmo-mitchell", olmo_1b, "model.layers.15.self_attn.o_proj.weight", "0.00390625", "0.00385382"},
      {"olmo-mitchell", olmo_1b, "model.layers.0.mlp.down_proj.weight", "0.0078125", "0.00770764"},
      {"olmo-mitchell", olmo_1b, "model.layers.15.mlp.down_proj.weight", "0.00195312", "0.00192691"},
      {"gpt2", llama_7b, "model.layers.7.self_attn.o_proj.weight", "0.0025", "0.0025"},
      {"olmo-full-megatron", llama_7b, "model.layers.7.mlp.down_proj.weight", "0.0025", "0.00246645"},
      {"core-llama", llama_7b, "model.layers.7.mlp.up_proj.weight", "0.0025", "0.00246645"},
      {"core-llama-depth", llama_7b, "model.layers.0.self_attn.o_proj.weight", "0.0141421", "0.0139523"},
      {"core-llama-depth", llama_7b, "model.layers.31.self_attn.o_proj.weight", "0.0025", "0.00246645"},
      {"torchtitan-llama", llama_7b, "model.layers.0.mlp.down_proj.weight", "0.0141421", "0.0141421"},
      {"torchtitan-llama", llama_7b, "model.layers.31.mlp.down_proj.weight", "0.0025", "0.0025"},
      {"fms-llama", llama_7b, "model.embed_tokens.weight", "0.015625", "0.015625"},
      {"fms-llama", llama_7b, "lm_head.weight", "0.00934593", "0.00934593"},
      {"core-fan-in", llama_7b, "model.layers.0.mlp.down_proj.weight", "0.00953116", "0.00940324"},
      {"torch-default", llama_7b, "model.layers.0.self_attn.q_proj.weight", "0.015625", "0.0090211"},
      {"torch-default", llama_7b, "lm_head.weight", "0.015625", "0.0090211"},
  };
  for (const Figure& row : figures) {
    const Distribution value = Initialised(row.scheme, row.sizes, 0.02).at(std::string(row.parameter));
    EXPECT_EQ(fmt::format("{:.6g}", value.arguments.at(1)), row.sigma) << row.scheme << ": " << row.parameter;
    EXPECT_EQ(fmt::format("{:.6g}", MomentsOf(value).std), row.realised) << row.scheme << ": " << row.parameter;
  }
}

}  // namespace
}  // namespace shardc
