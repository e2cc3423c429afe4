// The rows of HF_MADE: the tensors that a class keeps in place of a parameter's own, and what their rules have to fill.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/start/loaded_parts.h"

namespace shardc {
namespace {

using published::MadeRow;

auto SizesOfBlock() -> ModelSizes {
  ModelSizes sizes;
  sizes.family = "llama";
  sizes.layers = 2;
  sizes.hidden = 20;
  sizes.heads = 6;
  sizes.kv_heads = 3;
  sizes.head_dim = 4;
  sizes.ffn = 17;
  sizes.vocab = 11;
  return sizes;
}

auto PartsWith(const std::vector<MadeRow>& rows) -> LoadedParts {
  const ModelSizes sizes = SizesOfBlock();
  const ParameterSpecs specs = ParametersOf(ModelFamilyOf(Family::Llama), sizes);
  LoadedParts parts = PartsOf(specs, sizes, rows);
  EXPECT_EQ(parts.rules.size(), specs.size());
  return parts;
}

auto PartsOfClass(const std::string& name) -> LoadedParts {
  Manifest seed;
  seed.run_id = name;
  seed.published = PublishedModel{};
  return PartsWith(MadeRowsOf(seed));
}

TEST(LoadedParts, AreWholeTensorsOfLlama) {
  const LoadedParts parts = PartsOfClass("LlamaForCausalLM");
  EXPECT_EQ(parts.shapes.size(), parts.rules.size());
  EXPECT_EQ(parts.shapes.at("model.layers.1.self_attn.k_proj.weight"), (Dims{12, 20}));
}

TEST(LoadedParts, FillFusedTensorsOfPhi3) {
  const LoadedParts parts = PartsOfClass("Phi3ForCausalLM");
  // Three parameters are one tensor, and two another, in each of two blocks.
  EXPECT_EQ(parts.shapes.size() + 6, parts.rules.size());
  EXPECT_EQ(parts.shapes.at("model.layers.1.self_attn.qkv_proj.weight"), (Dims{24 + 12 + 12, 20}));
  EXPECT_EQ(parts.shapes.at("model.layers.0.mlp.gate_up_proj.weight"), (Dims{34, 20}));
  std::vector<std::string> rules;
  for (const Expr& rule : parts.rules) {
    rules.push_back(rule.text());
  }
  EXPECT_THAT(rules,
              testing::IsSupersetOf({"seed('model.layers.1.self_attn.qkv_proj.weight', index(0), index(1))",
                                     "seed('model.layers.1.self_attn.qkv_proj.weight', index(0) + 24, index(1))",
                                     "seed('model.layers.1.self_attn.qkv_proj.weight', index(0) + 36, index(1))",
                                     "seed('model.layers.0.mlp.gate_up_proj.weight', index(0) + 17, index(1))"}));
}

// A module's parts are in the order of its rows: exports put them together by that.
TEST(LoadedParts, AreInTheOrderOfTheirModules) {
  for (const FusedModule& module : FusedModules()) {
    const ModelSizes sizes = SizesOfBlock();
    const ParameterSpecs specs = ParametersOf(ModelFamilyOf(Family::Llama), sizes);
    const LoadedParts parts = PartsOfClass(std::string(module.architecture));
    std::map<std::string, std::map<int64_t, int64_t>> places;
    for (size_t s = 0; s < specs.size(); ++s) {
      const LoadedBlock block = *LoadedBlockOf(parts.rules[s]);
      const std::string weight = FusedWeight({module}, specs[s].name);
      EXPECT_TRUE(weight.empty() || weight == block.tensor) << specs[s].name;
      if (!weight.empty()) {
        EXPECT_EQ(block.indices[0].of, 0U) << specs[s].name;
        places[weight][block.indices[0].begin] = PlaceInModule({module}, specs[s].name);
      }
    }
    EXPECT_EQ(std::ssize(places), sizes.layers) << module.name;
    for (const auto& [weight, of_module] : places) {
      EXPECT_EQ(of_module.size(), module.parts.size()) << weight;
      EXPECT_TRUE(std::ranges::is_sorted(of_module, {}, [](const auto& place) { return place.second; })) << weight;
    }
  }
  EXPECT_EQ(FusedModules().size(), 2U);
}

// What the adapter of a fused module has for each projection is at the rows of the base's weight.
TEST(LoadedParts, SplitAdaptersLikeTheirModules) {
  AdapterSizes sizes;
  sizes.fused = FusedModules();
  const auto rows = published::AdapterRowsOf(sizes);
  EXPECT_EQ(rows.size(), 5U);
  EXPECT_EQ(published::LoadingRule(rows, "model.layers.0.self_attn.v_proj.lora_B.weight"),
            "seed('model.layers.{layer}.self_attn.qkv_proj.lora_B.weight', index(0) + (heads + kv_heads) * head_dim, "
            "index(1))");
  for (const char* const own :
       {"model.layers.0.self_attn.v_proj.weight", "model.layers.0.self_attn.o_proj.lora_B.weight",
        "model.layers.0.self_attn.qkv_proj.lora_A.weight"}) {
    EXPECT_EQ(published::LoadingRule(rows, own), RuleOfLoaded(own));
  }
  sizes.fused.resize(1);
  EXPECT_EQ(published::AdapterRowsOf(sizes).size(), sizes.fused.front().parts.size());
}

TEST(LoadedParts, FillTransposedTensors) {
  // As GPT-2 keeps them: [inputs, outputs].
  const LoadedParts parts =
      PartsWith({{"", "*.q_proj.weight", "seed('h.{layer}.attn.c_attn.weight', index(1), index(0))"},
                 {"", "*.k_proj.weight", "seed('h.{layer}.attn.c_attn.weight', index(1), index(0) + heads * head_dim)"},
                 {"", "*.v_proj.weight",
                  "seed('h.{layer}.attn.c_attn.weight', index(1), index(0) + (heads + kv_heads) * head_dim)"},
                 {"", "*.down_proj.weight", "seed('h.{layer}.mlp.c_proj.weight', index(1), index(0))"}});
  EXPECT_EQ(parts.shapes.at("h.1.attn.c_attn.weight"), (Dims{20, 48}));
  EXPECT_EQ(parts.shapes.at("h.0.mlp.c_proj.weight"), (Dims{17, 20}));
}

TEST(LoadedParts, UseEachElementOnce) {
  const auto fused = [](const std::string& begin_of_up) {
    const std::string up = "seed('gate_up.{layer}', index(0) + (" + begin_of_up + "), index(1))";
    static_cast<void>(PartsWith(
        {{"", "*.gate_proj.weight", "seed('gate_up.{layer}', index(0), index(1))"}, {"", "*.up_proj.weight", up}}));
  };
  fused("ffn");
  EXPECT_DEATH(fused("ffn - 1"), "two parameters are made of the same elements of gate_up.0");
  EXPECT_DEATH(fused("ffn + 1"), "parameters are made of 680 elements of gate_up.0");
  EXPECT_DEATH(fused("index(0)"), "up_proj.weight is made by the rule");
}

}  // namespace
}  // namespace shardc
