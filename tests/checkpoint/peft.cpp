// Adapters of peft as a start: what adapter_config.json is taken for, compared with what peft made of it, and which
// configurations, tensors and folders are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "compiler/checkpoint/peft_adapter.h"
#include "tests/support/published_files.h"
#include "tests/support/repository.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Ordered = nlohmann::ordered_json;

/// Returns a file or folder that tests/parity/transformers/make_adapters.py made.
auto FixtureOf(const std::string& name) -> std::string { return RepositoryPath("tests/support/peft/" + name); }

TEST(PeftConfig, GivesModulesWhatPeftDoes) {
  // In the order of the texts: the first pattern that matches holds.
  const Ordered cases = Ordered::parse(ReadText(FixtureOf("configs.json")));
  ASSERT_EQ(cases.size(), 22U);
  int64_t num_adapted = 0;
  for (const Ordered& of : cases) {
    const auto config = ReadPeftConfig(of.at("config").dump());
    ASSERT_TRUE(config.ok()) << of.at("config").dump() << config.error().message;
    const auto again = ReadPeftConfig(PeftConfigText(config->read));
    ASSERT_TRUE(again.ok()) << again.error().message;
    for (const auto& [module, expected] : of.at("modules").items()) {
      for (const PeftConfig* const read : {&*config, &*again}) {
        const auto adapter = read->AdapterOf(module);
        ASSERT_EQ(adapter.has_value(), !expected.is_null()) << module << of.at("config").dump();
        if (adapter) {
          ++num_adapted;
          EXPECT_EQ(adapter->rank, expected.at(0)) << module << of.at("config").dump();
          EXPECT_EQ(adapter->scale, expected.at(1)) << module << of.at("config").dump();
        }
      }
    }
  }
  EXPECT_GT(num_adapted, 300);
}

/// Returns the reason why the configuration of a plain adapter with these members is refused.
auto WhyNot(const json& members) -> std::string {
  json config = json::parse(ReadText(FixtureOf("all/adapter_config.json")));
  config.update(members);
  const auto read = ReadPeftConfig(config.dump());
  return read ? "read" : read.error().message;
}

