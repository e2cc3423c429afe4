// Typed keys: what is written reads back to the same, in both directions, and other values are refused.
#include "compiler/keys/plan_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "compiler/keys/model_sizes.h"
#include "compiler/keys/toml_value.h"

namespace shardc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

auto FaultOf(const std::string& key, const std::string& value) -> std::string {
  const KeysRead read = ReadKeys({{key, value}});
  return read.faults.empty() ? "" : read.faults[0].message;
}

TEST(PlanKeys, AreReadByTypes) {
  const KeysRead read =
      ReadKeys({{"model.layers", "32"},
                {"model.tied", "true"},
                {"model.family", "\"qwen3\""},
                {"optimizer.lr", "0.001"},
                {"optimizer.betas", "[0.9, 0.95]"},
                {"optimizer.frozen", "[\"*norm*\", \"a\\\"b\"]"},
                {"recompute.layers", "\"layer % 2 == 0\""},
                {"data.scan", "\"4 GiB\""},
                {"start.first", "{ seed = \"base\", missing = [\"x\"] }"},
                {"init.rule", "[{ match = \"*\", value = \"normal(0, 1)\" }, { match = \"x\", value = 0 }]"}});
  EXPECT_THAT(read.faults, IsEmpty());
  EXPECT_EQ(read.keys.model.layers, 32);
  EXPECT_EQ(read.keys.model.tied, true);
  EXPECT_EQ(read.keys.model.family, Family::Qwen3);
  EXPECT_EQ(read.keys.optimizer.lr, Formula{"0.001"});
  EXPECT_THAT(*read.keys.optimizer.betas, ElementsAre(0.9, 0.95));
  EXPECT_THAT(*read.keys.optimizer.frozen, ElementsAre("*norm*", "a\"b"));
  EXPECT_EQ(read.keys.start.first->seed, "base");
  EXPECT_FALSE(read.keys.start.first->unused);
  ASSERT_EQ(read.keys.init.rule.size(), 2U);
  EXPECT_EQ(read.keys.init.rule[1].value, Formula{"0"});
  EXPECT_FALSE(read.keys.model.heads);
}

TEST(PlanKeys, AreWrittenAsRead) {
  const std::map<std::string, std::string> recipe{
      {"model.rope_theta", "10000.0"},
      {"model.rope_frequency", "\"linear_rope(4)\""},
      {"mesh.dp", "8"},
      {"shard.reshard_after_forward", "\"layer < layers - 1\""},
      {"recompute.layers", "true"},
      {"optimizer.group", "[{ match = \"*norm*\", weight_decay = 0.0, lr_scale = 1.0 }]"},
      {"data.tokens", "[\"a\\u001F.bin\", \"b.bin\"]"},
      {"data.scan", "0"},
      {"start.first", "\"scratch\""}};
  std::map<std::string, std::string> written;
  for (const RecipeEntry& entry : WriteKeys(ReadKeys(recipe).keys)) {
    written[entry.key] = entry.value;
  }
  EXPECT_EQ(written, recipe);
}

TEST(PlanKeys, RefuseOtherValues) {
  EXPECT_EQ(FaultOf("model.layers", "\"32\""),
            "the line `recipe model.layers` has \"32\", and the key takes a whole number from 0 to 65536");
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"model.layers", "3.5"},
                                                        {"model.layers", "-1"},
                                                        {"model.layers", "65537"},
                                                        {"model.layers", "12345678901234567890123"},
                                                        {"model.layers", ""},
                                                        {"model.norm_eps", "nan"},
                                                        {"model.tied", "\"true\""},
                                                        {"model.family", "\"mamba\""},
                                                        {"model.family", "llama"},
                                                        {"optimizer.frozen", "[\"a\", 1]"},
                                                        {"optimizer.frozen", "[\"a\""},
                                                        {"optimizer.frozen", "\"a\""},
                                                        {"data.scan", "\"4 G\""},
                                                        {"data.scan", "4"},
                                                        {"run.run", "1"},
                                                        {"init.rule", "[]"},
                                                        {"init.rule", "[{ match = \"*\" }]"},
                                                        {"init.rule", "[{ match = \"*\", value = 1, more = 2 }]"},
                                                        {"init.rule", "[{ match = \"*\", match = \"x\", value = 1 }]"},
                                                        {"start.first", "{ missing = [\"x\"] }"},
                                                        {"start.first", "{ seed = \"x\", other = 1 }"},
                                                        {"data.tokens", "[\"a\\n\"]"},
                                                        {"data.tokens", "[\"a\\u00FF\"]"},
                                                        {"data.tokens", "[\"a\\\"]"}}) {
    EXPECT_NE(FaultOf(key, value), "") << key << " " << value;
  }
  EXPECT_THAT(FaultOf("foo.bar", "1"), HasSubstr("`foo.bar` is no key of a recipe"));
}

TEST(PlanKeys, DifferByValues) {
  const PlanKeys a = ReadKeys({{"optimizer.eps", "1e-08"}, {"mesh.dp", "2"}, {"train.steps", "5"}}).keys;
  const PlanKeys b = ReadKeys({{"optimizer.eps", "0.00000001"}, {"mesh.tp", "2"}, {"train.steps", "6"}}).keys;
  std::vector<std::string> texts;
  for (const KeyDifference& difference : DifferencesOf(a, b)) {
    texts.push_back(fmt::format("{}: {} {}", difference.key, difference.a, difference.b));
  }
  EXPECT_THAT(texts, ElementsAre("mesh.dp: 2 ", "mesh.tp:  2", "train.steps: 5 6"));
  EXPECT_EQ(ValueText(ReadKeys({{"shard.units", "\"blocks:2\""}}).keys, "shard.units"), "blocks:2");
  EXPECT_EQ(ValueText(a, "shard.units"), "");
}

TEST(PlanKeys, GiveSizesWithDefaults) {
  const ModelSizes sizes =
      ResolveModel(ReadKeys({{"model.family", "\"llama\""}, {"model.hidden", "64"}, {"model.heads", "4"}}).keys);
  EXPECT_EQ(sizes.kv_heads, 4);
  EXPECT_EQ(sizes.head_dim, 16);
  EXPECT_EQ(sizes.rope_theta, 10000.0);
}

TEST(TomlValue, EndsWithItsText) {
  for (const char* text :
       {"1 ", " 1", "\"a\" ", "[1] ]", "{ a = 1 }x", "\"a", "\"", "[1,2]", "{a = 1}", "[1", "[", "{ ", "1979-05-27"}) {
    EXPECT_FALSE(ReadToml(text)) << text;
  }
  EXPECT_EQ(ReadToml("\"a\\\\\\\"b\"")->text, "a\\\"b");
  EXPECT_EQ(ReadToml("[[1], []]")->items.size(), 2U);
}

}  // namespace
}  // namespace shardc
