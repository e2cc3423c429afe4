// A recipe made of the resolved configuration that torchtitan writes has its model, its lengths and its batches, in
// both dialects; what it cannot be made of is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "compiler/recipe/from_config.h"
#include "compiler/recipe/recipe.h"
#include "tests/recipe/torchtitan_schedule.h"
#include "tests/support/compile_recipe.h"
#include "tests/support/repository.h"
#include "tests/support/torchtitan_json.h"

namespace shardc {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

auto Made(const json& configuration) -> ConvertedRecipe {
  auto made = RecipeFromConfig("config.json", configuration.dump());
  CHECK(made, "{}", made.error().message);
  return *std::move(made);
}

auto WhyNot(const std::string& text) -> std::string {
  const auto made = RecipeFromConfig("config.json", text);
  CHECK(!made, "{}", made->text);
  EXPECT_EQ(made.error().code, ExitCode::RecipeRejected);
  return made.error().message;
}

TEST(FromTorchtitanJson, HasThePublishedSizes) {
  const Recipe published = CheckedRecipe(ReadRepositoryFile("recipes/published/llama3_8b.toml"));
  for (const Dialect dialect : {Dialect::Sequences, Dialect::Tokens}) {
    const ConvertedRecipe made = Made(TorchtitanJson(dialect));
    EXPECT_THAT(made.not_carried, IsEmpty());
    const Recipe recipe = CheckedRecipe(made.text);
    EXPECT_EQ(recipe.model.family->text(), published.model.family->text());
    EXPECT_EQ(*recipe.model.layers, *published.model.layers);
    EXPECT_EQ(*recipe.model.hidden, *published.model.hidden);
    EXPECT_EQ(*recipe.model.heads, *published.model.heads);
    EXPECT_EQ(*recipe.model.kv_heads, *published.model.kv_heads);
    EXPECT_EQ(*recipe.model.ffn, *published.model.ffn);
    EXPECT_EQ(*recipe.model.vocab, *published.model.vocab);
    EXPECT_EQ(*recipe.model.seq, *published.model.seq);
    EXPECT_EQ(*recipe.model.rope_theta, *published.model.rope_theta);
    EXPECT_EQ(recipe.recompute.policy->text(), published.recompute.policy->text());
    EXPECT_EQ(*recipe.shard.units, *published.shard.units);
    EXPECT_EQ(recipe.precision.compute->text(), published.precision.compute->text());
    EXPECT_EQ(*recipe.train.steps, *published.train.steps);
    EXPECT_EQ(*recipe.checkpoint.every, *published.checkpoint.every);
    EXPECT_EQ(*recipe.mesh.dp, *published.mesh.dp);
    EXPECT_EQ(recipe.model.rope_frequency->text, "llama3_rope(8.0, 1.0, 4.0, 8192)");
    EXPECT_EQ(*recipe.batch.micro, 2);
    EXPECT_EQ(*recipe.batch.global, 64);
    EXPECT_EQ(*recipe.loss.chunks, 8);
    EXPECT_EQ(*recipe.optimizer.clip_norm, 1.0);
    EXPECT_THAT(*recipe.optimizer.betas, ElementsAre(0.9, 0.95));
    ExpectSchedule(recipe.optimizer.lr->text, {}, 3e-4);
  }
}

TEST(FromTorchtitanJson, KnowsHeadNormsAndTiedHeads) {
  const ConvertedRecipe made = Made(TorchtitanJson(Dialect::Sequences, {.name = "qwen3",
                                                                        .flavor = "0.6B",
                                                                        .layers = 28,
                                                                        .hidden = 1024,
                                                                        .heads = 16,
                                                                        .kv_heads = 8,
                                                                        .head_dim = 128,
                                                                        .ffn = 3072,
                                                                        .vocab = 151936,
                                                                        .has_head_norms = true,
                                                                        .is_tied = true}));
  const Recipe recipe = CheckedRecipe(made.text);
  EXPECT_EQ(recipe.model.family->text(), "qwen3");
  EXPECT_EQ(*recipe.model.head_dim, 128);
  EXPECT_TRUE(*recipe.model.tied);
  EXPECT_EQ(recipe.init.scheme->text(), "normal");
}

TEST(FromTorchtitanJson, KnowsCheckpointingByItsFields) {
  json configuration = TorchtitanJson(Dialect::Sequences);
  const auto policy = [&](const json& fields) {
    configuration["activation_checkpoint"] = fields;
    return CheckedRecipe(Made(configuration).text).recompute.policy->text();
  };
  EXPECT_EQ(policy(nullptr), "none");
  EXPECT_EQ(policy({{"preserve_rng_state", true}, {"debug", false}}), "full");
  EXPECT_EQ(policy({{"memory_budget", 0.5}}), "none");
  EXPECT_THAT(Made(configuration).not_carried,
              ElementsAre(StartsWith("[activation_checkpoint] memory_budget = 0.5: it is \"none\" here")));
}

TEST(FromTorchtitanJson, NamesWhatItCannotSay) {
  json configuration = TorchtitanJson(Dialect::Tokens);
  configuration["parallelism"]["context_parallel_degree"] = 2;
  configuration["training"]["gc_freq"] = 10;
  configuration["compile"]["enable"] = true;
  configuration["debug"]["odd"] = 3;
  configuration["training"]["new_switch"] = true;
  configuration["validator"] = {{"enable", true}, {"freq", 7}};
  configuration["optimizer"]["param_groups"][0]["optimizer_name"] = "Muon";
  EXPECT_THAT(
      Made(configuration).not_carried,
      ElementsAre(
          StartsWith("[optimizer] param_groups = [a table]: Muon is AdamW here"),
          StartsWith("[validator] enable = true: name files of ids in data.eval, and write train.eval_every = 7"),
          "[compile] enable = true: there is no switch: every recipe is compiled to a plan",
          "[parallelism] context_parallel_degree = 2: context parallelism is not offered; tp cuts activations "
          "along the sequence too",
          "[training] gc_freq = 10: there is no garbage collector: delete this line",
          "[training] new_switch = true: nothing is known of this key"));
}

TEST(FromTorchtitanJson, RefusesOtherModels) {
  const auto why = [](const TorchtitanModel& model) { return WhyNot(TorchtitanJson(Dialect::Tokens, model).dump()); };
  EXPECT_EQ(why({.name = "deepseek_v3", .flavor = "16B"}),
            "config.json: [model_spec] name = \"deepseek_v3\": models with experts are not offered; `shardc help "
            "model.family` lists the families");
  EXPECT_EQ(why({.name = "muse_glimmer", .flavor = "debugmodel"}),
            "config.json: [model_spec] name = \"muse_glimmer\": no family here computes it; `shardc help model.family` "
            "lists the families");
  EXPECT_EQ(why({.layers = 0}), "config.json: [model_spec] model: it has no layers");
  EXPECT_EQ(why({.heads = 0}),
            "config.json: [model_spec] model: attention.n_heads is 0; it has to be a whole number of at least 1");
  EXPECT_EQ(why({.vocab = 0}),
            "config.json: [model_spec] model: tok_embeddings.num_embeddings is 0; it has to be a whole "
            "number of at least 1");
  json experts = TorchtitanJson(Dialect::Tokens, {.layers = 1});
  json& block = experts["model_spec"]["model"]["layers"][0];
  block["post_norm"] = {{"eps", 1e-5}};
  EXPECT_EQ(WhyNot(experts.dump()),
            "config.json: [model_spec] model: its block has `post_norm`, which no family here computes");
  block["moe"] = {{"num_experts", 8}};
  EXPECT_EQ(WhyNot(experts.dump()),
            "config.json: [model_spec] model: models with experts are not offered; `shardc help "
            "model.family` lists the families");
  json adapted = TorchtitanJson(Dialect::Tokens, {.layers = 1});
  adapted["model_spec"]["model"]["layers"][0]["attention"]["wo"]["rank"] = 8;
  EXPECT_EQ(WhyNot(adapted.dump()),
            "config.json: [model_spec] model: its wo has `rank`, which no family here computes");
  json deeper = TorchtitanJson(Dialect::Tokens, {.layers = 1});
  deeper["model_spec"]["model"]["mtp_layers"] = 2;
  EXPECT_EQ(WhyNot(deeper.dump()),
            "config.json: [model_spec] model: its model has `mtp_layers`, which no family here computes");
  json uneven = TorchtitanJson(Dialect::Tokens, {.layers = 3});
  uneven["model_spec"]["model"]["layers"][2]["attention"]["n_heads"] = 16;
  EXPECT_EQ(WhyNot(uneven.dump()),
            "config.json: [model_spec] model: its blocks differ; blocks of one model are alike here");
}

TEST(FromTorchtitanJson, RefusesOtherLengthsAndBatches) {
  const auto why = [](Dialect dialect, const char* key, const json& value) {
    json configuration = TorchtitanJson(dialect, {.layers = 1});
    configuration["training"][key] = value;
    return WhyNot(configuration.dump());
  };
  EXPECT_EQ(why(Dialect::Sequences, "seq_len", nullptr), "config.json: [training] max_context_length: it is missing");
  EXPECT_EQ(why(Dialect::Sequences, "local_batch_size", nullptr),
            "config.json: [training] local_batch_size: it is missing");
  EXPECT_EQ(why(Dialect::Sequences, "seq_len", 0),
            "config.json: [training] seq_len = 0: it has to be a whole number of at least 1");
  EXPECT_EQ(
      why(Dialect::Tokens, "num_tokens_per_microbatch_per_dp_rank", 8191),
      "config.json: [training] num_tokens_per_microbatch_per_dp_rank = 8191: it is no multiple of 8192 tokens, the "
      "length of a sequence");
  EXPECT_EQ(why(Dialect::Tokens, "num_tokens_per_train_step", 0),
            "config.json: [training] num_tokens_per_train_step = 0: it has to be a whole number of at least 1");
  EXPECT_EQ(
      why(Dialect::Tokens, "sequence_length_of_2027", 4096),
      "config.json: [training] sequence_length_of_2027 = 4096: nothing is known of this key, which looks like a size, "
      "a length or a batch; take it out of the file, and set what it means in the recipe");
}

TEST(FromTorchtitanJson, RefusesOtherRates) {
  const auto why = [](const char* key, const json& value) {
    json configuration = TorchtitanJson(Dialect::Tokens, {.layers = 1});
    configuration["optimizer"]["param_groups"][0]["optimizer_kwargs"][key] = value;
    return WhyNot(configuration.dump());
  };
  EXPECT_EQ(why("lr", "fast"), "config.json: [optimizer] param_groups = [a table]: lr is \"fast\"");
  EXPECT_EQ(why("betas", {0.9}), "config.json: [optimizer] param_groups = [a table]: betas is [0.9]");
}

TEST(FromTorchtitanJson, RefusesOtherJson) {
  const std::string other =
      "config.json is JSON, and no configuration of torchtitan, which has \"model_spec\" and \"training\"; torchtitan "
      "writes one with --debug.save_config_file FILE, and a model of Hugging Face is named by its folder";
  EXPECT_EQ(WhyNot("{}"), other);
  EXPECT_EQ(WhyNot("{\"training\": {\"seq_len\": 2048}}"), other);
  EXPECT_EQ(WhyNot("{\"model_spec\": 3, \"training\": []}"), other);
  const std::string whole = TorchtitanJson(Dialect::Tokens).dump();
  EXPECT_THAT(WhyNot(whole.substr(0, whole.size() / 2)),
              StartsWith("config.json is no JSON: [json.exception.parse_error.101] parse error at line 1"));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) {
    deep += "{\"a\":";
  }
  EXPECT_EQ(WhyNot(deep), "config.json is no JSON: nested more than 127 deep");
  EXPECT_EQ(WhyNot("{\"a\": 1, \"a\": 2}"), "config.json is no JSON: the key \"a\" appears twice");
  EXPECT_EQ(WhyNot("{" + std::string(MaxConfigBytes, ' ')),
            "config.json has more than 16777216 bytes; no configuration in JSON is so long");
}

}  // namespace
}  // namespace shardc