TEST(PeftConfig, RefusesWhatIsMoreThanTwoMatrices) {
  struct Case {
    json members;
    std::string why;
  };
  for (const auto& [members, why] : std::vector<Case>{
           {{{"use_dora", true}}, "adapter_config.json: `use_dora` is true: DoRA scales each row"},
           {{{"bias", "lora_only"}}, "`bias` is \"lora_only\": biases were trained beside"},
           {{{"lora_bias", true}}, "`lora_bias` is true"},
           {{{"modules_to_save", {"lm_head"}}}, "`modules_to_save` is [\"lm_head\"]: whole modules were trained"},
           {{{"trainable_token_indices", {1, 2}}}, "`trainable_token_indices` is [1,2]"},
           {{{"target_parameters", {"mlp.experts.down_proj"}}}, "adapters of parameters, such as those of experts"},
           {{{"fan_in_fan_out", true}}, "`fan_in_fan_out` is true"},
           {{{"init_lora_weights", "pissa"}}, "`init_lora_weights` is \"pissa\": with this start the base"},
           {{{"init_lora_weights", "pissa_niter_16"}}, "is \"pissa_niter_16\""},
           {{{"init_lora_weights", "olora"}}, "is \"olora\""},
           {{{"init_lora_weights", "corda"}}, "is \"corda\""},
           {{{"init_lora_weights", "loftq"}}, "is \"loftq\""},
           {{{"init_lora_weights", "mica"}}, "is \"mica\""},
           {{{"init_lora_weights", "lora_ga"}}, "is \"lora_ga\""},
           {{{"alora_invocation_tokens", {1}}}, "`alora_invocation_tokens` is [1]"},
           {{{"use_qalora", true}}, "`use_qalora`"},
           {{{"use_bdlora", {{"nblocks", 2}}}}, "`use_bdlora`"},
           {{{"kasa_config", {{"beta", 1}}}}, "`kasa_config`"},
           {{{"velora_config", {{"num_groups", 1}}}}, "`velora_config`"},
           {{{"monteclora_config", {{"num_samples", 1}}}}, "`monteclora_config`"},
           {{{"arrow_config", {{"top_k", 1}}}}, "`arrow_config`"},
           {{{"layer_replication", {{0, 2}, {1, 2}}}}, "`layer_replication`"},
           {{{"megatron_config", {{"x", 1}}}}, "`megatron_config`"},
           {{{"peft_type", "IA3"}}, "`peft_type` is \"IA3\"; only \"LORA\" is read; merge it into its base by peft"},
           {{{"peft_type", nullptr}}, "`peft_type` is missing"},
           {{{"new_variant", 1}}, "the key `new_variant` is not known, and is 1: it may change"},
           {{{"r", 0}}, "`r` is 0; expected a rank"},
           {{{"r", 2.5}}, "`r` is 2.5"},
           {{{"lora_alpha", "8"}}, "`lora_alpha` is \"8\"; expected an alpha"},
           {{{"use_rslora", 1}}, "`use_rslora` is 1; expected true or false"},
           {{{"rank_pattern", {{"q_proj", -1}}}}, "`rank_pattern`: \"q_proj\" is -1; expected a rank"},
           {{{"rank_pattern", {1}}}, "`rank_pattern` is [1]; expected an object"},
           {{{"alpha_pattern", {{"(q", 1}}}}, "`alpha_pattern`: the pattern \"(q\" is not read"},
           {{{"alpha_pattern", {{"(?P<x>q)", 1}}}}, "is not read"},
           {{{"alpha_pattern", {{"\\Aq", 1}}}}, "the pattern \"\\Aq\" is not read (\\A); write names of modules"},
           {{{"target_modules", nullptr}}, "`target_modules` names no module"},
           {{{"target_modules", json::array()}}, "`target_modules` names no module"},
           {{{"target_modules", {1}}}, "`target_modules` is [1]; expected a list of names"},
           {{{"target_modules", std::string(5000, 'q')}}, "a pattern has 5000 characters"},
           {{{"target_modules", ".*"}, {"layers_to_transform", {1}}},
            "`layers_to_transform` is there beside a pattern"},
           {{{"layers_to_transform", {-1}}}, "`layers_to_transform` is [-1]; expected numbers"},
           {{{"layers_pattern", "(a|b)"}}, "`layers_pattern` is \"(a|b)\"; expected the name"},
       }) {
    EXPECT_THAT(WhyNot(members), HasSubstr(why)) << members;
  }
  // Keys that are there and mean nothing.
  for (const json& members : {json{{"bias", "none"}}, json{{"init_lora_weights", "eva"}, {"eva_config", {{"rho", 2}}}},
                              json{{"init_lora_weights", false}}, json{{"lora_dropout", 0.1}},
                              json{{"modules_to_save", json::array()}}, json{{"new_variant", nullptr}},
                              json{{"base_model_name_or_path", "meta-llama/Llama-3.1-8B"}, {"task_type", "SEQ_CLS"}}}) {
    EXPECT_EQ(WhyNot(members), "read") << members;
  }
  for (const char* const text : {"[]", "{", "", "{\"r\": 1, \"r\": 2}"}) {
    EXPECT_FALSE(ReadPeftConfig(text).ok()) << text;
  }
}

TEST(PeftConfig, HasRowForEachKeyOfPeft) {
  // All keys of a saved configuration with values that are never refused as unknown.
  const json saved = json::parse(ReadText(FixtureOf("all/adapter_config.json")));
  EXPECT_GT(saved.size(), 35U);
  for (const auto& [key, value] : saved.items()) {
    EXPECT_THAT(WhyNot({{key, "x"}}), testing::Not(HasSubstr("is not known"))) << key;
  }
}

class PeftAdapterTest : public testing::Test {
 protected:
  auto directory() const -> std::string { return folder_ / "adapter"; }
  /// Copies an adapter that peft wrote, and changes its tensors and its configuration.
  auto Why(const std::function<void(PublishedTensors&, json&)>& change, const std::string& fixture = "all") const
      -> std::string {
    std::filesystem::remove_all(directory());
    std::filesystem::create_directory(directory());
    auto tensors = ReadSafetensors(FixtureOf(fixture + "/adapter_model.safetensors"));
    json config = json::parse(ReadText(FixtureOf(fixture + "/adapter_config.json")));
    change(tensors, config);
    WriteText(directory() + "/adapter_config.json", config.dump());
    WriteText(directory() + "/adapter_model.safetensors", SafetensorsFile(tensors));
    const auto read = Read();
    return read ? "read" : read.error().message;
  }
  auto Read() const -> ErrorOr<SeedContents> { return ReadPeftAdapter(*OpenDirectory(PosixFs(), directory())); }

