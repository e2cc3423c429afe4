// Model families against plans: what checks estimate of a model before there is a plan is what its plan has, or a bound
// of it; and what a family says of each parameter agrees with the ops that read it.

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/base/family_keys.h"
#include "compiler/base/recipe_words.h"
#include "compiler/model/decoder.h"
#include "compiler/model/estimate.h"
#include "compiler/recipe/resolved.h"
#include "compiler/report/report.h"
#include "tests/golden/golden_case.h"

namespace shardc {
namespace {

const std::string RecipePath = "tests/plan/one_rank.toml";

auto PlanOf(Family family, std::vector<std::string> sets = {}) -> Plan {
  sets.push_back(fmt::format("model.family={}", ToText(family)));
  auto plan = CompileRecipeFile(RecipePath, sets);
  CHECK(plan.ok(), "{}", plan.error().message);
  return *std::move(plan);
}

auto Sizes(const Plan& plan) -> ModelSizes {
  const auto at = [&](const char* key) { return std::stoll(plan.model.at(key)); };
  return {.family = plan.model.at("family"),
          .layers = at("layers"),
          .hidden = at("hidden"),
          .heads = at("heads"),
          .kv_heads = at("kv_heads"),
          .head_dim = at("head_dim"),
          .ffn = at("ffn"),
          .vocab = at("vocab"),
          .seq = at("seq"),
          .tied = plan.model.at("tied") == "true"};
}

auto AllFamilies() -> std::vector<Family> {
  std::vector<Family> families;
  for (size_t i = 0; i < CountOf<Family>(); ++i) {
    families.push_back(static_cast<Family>(i));
  }
  return families;
}

TEST(Families, EstimateOfParametersIsTheirNumber) {
  for (const Family family : AllFamilies()) {
    for (const char* set : {"model.layers=0", "model.layers=1", "model.layers=3", "model.tied=true"}) {
      const Plan plan = PlanOf(family, {set});
      EXPECT_EQ(EstimateParameters(ModelFamilyOf(family), Sizes(plan)),
                static_cast<double>(Explain(plan).parameters_total))
          << ToText(family) << ", " << set;
    }
  }
}

// Of one microbatch: what checks take for the activations is no less than what the plan holds of them at any time.
TEST(Families, EstimateOfActivationsBoundsThePlan) {
  for (const Family family : AllFamilies()) {
    for (const char* set : {"model.layers=0", "model.layers=1", "model.layers=3"}) {
      const Plan plan = PlanOf(family, {set, "precision.compute=fp32"});
      const ModelSizes sizes = Sizes(plan);
      const double per_token = 2 * EstimateForward(ModelFamilyOf(family), sizes).elements;
      const auto tokens = static_cast<double>(plan.run.micro_batch * sizes.seq);
      const auto peak =
          static_cast<double>(Explain(plan).peak.use.by_category[static_cast<size_t>(Category::Activations)].value) / 4;
      EXPECT_GT(peak, 0) << ToText(family) << ", " << set;
      EXPECT_GE(per_token * tokens, peak) << ToText(family) << ", " << set;
    }
  }
}

// A letter of an op that ranks along tp cut is a size that the check of mesh.tp asks for.
TEST(Families, WhatTpCutsIsTold) {
  for (const Family family : AllFamilies()) {
    const ForwardEstimate forward = EstimateForward(ModelFamilyOf(family), Sizes(PlanOf(family)));
    EXPECT_EQ(forward.cut, (std::vector<ModelKey>{ModelKey::Heads, ModelKey::KvHeads, ModelKey::Ffn}))
        << ToText(family);
    EXPECT_GT(forward.attention_width, 0) << ToText(family);
  }
}

TEST(Families, NamesOfParametersAndProjectionsDiffer) {
  for (const Family family : AllFamilies()) {
    std::set<std::string> names;
    const ParameterSpecs specs = ParametersOf(ModelFamilyOf(family), Sizes(PlanOf(family)));
    for (const ParameterSpec& spec : specs) {
      EXPECT_TRUE(names.insert(spec.name).second) << ToText(family) << ": " << spec.name;
    }
    std::set<std::string_view> projections{SavedAttention};
    for (const ParameterSpec& spec : ModelFamilyOf(family).block(ModelSizes{})) {
      if (!spec.projection.empty()) {
        EXPECT_TRUE(projections.insert(spec.projection).second) << ToText(family) << ": " << spec.projection;
      }
    }
  }
}

// Only a matrix [outputs, inputs] tells its inputs by its shape.
TEST(Families, FansAreThoseOfMatrices) {
  for (const Family family : AllFamilies()) {
    for (const ParameterSpec& spec : ParametersOf(ModelFamilyOf(family), Sizes(PlanOf(family)))) {
      if (spec.kind != ParameterKind::Bias) {
        EXPECT_EQ(spec.fan_in, spec.shape.back()) << ToText(family) << ": " << spec.name;
      }
    }
  }
}

/// As Llama, with positions that nothing knows of: heads do not rotate.
const ModelFamily Unrotated{.outside = LlamaFamily.outside,
                            .block = LlamaFamily.block,
                            .forward = [](ForwardBuilder& f, const ModelSizes& sizes) {
                              return DecoderForward(f, sizes, [](const BlockBuilder& block, ValueId x) {
                                return block.f.Attention(block.Linear(x, "self_attn.q_proj"),
                                                         block.Linear(x, "self_attn.k_proj"),
                                                         block.Linear(x, "self_attn.v_proj"), block.m.head_dim);
                              });
                            }};

// A family that has the keys of the rotary table is one whose ops rotate heads, and so need even ones.
TEST(Families, HeadsAreEvenWhereTheyRotate) {
  for (const Family family : AllFamilies()) {
    EXPECT_EQ(NeedsEvenHeads(ModelFamilyOf(family)), HasKey(family, "rope_frequency")) << ToText(family);
  }
  EXPECT_FALSE(NeedsEvenHeads(Unrotated));
}

/// By what the plan of 7 layers has more than that of 3.
auto OpsOfBlock(Family family, const std::vector<std::string>& sets) -> double {
  const auto count = [&](const char* layers) {
    std::vector<std::string> all = sets;
    all.insert(all.end(), {layers, "shard.units=\"blocks:64\"", "run.threads=1"});
    size_t ops = 0;
    for (const Section& section : PlanOf(family, all).sections) {
      ops += section.ops.size();
    }
    return static_cast<double>(ops);
  };
  return (count("model.layers=7") - count("model.layers=3")) / 4;
}

TEST(Families, OpsOfABlockAreCountedFromBelow) {
  for (const Family family : AllFamilies()) {
    const double trained = LeastOpsOfBlock(ModelFamilyOf(family), true);
    const double frozen = LeastOpsOfBlock(ModelFamilyOf(family), false);
    const double of_plan = OpsOfBlock(family, {});
    EXPECT_LE(trained, of_plan) << ToText(family);
    EXPECT_LE(frozen, OpsOfBlock(family, {R"(optimizer.frozen=["*embed*", "*layers*"])"})) << ToText(family);
    // It is no bound that says nothing.
    EXPECT_LT(frozen, trained) << ToText(family);
    EXPECT_GT(trained, of_plan / 2) << ToText(family);
  }
  // Two rotations, and two back.
  EXPECT_EQ(LeastOpsOfBlock(Unrotated, true) + 4, LeastOpsOfBlock(LlamaFamily, true));
  EXPECT_EQ(LeastOpsOfBlock(Unrotated, false) + 2, LeastOpsOfBlock(LlamaFamily, false));
  EXPECT_GT(LeastOpsOfBlock(Qwen3Family, true), LeastOpsOfBlock(LlamaFamily, true));
}

struct PublishedSizes {
  const char* name;
  Family family;
  ModelSizes sizes;
  int64_t parameters;
};

auto SizesOf(int64_t layers, int64_t hidden, int64_t heads, int64_t kv_heads, int64_t head_dim, int64_t ffn,
             int64_t vocab, bool tied) -> ModelSizes {
  return {.family = "",
          .layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = kv_heads,
          .head_dim = head_dim,
          .ffn = ffn,
          .vocab = vocab,
          .seq = 4096,
          .tied = tied};
}

// Source: config.json of the models on Hugging Face; those of Qwen/Qwen2.5-* and Qwen/Qwen3-* as torchtune's builders
// have them (pytorch/torchtune, models/qwen2_5 and models/qwen3, _model_builders.py). The numbers are those of the
// parameters that transformers 5.23 makes for such a config.
TEST(Families, PublishedSizesHaveTheirNumberOfParameters) {
  constexpr bool Tied = true;
  const PublishedSizes rows[] = {
      {"Llama 3 8B", Family::Llama, SizesOf(32, 4096, 32, 8, 128, 14336, 128256, !Tied), 8'030'261'248},
      {"Qwen2.5 0.5B", Family::Qwen2, SizesOf(24, 896, 14, 2, 64, 4864, 151936, Tied), 494'032'768},
      {"Qwen2.5 1.5B", Family::Qwen2, SizesOf(28, 1536, 12, 2, 128, 8960, 151936, Tied), 1'543'714'304},
      {"Qwen2.5 3B", Family::Qwen2, SizesOf(36, 2048, 16, 2, 128, 11008, 151936, Tied), 3'085'938'688},
      {"Qwen2.5 7B", Family::Qwen2, SizesOf(28, 3584, 28, 4, 128, 18944, 152064, !Tied), 7'615'616'512},
      {"Qwen2.5 14B", Family::Qwen2, SizesOf(48, 5120, 40, 8, 128, 13824, 152064, !Tied), 14'770'033'664},
      {"Qwen2.5 32B", Family::Qwen2, SizesOf(64, 5120, 40, 8, 128, 27648, 152064, !Tied), 32'763'876'352},
      {"Qwen2.5 72B", Family::Qwen2, SizesOf(80, 8192, 64, 8, 128, 29568, 152064, !Tied), 72'706'203'648},
      {"Qwen3 0.6B", Family::Qwen3, SizesOf(28, 1024, 16, 8, 128, 3072, 151936, Tied), 596'049'920},
      {"Qwen3 1.7B", Family::Qwen3, SizesOf(28, 2048, 16, 8, 128, 6144, 151936, Tied), 1'720'574'976},
      {"Qwen3 4B", Family::Qwen3, SizesOf(36, 2560, 32, 8, 128, 9728, 151936, Tied), 4'022'468'096},
      {"Qwen3 8B", Family::Qwen3, SizesOf(36, 4096, 32, 8, 128, 12288, 151936, !Tied), 8'190'735'360},
      {"Qwen3 14B", Family::Qwen3, SizesOf(40, 5120, 40, 8, 128, 17408, 151936, !Tied), 14'768'307'200},
      {"Qwen3 32B", Family::Qwen3, SizesOf(64, 5120, 64, 8, 128, 25600, 151936, !Tied), 32'762'123'264},
  };
  for (const PublishedSizes& row : rows) {
    int64_t parameters = 0;
    for (const ParameterSpec& spec : ParametersOf(ModelFamilyOf(row.family), row.sizes)) {
      parameters += NumElements(spec.shape);
    }
    EXPECT_EQ(parameters, row.parameters) << row.name;
  }
}

}  // namespace
}  // namespace shardc
