// Every line `recipe` of a plan: the verifier refuses another value of the key, or the key is one of those of which no
// line and no op of the plan has the value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ranges>
#include <set>

#include "compiler/recipe/key_rows.h"
#include "compiler/verify/verify.h"
#include "tests/support/plan_samples.h"
#include "tests/verify/broken_plan.h"

namespace shardc {
namespace {

/// Tables that a list takes, and that no sample has.
auto AnotherList(const std::string& path) -> std::string {
  return path == "shard.unit"           ? "[{ match = [\"another\"] }]"
         : path == "shard.override"     ? "[{ match = \"another\", reshard_after_forward = true }]"
         : path == "precision.override" ? "[{ match = \"another\", master = \"bf16\" }]"
         : path == "init.rule"          ? "[{ match = \"*\", value = 7 }]"
         : path == "optimizer.group"    ? "[{ match = \"another\" }]"
                                        : "";
}

/// A value that a key takes, other than its own.
auto Another(const std::string& path, const std::string& value) -> std::string {
  const auto row = std::ranges::find(RecipeKeyRows(), path, &RecipeKeyRow::path);
  if (row == RecipeKeyRows().end()) {
    return AnotherList(path);
  }
  for (const Choice& choice : ChoicesOf(path) | std::views::reverse) {
    if (choice.accepted && value != fmt::format("\"{}\"", choice.word)) {
      return fmt::format("\"{}\"", choice.word);
    }
  }
  return row->type == "Int"        ? value == "1" ? "2" : "1"
         : row->type == "Real"     ? value == "1.0" ? "0.5" : "1.0"
         : row->type == "Bool"     ? value == "true" ? "false" : "true"
         : row->type == "Texts"    ? "[\"*norm*\"]"
         : row->type == "Ints"     ? "[3, 5]"
         : row->type == "Reals"    ? "[0.25, 0.125]"
         : row->type == "ByteSize" ? "\"3 GiB\""
         : row->type == "Formula"  ? "\"another\""
         : path == "start.first"   ? "{ seed = \"another\" }"
                                   : "\"layer < 1\"";
}

/// The keys whose lines may have any value of their type. Adds those that the plan has to `seen`.
auto FreeKeys(const std::vector<std::string>& sets, std::set<std::string>& seen) -> std::set<std::string> {
  const Plan plan = CompileSample(sets);
  EXPECT_EQ(VerifyPlan(plan), std::vector<std::string>{});
  std::set<std::string> free;
  for (size_t i = 0; i < plan.recipe.size(); ++i) {
    Plan changed = plan;
    RecipeEntry& entry = changed.recipe[i];
    seen.insert(entry.key);
    // The only word that there is.
    entry.value = entry.key == "start.restart" ? entry.value : Another(entry.key, entry.value);
    const std::vector<std::string> findings = VerifyPlan(changed);
    if (findings.empty()) {
      free.insert(entry.key);
      continue;
    }
    EXPECT_EQ(findings.size(), 1U) << testing::PrintToString(findings);
    EXPECT_EQ(LabelOf(findings[0]), "header-recipe");
    // Rules read the deviation, and overrides yield to the key: it is they that do not fit the plan then.
    if (entry.key != "init.std" && entry.key != "precision.override") {
      EXPECT_THAT(findings[0], testing::StartsWith("the line `recipe " + entry.key + "` has " + entry.value));
    }
  }
  return free;
}

TEST(RecipeLines, AgreeWithPlan) {
  std::set<std::string> expected{"shard.units",       "shard.reshard_after_forward",
                                 "shard.gather_into", "precision.residual",
                                 "recompute.layers",  "init.std",
                                 "start.restart"};
  std::set<std::string> seen;
  EXPECT_EQ(FreeKeys({}, seen), expected);
  // Keys that other settings bring.
  EXPECT_EQ(FreeKeys({"train.on_spike=skip", "run.machine=h100-sxm", "train.max_minutes=5", "start.run_id=tuned",
                      "model.rope_theta=50000", "model.rope_frequency=linear_rope(4)", "data.scan=1 MiB",
                      "run.comm=gloo", "run.device=cpu-portable", "run.attention_workspace=1024 TiB"},
                     seen),
            expected);
  const std::set<std::string> of_others{"recompute.save", "shard.override", "shard.reduce_ring", "shard.unit"};
  EXPECT_THAT(FreeKeys({"init.scheme=gpt2", "init.rule=[]", "model.head_dim=4", "batch.accumulate=3",
                        "shard.reduce_ring=2", "shard.unit=[{match = [\"lm_head.weight\"]}]",
                        "shard.override=[{match = \"embed\", reshard_after_forward = false}]",
                        "precision.override=[{match = \"embed\", reduce = \"bf16\"}]", "recompute.policy=selective",
                        "recompute.save=[\"attention\"]", "optimizer.group=[{match = \"*norm*\", weight_decay = 0}]"},
                       seen),
              testing::IsSupersetOf(of_others));
  expected.insert({"shard.gather_ring", "shard.prefetch_forward", "shard.prefetch_backward", "checkpoint.dir"});
  EXPECT_EQ(FreeKeys({"train.on_nonfinite=skip", "run.peak_flops=1e12", "optimizer.name=sgd", "optimizer.momentum=0.9",
                      "optimizer.nesterov=true", "mesh.dp=4", "shard.reshard_size=2", "shard.gather_ring=2",
                      "shard.prefetch_forward=1", "shard.prefetch_backward=1", "batch.global=24",
                      "checkpoint.dir=saves", "checkpoint.every=2", "checkpoint.keep_every=3",
                      "checkpoint.keep_steps=[2, 4]", "checkpoint.on_failure=continue", "optimizer.lr=0.5"},
                     seen),
            expected);
  // Every plan has a line for a key with a default.
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    const std::string key = row.section + "." + (row.list.empty() ? row.name : row.list);
    EXPECT_TRUE(seen.contains(key) || !row.list.empty() || row.default_text.empty()) << key;
  }
}

auto FindingsWith(const std::string& key, const std::string& value, const std::vector<std::string>& sets = {})
    -> std::vector<std::string> {
  Plan plan = CompileSample(sets);
  const auto entry = std::ranges::find(plan.recipe, key, &RecipeEntry::key);
  if (entry == plan.recipe.end()) {
    plan.recipe.push_back({.key = key, .value = value});
  } else {
    entry->value = value;
  }
  return VerifyPlan(plan);
}

TEST(RecipeLines, HaveKeysOfRecipesAndOfTheOptimizer) {
  for (const char* key : {"foo.bar", "optimizer", "optimizer.group.match", ""}) {
    EXPECT_THAT(FindingsWith(key, "1"), testing::ElementsAre(testing::StartsWith(fmt::format("`{}` is no key", key))));
  }
  EXPECT_THAT(FindingsWith("optimizer.betas", "[0.9, 0.95]", {"optimizer.name=sgd"}),
              testing::ElementsAre(testing::HasSubstr("is of the optimizer adamw, the plan has sgd")));
  EXPECT_THAT(FindingsWith("optimizer.momentum", "0.9"),
              testing::ElementsAre(testing::HasSubstr("is of the optimizer sgd, the plan has adamw")));
}

TEST(RecipeLines, NameEvaluationFilesOfThePlan) {
  EXPECT_THAT(FindingsWith("data.eval", "[\"held.u16\"]"),
              testing::ElementsAre("the line `recipe data.eval` has [\"held.u16\"], the plan evaluates on no files "
                                   "[header-recipe]"));
}

TEST(RecipeLines, HaveRulesOfParameters) {
  const std::string two =
      "optimizer.group=[{match = \"*norm.weight\", weight_decay = 0}, {match = \"*tokens.weight\", lr_scale = 0.5}]";
  struct Row {
    std::vector<std::string> sets;
    std::string key;
    std::string value;
    std::string says;
  };
  for (const auto& [sets, key, value, says] : std::vector<Row>{
           {{two},
            "optimizer.group",
            "[{ match = \"*norm.weight\", weight_decay = 0.0, lr_scale = 1.0 }]",
            "the plan 2 beside the default"},
           {{two},
            "optimizer.group",
            "[{ match = \"*norm.weight\", weight_decay = 0.0 }, { match = \"*tokens.weight\", lr_scale = 0.25 }]",
            "the plan has group *tokens.weight with weight_decay 0.1 and lr_scale 0.5 there"},
           {{two},
            "optimizer.group",
            "[{ match = \"*norm.weight\", weight_decay = 0.0 }, { match = \"*tokens.weight\", lr_scale = 0.5 }",
            "a list of tables with the keys of [[optimizer.group]]"},
           {{},
            "init.rule",
            "[{ match = \"*\", value = 1 }]",
            "and the rule of model.embed_tokens.weight in the plan is "},
           {{}, "init.rule", "[{ match = \"*\" }]", "a list of tables with the keys of [[init.rule]]"},
           {{}, "init.rule", "[{ match = \"*\", value = \"normal(0,\" }]", "and the rule of "},
           {{"init.scheme=gpt2", "init.rule=[]"}, "init.scheme", "\"torchtitan-llama\"", "and the rule of "},
           {{"init.scheme=gpt2", "init.rule=[]"}, "init.std", "0.5", "and the rule of "},
           {{"init.rule=[{match = \"*\", value = \"normal(0, init_std)\"}]"}, "init.std", "0.5", "and the rule of "},
       }) {
    EXPECT_THAT(FindingsWith(key, value, sets), testing::ElementsAre(testing::HasSubstr(says))) << value;
  }
  // Tables that say the same otherwise, a rule that is left out, and fans of biases.
  EXPECT_THAT(FindingsWith("optimizer.group",
                           "[{ match = \"*norm.weight\", weight_decay = 0 }, { match = \"*tokens.weight\", lr_scale = "
                           "0.50 }]",
                           {two}),
              testing::IsEmpty());
  EXPECT_THAT(
      FindingsWith("init.std", "0.5",
                   {"init.rule=[{match = \"*\", value = \"normal(0, 1 / sqrt(fan_in))\"}]", "model.family=qwen2"}),
      testing::IsEmpty());
  for (const char* name : {"init.rule", "init.scheme", "init.std"}) {
    Plan plan = CompileSample({"init.scheme=gpt2"});
    std::erase_if(plan.recipe, [&](const RecipeEntry& entry) { return entry.key == name; });
    // Without the rules, all parameters have those of the scheme. The deviation has a default.
    EXPECT_EQ(VerifyPlan(plan).size(), name == std::string_view("init.scheme") ? 0U : 1U) << name;
  }
}

TEST(RecipeLines, HaveMixtureOfPlan) {
  const std::vector<std::string> mixture{
      "--unset data.tokens",
      "data.source=[{name = \"a\", tokens = [\"a.bin\"], weight = 3}, {tokens = [\"b.bin\"], weight = \"1 + step\"}]"};
  const std::string line =
      "[{{ name = \"{}\", tokens = [\"a.bin\"], weight = {} }}, {{ tokens = [\"b.bin\"], weight = {} }}]";
  const auto findings = [&](const char* name, const char* first, const char* second) {
    return FindingsWith("data.source", fmt::format(fmt::runtime(line), name, first, second), mixture);
  };
  EXPECT_THAT(findings("a", "3", "\"1 + step\""), testing::IsEmpty());
  EXPECT_THAT(findings("a", "1", "\"1 + step\""),
              testing::ElementsAre(testing::HasSubstr("the plan has a line `source 0` with weight=3")));
  EXPECT_THAT(findings("a", "3", "\"2 + step\""),
              testing::ElementsAre(testing::HasSubstr("the plan has a line `source 1` with weight=\"1 + step\"")));
  EXPECT_THAT(findings("b", "3", "\"1 + step\""), testing::SizeIs(1));
  EXPECT_THAT(FindingsWith("data.source", "[{ tokens = [\"a.bin\"], weight = 3 }]", mixture), testing::SizeIs(1));
  EXPECT_THAT(FindingsWith("data.tokens", "[\"a.bin\"]", mixture), testing::IsEmpty());
}

TEST(RecipeLines, HaveTextInQuotes) {
  EXPECT_THAT(FindingsWith("data.scan", "\"1 MiB\"", {"data.scan=1 MiB"}), testing::IsEmpty());
  for (const char* broken : {"\"1 MiBx", "\"", "1 MiB"}) {
    EXPECT_THAT(FindingsWith("data.scan", broken, {"data.scan=1 MiB"}), testing::SizeIs(1)) << broken;
  }
  EXPECT_THAT(FindingsWith("model.family", "llama"), testing::SizeIs(1));
  EXPECT_THAT(FindingsWith("optimizer.lr", "0.5", {"optimizer.lr=0.5"}), testing::IsEmpty());
}

TEST(RecipeLines, MayBeLeftOut) {
  Plan plan = CompileSample();
  plan.recipe.clear();
  EXPECT_EQ(VerifyPlan(plan), std::vector<std::string>{});
}

TEST(RecipeLines, WithDefaultMayNotBeLeftOutAlone) {
  const Plan plan = CompileSample();
  for (const char* key : {"train.log_every", "shard.units", "checkpoint.keep", "model.tied", "data.seed",
                          "model.layers", "optimizer.lr", "train.steps"}) {
    Plan changed = plan;
    EXPECT_EQ(std::erase_if(changed.recipe, [&](const RecipeEntry& entry) { return entry.key == key; }), 1U) << key;
    EXPECT_THAT(
        VerifyPlan(changed),
        testing::ElementsAre(testing::StartsWith(fmt::format("no line `recipe {}`; a plan has all keys", key))));
  }
}

TEST(RecipeLines, NameTokenFilesOfPlan) {
  EXPECT_THAT(
      FindingsWith("data.tokens", "[\"another.bin\"]"),
      testing::ElementsAre(testing::HasSubstr("the line `recipe data.tokens` has [\"another.bin\"], the plan reads ")));
  // The recipe may be in another folder than it was, and have a pattern.
  EXPECT_THAT(FindingsWith("data.tokens", "[\"/far/away/*.bin\"]"), testing::IsEmpty());
}

TEST(RecipeLines, LeaveTheDeviceOfALaunchOpen) {
  Plan plan = CompileSample();
  plan.device = Device::CpuAvx512;
  EXPECT_EQ(VerifyPlan(plan), std::vector<std::string>{});
  plan = CompileSample({"run.device=cuda"});
  EXPECT_EQ(VerifyPlan(plan), std::vector<std::string>{});
  plan.device = Device::CudaSm90;
  EXPECT_EQ(VerifyPlan(plan), std::vector<std::string>{});
  plan = CompileSample({"run.device=cuda-sm90"});
  plan.device = Device::Cuda;
  EXPECT_THAT(VerifyPlan(plan), testing::SizeIs(1));
}

}  // namespace
}  // namespace shardc