  TemporaryFolder folder_;
};

constexpr const char* Down0 = "base_model.model.model.layers.0.mlp.down_proj.lora_A.weight";

TEST_F(PeftAdapterTest, IsReadAsPeftWritesIt) {
  for (const char* const name : {"all", "patterns"}) {
    const auto read = ReadPeftAdapter(*OpenDirectory(PosixFs(), FixtureOf(name)));
    ASSERT_TRUE(read.ok()) << read.error().message;
    const auto again = SeedContentsFromRecord(read->text);
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_TRUE(again->manifest == read->manifest);
    EXPECT_EQ(again->digest, read->digest);
    const auto config = PeftConfigOf(again->manifest);
    ASSERT_TRUE(config.ok()) << config.error().message;
    for (const auto& [tensor, of] : read->manifest.tensors) {
      const std::string parameter = ParameterOfPeft(tensor);
      const auto adapter = config->AdapterOf(parameter.substr(0, parameter.find(".lora_")));
      ASSERT_TRUE(adapter) << tensor;
      EXPECT_EQ(of.shape[parameter.ends_with(DownSuffix) ? 0 : 1], adapter->rank) << tensor;
    }
  }
}

TEST_F(PeftAdapterTest, OtherTypesAndNamesAreRead) {
  EXPECT_EQ(Why([](PublishedTensors& tensors, json&) {
              for (auto& [name, tensor] : tensors) {
                tensor.dtype = name.find("lora_A") != std::string::npos ? "F16" : "BF16";
                tensor.bytes.resize(tensor.bytes.size() / 2);
              }
            }),
            "read");
  EXPECT_EQ(Read()->manifest.tensors.at(Down0).dtype, DType::F16);
  EXPECT_EQ(Why([](PublishedTensors& tensors, json&) {
              auto down = tensors.extract(Down0);
              down.key() = "base_model.model.model.layers.0.mlp.down_proj.lora_A.default.weight";
              tensors.insert(std::move(down));
            }),
            "read");
  EXPECT_EQ(ParameterOfPeft("base_model.model.model.layers.0.mlp.down_proj.lora_A.default.weight"),
            "model.layers.0.mlp.down_proj.lora_A.weight");
  EXPECT_EQ(ParameterOfPeft(Down0), "model.layers.0.mlp.down_proj.lora_A.weight");
  EXPECT_EQ(ParameterOfPeft("model.layers.0.mlp.down_proj.lora_A.weight"), "");
}

TEST_F(PeftAdapterTest, DigestIsOfWhatIsRead) {
  const auto digest = [&](const std::function<void(PublishedTensors&, json&)>& change) {
    EXPECT_EQ(Why(change), "read");
    return Read()->digest;
  };
  const std::string plain = digest([](PublishedTensors&, json&) {});
  EXPECT_EQ(digest([](PublishedTensors&, json& config) { config["lora_dropout"] = 0.5; }), plain);
  EXPECT_NE(digest([](PublishedTensors&, json& config) { config["lora_alpha"] = 9; }), plain);
  EXPECT_NE(digest([](PublishedTensors& tensors, json&) {
              tensors.at(Down0).dtype = "BF16";
              tensors.at(Down0).bytes.resize(tensors.at(Down0).bytes.size() / 2);
            }),
            plain);
}

