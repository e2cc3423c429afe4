// A key stands beside a row of memory only if setting it lowers the row: each is set, and the recipe planned again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <random>

#include "compiler/driver/recipe_source.h"
#include "compiler/report/report.h"
#include "tests/golden/golden_case.h"
#include "tests/support/nightly.h"

namespace shardc {
namespace {

using SetTexts = std::vector<std::string>;

constexpr std::string_view SmallRecipe = R"(
[model]
family = "llama"
layers = 2
hidden = 256
heads = 4
ffn = 1024
vocab = 64
seq = 16
[init]
scheme = "normal"
[optimizer]
lr = 1e-3
[data]
synthetic = "uniform"
[batch]
micro = 1
[train]
steps = 2
)";

/// Sets of keys, of which the last of a key counts.
auto PlanWith(const SetTexts& sets, const std::string& unset = "") -> std::optional<Plan> {
  SetTexts all;
  std::ranges::copy_if(sets, std::back_inserter(all),
                       [&](const std::string& set) { return unset.empty() || !set.starts_with(unset); });
  RecipeSource source({.path = "small.toml", .sets = all}, std::string(SmallRecipe));
  auto plan = source.LoadAndCompile({.verify = false});
  return plan ? std::optional(*std::move(plan)) : std::nullopt;
}

/// Returns the bytes at the peak by name.
auto BytesByName(const Plan& plan) -> std::map<std::string, Bytes> {
  std::map<std::string, Bytes> bytes;
  for (const AliveBuffers& alike : Explain(plan).alive_at_peak) {
    bytes[alike.name] += alike.bytes;
  }
  return bytes;
}

/// Plans of the recipe with a key set so that it lowers memory, in each way that there is.
auto PlansWithKey(const Plan& plan, const SetTexts& sets, const std::string& key) -> std::vector<Plan> {
  const int64_t dp = plan.mesh.size(Axis::Dp);
  const int64_t tp = plan.mesh.size(Axis::Tp);
  const int64_t micro = plan.run.micro_batch;
  const int64_t accumulate = plan.run.accumulate;
  const auto set = [](std::string_view name, int64_t value) { return fmt::format("{}={}", name, value); };
  const std::map<std::string, std::vector<SetTexts>> ways{
      {"recompute.policy", {{"recompute.policy=full"}, {"recompute.policy=torchtitan-sac"}}},
      {"loss.chunks", {{"loss.chunks=2"}, {"loss.chunks=8"}, {"loss.chunks=16"}}},
      {"shard.reshard_after_forward", {{"shard.reshard_after_forward=true"}}},
      {"shard.prefetch_forward", {{"shard.prefetch_forward=0"}}},
      {"shard.prefetch_backward", {{"shard.prefetch_backward=0"}}},
      {"mesh.dp", {{set("mesh.dp", dp * 2)}}},
      {"mesh.tp",
       {{set("mesh.tp", tp * 2)},
        {set("mesh.dp", dp / 2), set("mesh.tp", tp * 2), set("batch.accumulate", accumulate * 2)}}},
      {"batch.micro",
       {{set("batch.micro", micro / 2), set("batch.accumulate", accumulate * 2)},
        {set("batch.micro", 1), set("batch.accumulate", accumulate * micro)}}},
      {"shard.units",
       {{"shard.units=block"}, {"shard.units=size:64 KiB"}, {"shard.units=size:1 MiB"}, {"shard.units=size:16 MiB"}}},
      {"shard.reshard_size", {}},
      {"run.attention_workspace", {{"run.attention_workspace=0"}}},
  };
  CHECK(ways.contains(key), "the test knows no way to set {}", key);
  std::vector<Plan> plans;
  const auto add = [&](std::optional<Plan> other) {
    if (other) {
      plans.push_back(*std::move(other));
    }
  };
  for (const SetTexts& way : ways.at(key)) {
    SetTexts all = sets;
    all.insert(all.end(), way.begin(), way.end());
    add(PlanWith(all));
  }
  if (key == "shard.reshard_size") {
    add(PlanWith(sets, key));
  }
  return plans;
}

/// Draws a recipe from the keys that decide about memory.
auto DrawSets(uint32_t seed) -> SetTexts {
  std::mt19937 generator(seed);
  SetTexts sets;
  const auto draw = [&](const std::string& key, const SetTexts& values) {
    const std::string& value = values[generator() % values.size()];
    if (!value.empty()) {
      sets.push_back(key + "=" + value);
    }
  };
  draw("run.device", {"cpu-avx512", "cuda", "cuda"});
  draw("model.layers", {"1", "2", "3", "8"});
  draw("model.seq", {"16", "64", "256", "1024"});
  draw("model.vocab", {"64", "1024", "16384"});
  draw("model.hidden", {"64", "256"});
  draw("model.tied", {"false", "false", "true"});
  draw("mesh.dp", {"1", "2", "4", "8"});
  draw("mesh.tp", {"1", "1", "2"});
  draw("mesh.replicate", {"1", "1", "2"});
  draw("batch.micro", {"1", "2", "4"});
  draw("batch.accumulate", {"1", "1", "2"});
  draw("batch.reduce", {"each", "last"});
  draw("recompute.policy", {"none", "full", "torchtitan-sac"});
  draw("recompute.layers", {"", "", "", "1/3", "layer % 2 == 0"});
  draw("loss.chunks", {"1", "1", "2", "8"});
  draw("precision.compute", {"fp32", "bf16"});
  draw("precision.master", {"fp32", "fp32", "bf16"});
  draw("shard.units", {"block", "torchtitan", "blocks:2", "size:256 KiB", "size:4 MiB"});
  draw("shard.reshard_after_forward", {"", "", "true", "false", "layer % 2 == 0"});
  draw("shard.prefetch_forward", {"", "", "", "0", "1", "2"});
  draw("shard.prefetch_backward", {"", "", "", "0", "1", "2"});
  draw("shard.gather_ring", {"", "", "", "3"});
  draw("shard.reduce_ring", {"", "", "1", "2"});
  draw("shard.reshard_size", {"", "", "", "2"});
  draw("optimizer.name", {"adamw", "sgd"});
  return sets;
}

TEST(Alive, EachKeyLowersItsRow) {
  std::map<std::string, int> rows;
  const int stride = Stride(8);
  for (uint32_t seed = 0; seed < 3000; seed += static_cast<uint32_t>(stride)) {
    const SetTexts sets = DrawSets(seed);
    const auto plan = PlanWith(sets);
    if (!plan) {
      continue;
    }
    const auto before = BytesByName(*plan);
    std::map<std::string, std::vector<std::map<std::string, Bytes>>> after;
    for (const AliveBuffers& alike : Explain(*plan).alive_at_peak) {
      if (alike.key.empty()) {
        continue;
      }
      rows[alike.key] += 1;
      if (!after.contains(alike.key)) {
        for (const Plan& other : PlansWithKey(*plan, sets, alike.key)) {
          after[alike.key].push_back(BytesByName(other));
        }
      }
      EXPECT_TRUE(std::ranges::any_of(
          after[alike.key],
          [&](std::map<std::string, Bytes>& bytes) { return bytes[alike.name] < before.at(alike.name); }))
          << alike.key << " does not lower " << alike.name << " of seed " << seed << ": "
          << testing::PrintToString(sets);
    }
  }
  for (const char* key : {"recompute.policy", "loss.chunks", "shard.reshard_after_forward", "mesh.dp", "mesh.tp",
                          "batch.micro", "shard.units", "shard.reshard_size"}) {
    EXPECT_GE(rows[key], 5) << key;
  }
}

TEST(Alive, NamesKeysOfAllKinds) {
  struct Case {
    SetTexts sets;
    std::string key;
    std::string name;
  };
  const std::string path = "recipes/published/llama3_8b.toml";
  const std::string text = ReadRecipeFile(path);
  for (const Case& c : {
           Case{{}, "recompute.policy", "model.layers.*.mlp.gate_proj"},
           Case{{}, "mesh.dp", "layers.*.exp_avg"},
           Case{{}, "loss.chunks", "logits"},
           Case{{}, "mesh.tp", "head.gradients"},
           Case{{"batch.micro=2"}, "batch.micro", "model.layers.*.mlp.down_proj"},
           Case{{"shard.reshard_after_forward=false"}, "shard.reshard_after_forward", "layers.*.gathered"},
           Case{{"shard.reshard_size=2"}, "shard.reshard_size", "layers.*.kept"},
           Case{{"shard.prefetch_backward=4", "recompute.policy=full", "loss.chunks=32"},
                "shard.prefetch_backward",
                "layers.*.gathered"},
       }) {
    const auto plan = CompileText(path, text, c.sets);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const std::vector<AliveBuffers> alive = Explain(*plan).alive_at_peak;
    EXPECT_TRUE(std::ranges::any_of(
        alive, [&](const AliveBuffers& alike) { return alike.key == c.key && alike.name == c.name; }))
        << c.key << " of " << c.name << ", with " << testing::PrintToString(c.sets);
  }
}

TEST(Alive, NamesRanksOnlyIfAccepted) {
  struct Case {
    std::string recipe;
    SetTexts sets;
    std::string key;
    bool is_named;
  };
  const std::string published = "recipes/published/";
  const std::string pinned = "recipes/quickstart.toml";
  for (const Case& c : {
           Case{published + "llama3_8b.toml", {}, "mesh.tp", true},
           Case{published + "llama3_8b.toml", {"mesh.hosts=2", "shard.gather_into=host"}, "mesh.tp", false},
           Case{published + "llama3_8b.toml", {"model.kv_heads=1"}, "mesh.tp", false},
           Case{published + "llama3_8b.toml", {"model.ffn=14337"}, "mesh.tp", false},
           Case{published + "llama3_8b_32x8.toml", {}, "mesh.tp", false},
           Case{published + "llama3_405b.toml", {}, "mesh.tp", false},
           Case{published + "llama3_405b.toml", {"model.kv_heads=16"}, "mesh.tp", true},
           Case{pinned, {}, "mesh.dp", false},
           Case{pinned, {"batch.micro=4"}, "mesh.dp", true},
           Case{pinned, {"batch.micro=4", "batch.accumulate=2"}, "mesh.dp", false},
       }) {
    const std::string text = ReadRecipeFile(c.recipe);
    const auto plan = CompileText(c.recipe, text, c.sets);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const std::vector<AliveBuffers> alive = Explain(*plan).alive_at_peak;
    const bool is_named = std::ranges::any_of(alive, [&](const AliveBuffers& alike) { return alike.key == c.key; });
    EXPECT_EQ(is_named, c.is_named) << c.key << " of " << c.recipe << ", with " << testing::PrintToString(c.sets);
    SetTexts more = c.sets;
    const Axis axis = c.key == "mesh.dp" ? Axis::Dp : Axis::Tp;
    more.push_back(fmt::format("{}={}", c.key, 2 * plan->mesh.size(axis)));
    EXPECT_EQ(CompileText(c.recipe, text, more).ok(), c.is_named) << testing::PrintToString(more);
  }
}

}  // namespace
}  // namespace shardc