TEST_F(PeftAdapterTest, RefusesOtherTensors) {
  struct Case {
    std::function<void(PublishedTensors&, json&)> change;
    std::string why;
  };
  const auto renamed = [](const std::string& name) {
    return [=](PublishedTensors& tensors, json&) {
      auto down = tensors.extract(Down0);
      down.key() = name;
      tensors.insert(std::move(down));
    };
  };
  const std::string module = "base_model.model.model.layers.0.mlp.down_proj";
  for (const Case& of : {
           Case{[](PublishedTensors&tensors, json&) { tensors.erase(Down0); },
                "has model.layers.0.mlp.down_proj.lora_B.weight without model.layers.0.mlp.down_proj.lora_A.weight"},
           {[](PublishedTensors&tensors, json&) { tensors.clear(); }, "adapter_model.safetensors has no tensor"},
           {[](PublishedTensors&tensors, json&) {
              tensors[std::string(Down0, strlen(Down0) - 6) + "default.weight"] = tensors[Down0];
            },
            "has model.layers.0.mlp.down_proj.lora_A.weight twice"},
           {[](PublishedTensors&, json&config) { config["target_modules"] = {"q_proj"}; },
            "adapter_config.json gives model.layers.0.mlp.down_proj no adapter, and adapter_model.safetensors has"},
           {[](PublishedTensors&, json&config) { config["r"] = 8; },
            "gives model.layers.0.mlp.down_proj rank 8, and model.layers.0.mlp.down_proj.lora_A.weight in "
            "adapter_model.safetensors is [4, 16]; correct `r` or `rank_pattern`"},
           {[](PublishedTensors&tensors, json&) { tensors.at(Down0).shape = {64}; }, "is [64]; expected a matrix"},
           {[](PublishedTensors&tensors, json&) { tensors.at(Down0).dtype = "I32"; },
            "is I32; F32, F16 and BF16 are read"},
           {renamed("model.layers.0.mlp.down_proj.lora_A.weight"),
            "its name does not begin with base_model.model., and peft"},
           {renamed(module + ".lora_magnitude_vector"), "it is of DoRA"},
           {renamed("base_model.model.model.embed_tokens.lora_embedding_A"), "it is of an adapter of an embedding"},
           {renamed(module + ".lora_A.other.weight"), "expected only `lora_A.weight` and `lora_B.weight`"},
           {renamed(module + ".lora_B.bias"), "expected only"},
           {renamed("base_model.model.lm_head.weight"), "it is a tensor of the base; save the adapter by"},
           {renamed("base_model.model.model.layers.0.mlp.experts.0.down_proj.lora_A.weight"),
            "it is of an adapter of experts"},
           {renamed("base_model.model.model.layers.0.mlp.experts.lora_A.weight"), "it is of an adapter of experts"},
       }) {
    EXPECT_THAT(Why(of.change), HasSubstr(of.why));
  }
  for (const auto& [name, why] : std::map<std::string, std::string>{
           {"dora", "`use_dora` is true"},
           {"embedding", "base_layer.weight in adapter_model.safetensors: it is a tensor of the base"}}) {
    EXPECT_THAT(Why([](PublishedTensors&, json&) {}, name), HasSubstr(why));
  }
}

TEST_F(PeftAdapterTest, RefusesBrokenFolders) {
  const auto after = [&](const std::function<void()>& change) {
    EXPECT_EQ(Why([](PublishedTensors&, json&) {}), "read");
    change();
    const auto read = Read();
    return read ? "read" : read.error().message;
  };
  const auto remove = [&](const char* name) { std::filesystem::remove(directory() + "/" + name); };
  EXPECT_THAT(after([&] { remove("adapter_model.safetensors"); }),
              HasSubstr("it has adapter_config.json without adapter_model.safetensors; get the rest"));
  EXPECT_THAT(after([&] {
                remove("adapter_model.safetensors");
                WriteText(directory() + "/adapter_model.bin", "x");
              }),
              HasSubstr("its weights are in adapter_model.bin, which is a program of Python and is not read"));
  EXPECT_THAT(after([&] { remove("adapter_config.json"); }),
              HasSubstr("it has no adapter_config.json; name the folder that peft's save_pretrained or"));
  EXPECT_THAT(after([&] {
                remove("adapter_config.json");
                WriteText(directory() + "/manifest.json", "x");
              }),
              HasSubstr("it is a checkpoint of a run; name it by `seed` alone"));
  EXPECT_THAT(after([&] {
                remove("adapter_config.json");
                std::filesystem::create_symlink(FixtureOf("all/adapter_config.json"),
                                                directory() + "/adapter_config.json");
              }),
              HasSubstr("is a link"));
  const std::string weights = ReadText(FixtureOf("all/adapter_model.safetensors"));
  for (const size_t size : {size_t{0}, size_t{7}, size_t{100}, weights.size() - 1}) {
    EXPECT_THAT(after([&] { WriteText(directory() + "/adapter_model.safetensors", weights.substr(0, size)); }),
                HasSubstr("get the file again"))
        << size;
  }
}

}  // namespace
}  // namespace shardc
