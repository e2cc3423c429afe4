// Models of Hugging Face as seeds: what config.json, index and headers are taken for, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <random>

#include "compiler/base/half.h"
#include "compiler/checkpoint/published_config.h"
#include "compiler/checkpoint/seed_contents.h"
#include "compiler/keys/toml_value.h"
#include "tests/support/published_files.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using nlohmann::json;
using testing::HasSubstr;

TEST(Half, WidensEveryPattern) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const float widened = Load(Half{static_cast<uint16_t>(bits)});
    const uint32_t exponent = bits >> 10U & 0x1FU;
    const double fraction = bits & 0x3FFU;
    if (exponent == 0x1F && fraction != 0) {
      ASSERT_TRUE(std::isnan(widened)) << bits;
      continue;
    }
    const double magnitude = exponent == 0x1F ? INFINITY
                             : exponent == 0  ? std::ldexp(fraction, -24)
                                              : std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
    ASSERT_EQ(widened, static_cast<float>(magnitude) * (bits >= 0x8000 ? -1.0F : 1.0F)) << bits;
    ASSERT_EQ(std::signbit(widened), bits >= 0x8000) << bits;
  }
}

/// Returns the keys of [model] that a config.json gives, or why it gives none.
auto ModelOf(const json& config) -> std::string {
  const auto read = ReadPublishedConfig(config.dump());
  if (!read) {
    return read.error().message;
  }
  std::map<std::string_view, std::string> values;
  ForEachKey(read->model, [&](const KeyInfo& key, const auto& leaf) {
    if (leaf) {
      values[key.name] = WriteToml(*leaf);
    }
  });
  std::string text;
  for (const auto& [key, value] : values) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  }
  return text;
}

TEST(PublishedConfig, HasDefaultsOfItsClass) {
  // Source: the classes of transformers 5.23, without arguments.
  EXPECT_EQ(ModelOf({{"architectures", {"LlamaForCausalLM"}}}),
            "family=\"llama\" ffn=11008 heads=32 hidden=4096 layers=32 norm_eps=1e-06 rope_theta=10000.0 seq=2048 "
            "tied=false vocab=32000");
  EXPECT_EQ(ModelOf({{"architectures", {"MistralForCausalLM"}}, {"sliding_window", nullptr}}),
            "family=\"llama\" ffn=14336 heads=32 hidden=4096 kv_heads=8 layers=32 norm_eps=1e-06 rope_theta=10000.0 "
            "seq=131072 tied=false vocab=32000");
  EXPECT_EQ(ModelOf({{"model_type", "qwen2"}}),
            "family=\"qwen2\" ffn=22016 heads=32 hidden=4096 kv_heads=32 layers=32 norm_eps=1e-06 rope_theta=10000.0 "
            "seq=32768 tied=false vocab=151936");
  EXPECT_EQ(ModelOf({{"architectures", nullptr}, {"model_type", "qwen3"}}),
            "family=\"qwen3\" ffn=22016 head_dim=128 heads=32 hidden=4096 kv_heads=32 layers=32 norm_eps=1e-06 "
            "rope_theta=10000.0 seq=32768 tied=false vocab=151936");
  EXPECT_EQ(ModelOf({{"architectures", {"Phi3ForCausalLM"}}}),
            "family=\"llama\" ffn=8192 heads=32 hidden=3072 layers=32 norm_eps=1e-05 rope_theta=10000.0 seq=4096 "
            "tied=false vocab=32064");
}

TEST(PublishedConfig, ReadsPhi4) {
  // Source: config.json of microsoft/phi-4.
  EXPECT_EQ(ModelOf(json::parse(R"({"_name_or_path": "pytorch_phi4", "architectures": ["Phi3ForCausalLM"],
                "attention_bias": false, "attention_dropout": 0.0, "bos_token_id": 100257, "embd_pdrop": 0.0,
                "eos_token_id": 100265, "hidden_act": "silu", "hidden_size": 5120, "initializer_range": 0.02,
                "intermediate_size": 17920, "max_position_embeddings": 16384, "model_type": "phi3",
                "num_attention_heads": 40, "num_hidden_layers": 40, "num_key_value_heads": 10,
                "original_max_position_embeddings": 16384, "pad_token_id": 100349, "resid_pdrop": 0.0,
                "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 250000, "sliding_window": null,
                "tie_word_embeddings": false, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 100352})")),
            "family=\"llama\" ffn=17920 heads=40 hidden=5120 kv_heads=10 layers=40 norm_eps=1e-05 "
            "rope_theta=250000.0 seq=16384 tied=false vocab=100352");
}

TEST(PublishedConfig, ReadsKeysOfEveryClass) {
  // Source: json.dump(config.to_dict()) of transformers 4.57.
  const json of_every_class = json::parse(R"({"use_bfloat16": false, "tf_legacy_loss": false, "pruned_heads": {},
      "is_encoder_decoder": false, "is_decoder": false, "cross_attention_hidden_size": null,
      "add_cross_attention": false, "tie_encoder_decoder": false})");
  for (const std::string type : {"llama", "mistral", "qwen2", "qwen3", "phi3"}) {
    json config = {{"model_type", type}, {"sliding_window", nullptr}};
    const std::string without = ModelOf(config);
    EXPECT_THAT(without, testing::StartsWith("family="));
    config.update(of_every_class);
    EXPECT_EQ(ModelOf(config), without);
  }
}

TEST(PublishedConfig, ReadsBothSpellings) {
  const json scaling = {
      {"factor", 8.0}, {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 8192}};
  json old = {{"architectures", {"LlamaForCausalLM"}},
              {"rope_theta", 500000.0},
              {"rope_scaling", scaling},
              {"torch_dtype", "bfloat16"}};
  old["rope_scaling"]["type"] = "llama3";
  json now = {{"architectures", {"LlamaForCausalLM"}}, {"rope_parameters", scaling}, {"dtype", "bfloat16"}};
  now["rope_parameters"]["rope_theta"] = 500000.0;
  now["rope_parameters"]["rope_type"] = "llama3";
  EXPECT_EQ(ModelOf(now), ModelOf(old));
  EXPECT_THAT(ModelOf(now), HasSubstr("rope_frequency=\"llama3_rope(8, 1, 4, 8192)\" rope_theta=500000.0"));
  EXPECT_EQ(ReadPublishedConfig(now.dump())->read.at("dtype"), "\"bfloat16\"");
  EXPECT_EQ(ReadPublishedConfig(old.dump())->read.at("torch_dtype"), "\"bfloat16\"");

  now["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 2.5}, {"rope_theta", 1e4}};
  EXPECT_THAT(ModelOf(now), HasSubstr("rope_frequency=\"linear_rope(2.5)\""));
  now["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 1e6}};
  EXPECT_THAT(ModelOf(now), testing::AllOf(HasSubstr("rope_theta=1000000.0"), testing::Not(HasSubstr("frequency"))));
}

TEST(PublishedConfig, RefusesWhatChangesTheForward) {
  struct Case {
    const char* members;
    const char* why;
  };
  for (const Case& of : {
           Case{R"({"hidden_act": "gelu"})",
                "`hidden_act` is \"gelu\", and this program computes LlamaForCausalLM with \"silu\" only"},
           {R"({"attention_bias": true})", "`attention_bias` is true, and this program computes"},
           {R"({"attention_dropout": 0.1})", "`attention_dropout` is 0.1, and this program computes"},
           {R"({"mlp_bias": null})", "`mlp_bias` is null, and this program computes"},
           {R"({"logit_scale": 2.0})", "the key `logit_scale` is not known for LlamaForCausalLM"},
           {R"({"logit_scale": 2.0, "a": 1, "layerdrop": 0})",
            "the keys `a`, `layerdrop`, `logit_scale` are not known for LlamaForCausalLM: they may change what the "
            "model "
            "computes; delete them from the file if they do not"},
           {R"({"is_encoder_decoder": true})", "`is_encoder_decoder` is true, and this program computes"},
           {R"({"is_decoder": true})", "`is_decoder` is true, and this program computes"},
           {R"({"add_cross_attention": true})", "`add_cross_attention` is true, and this program computes"},
           {R"({"cross_attention_hidden_size": 8})", "`cross_attention_hidden_size` is 8, and this program computes"},
           {R"({"use_sliding_window": false})", "the key `use_sliding_window` is not known for LlamaForCausalLM"},
           {R"({"quantization_config": {"bits": 4}})", "`quantization_config`: the weights are quantized; take"},
           {R"({"auto_map": {"AutoConfig": "x.Y"}})", "`auto_map`: the model is computed by code of its own"},
           {R"({"architectures": ["GPT2LMHeadModel"]})",
            "`architectures` is [\"GPT2LMHeadModel\"], which this program does not compute; take a model of Llama"},
           {R"({"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "quantization_config": {},
                "auto_map": {"AutoConfig": "x.Y"}})",
            "`architectures` is [\"DeepseekV3ForCausalLM\"], which this program does not compute"},
           {R"({"architectures": ["LlamaForCausalLM", "Qwen2ForCausalLM"]})", "which this program does not compute"},
           {R"({"architectures": null, "model_type": "gpt2"})", "`model_type` is \"gpt2\"; take a model of"},
           {R"({"model_type": "qwen2"})", "`model_type` is \"qwen2\", and that of LlamaForCausalLM is \"llama\""},
           {R"({"architectures": ["MistralForCausalLM"]})", "`sliding_window` is 4096 where it is absent (Mistral"},
           {R"({"architectures": ["MistralForCausalLM"], "sliding_window": 1024})", "`sliding_window` is 1024, and"},
           {R"({"architectures": ["Phi3ForCausalLM"], "sliding_window": 2047})", "`sliding_window` is 2047, and this"},
           {R"({"architectures": ["Phi3ForCausalLM"], "resid_pdrop": 0.1})", "`resid_pdrop` is 0.1, and this program"},
           {R"({"architectures": ["Phi3ForCausalLM"], "partial_rotary_factor": 0.75})",
            "`partial_rotary_factor` is 0.75"},
           {R"({"architectures": ["Phi3ForCausalLM"], "rope_scaling": {"type": "longrope", "short_factor": [1]}})",
            "`rope_scaling.type` is \"longrope\"; this program computes \"default\", \"linear\""},
           {R"({"original_max_position_embeddings": 8192})", "the key `original_max_position_embeddings` is not known"},
           {R"({"architectures": ["Qwen2ForCausalLM"], "use_sliding_window": true})", "`use_sliding_window` is true"},
           {R"({"architectures": ["Qwen3ForCausalLM"], "layer_types": ["full_attention", "sliding_attention"]})",
            "`layer_types` is [\"full_attention\",\"sliding_attention\"], and this program"},
           {R"({"rope_scaling": {"type": "yarn", "factor": 4}})",
            "`rope_scaling.type` is \"yarn\"; this program computes \"default\", \"linear\", \"llama3\""},
           {R"({"rope_scaling": {"rope_type": "llama3", "factor": 8}})",
            "`rope_scaling.low_freq_factor` is missing, and \"llama3\" needs a number"},
           {R"({"rope_scaling": {"type": "linear", "factor": 8, "mscale": 2}})", "`rope_scaling.mscale` is not known"},
           {R"({"rope_scaling": 4})", "`rope_scaling` is 4, which is no object"},
           {R"({"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5}})",
            "`rope_parameters.partial_rotary_factor` is 0.5"},
           {R"({"rope_parameters": {"rope_theta": 1e4}, "rope_theta": 5e5})", "delete the one that is wrong"},
           {R"({"rope_parameters": {"rope_theta": 1e4}, "rope_scaling": {"type": "default"}})",
            "it has `rope_parameters` and `rope_scaling`"},
           {R"({"rope_theta": "1e4"})", "`rope_theta` is \"1e4\", which is no number"},
           {R"({"dtype": "float32", "torch_dtype": "float16"})", "`dtype` and `torch_dtype` differ"},
           {R"({"torch_dtype": "int8"})", "`torch_dtype` is \"int8\"; weights are read as"},
           {R"({"hidden_size": 4096.5})", "`hidden_size` is 4096.5, and gives `model.hidden`, which takes a whole"},
           {R"({"hidden_size": null})", "`hidden_size` is null, and gives `model.hidden`"},
           {R"({"tie_word_embeddings": 1})", "`tie_word_embeddings` is 1, and gives `model.tied`, which takes true or"},
       }) {
    json config = {{"architectures", {"LlamaForCausalLM"}}};
    config.update(json::parse(of.members));
    EXPECT_THAT(ModelOf(config), HasSubstr(of.why)) << of.members;
  }
  EXPECT_THAT(ReadPublishedConfig("{").error().message, testing::StartsWith("config.json: "));
  EXPECT_THAT(ReadPublishedConfig("[]").error().message, HasSubstr("it holds no object"));
}

TEST(PublishedConfig, WritesFloatsWithPoint) {
  const auto config = ConfigOfModel("LlamaForCausalLM",
                                    {{"family", "llama"},
                                     {"layers", "2"},
                                     {"hidden", "32"},
                                     {"heads", "4"},
                                     {"kv_heads", "2"},
                                     {"head_dim", "8"},
                                     {"ffn", "48"},
                                     {"vocab", "64"},
                                     {"seq", "16"},
                                     {"norm_eps", "1"},
                                     {"tied", "false"},
                                     {"rope_theta", "10000"},
                                     {"rope_frequency", "llama3_rope(8, 1, 4, 8192)"}},
                                    DType::F32, {});
  ASSERT_TRUE(config) << config.error().message;
  for (const char* const line :
       {"\"rms_norm_eps\": 1.0,", "\"rope_theta\": 10000.0,", "\"factor\": 8.0,", "\"low_freq_factor\": 1.0,",
        "\"high_freq_factor\": 4.0,", "\"original_max_position_embeddings\": 8192\n", "\"hidden_size\": 32,"}) {
    EXPECT_THAT(*config, HasSubstr(line));
  }
}

TEST(PublishedConfig, MutantsAreReadOrRefused) {
  json config = PublishedFiles::Make("qwen3", "BF16").config;
  config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 2.0}};
  const std::string text = config.dump();
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string mutant = text;
    for (uint32_t change = 0; change <= random() % 3; ++change) {
      const size_t at = random() % mutant.size();
      const char other = text[random() % text.size()];
      switch (random() % 3) {
        case 0: mutant[at] = other; break;
        case 1: mutant.insert(at, 1, other); break;
        default: mutant.erase(at, 1 + random() % 8);
      }
    }
    const auto read = ReadPublishedConfig(mutant);
    refused += read ? 0 : 1;
    EXPECT_TRUE(read || read.error().message.starts_with("config.json: ")) << mutant;
  }
  EXPECT_GT(refused, 2500);
}

class PublishedModelTest : public testing::Test {
 protected:
  auto directory() const -> std::string { return folder_ / "model"; }
  /// Writes the files again, changes them, and reads what is there.
  auto Read(int num_files, const std::function<void(PublishedFiles&)>& before = {},
            const std::function<void()>& after = {}) const -> ErrorOr<SeedContents> {
    std::filesystem::remove_all(directory());
    PublishedFiles files = PublishedFiles::Make("llama", "BF16");
    if (before) {
      before(files);
    }
    files.Write(directory(), num_files);
    if (after) {
      after();
    }
    return ReadSeedContents(*OpenDirectory(PosixFs(), directory()));
  }
  auto Why(int num_files, const std::function<void(PublishedFiles&)>& before,
           const std::function<void()>& after = {}) const -> std::string {
    const auto contents = Read(num_files, before, after);
    return contents ? "read" : contents.error().message;
  }
  auto ChangeIndex(const std::function<void(json&)>& change) const -> void {
    const std::string path = directory() + "/model.safetensors.index.json";
    json index = json::parse(ReadText(path));
    change(index["weight_map"]);
    WriteText(path, index.dump());
  }
  /// Replaces a file, or the index, by something else.
  auto Remove(const std::string& name) const -> void { std::filesystem::remove(directory() + "/" + name); }

  TemporaryFolder folder_;
};

constexpr const char* Second = "model-00002-of-00003.safetensors";

TEST_F(PublishedModelTest, IsReadFromOneFileAndFromThree) {
  const auto one = Read(1);
  const auto three = Read(3);
  ASSERT_TRUE(one.ok()) << one.error().message;
  ASSERT_TRUE(three.ok()) << three.error().message;
  const PublishedFiles files = PublishedFiles::Make("llama", "BF16");
  ASSERT_EQ(one->manifest.tensors.size(), files.tensors.size());
  for (const auto& [name, tensor] : files.tensors) {
    for (const SeedContents* const contents : {&*one, &*three}) {
      const ManifestTensor& there = contents->manifest.tensors.at(name);
      EXPECT_EQ(std::vector<int64_t>(there.shape.begin(), there.shape.end()), tensor.shape);
      EXPECT_EQ(there.dtype, DType::BF16);
    }
  }
  EXPECT_EQ(one->manifest.recipe, three->manifest.recipe);
  EXPECT_EQ(three->manifest.files.size(), 3U);
  EXPECT_NE(one->digest, three->digest);
}

TEST_F(PublishedModelTest, DigestIsOfWhatIsRead) {
  const std::string digest = Read(3)->digest;
  EXPECT_EQ(Read(3)->digest, digest);
  const auto with = [&](const json& members) {
    return Read(3, [&](PublishedFiles& files) { files.config.update(members); })->digest;
  };
  EXPECT_EQ(with({{"bos_token_id", 7}}), digest);
  EXPECT_NE(with({{"rms_norm_eps", 1e-6}}), digest);
  EXPECT_NE(with({{"rope_theta", 5001.0}}), digest);
  // Another index, header or size.
  EXPECT_NE(Read(3, {},
                 [&] {
                   WriteText(directory() + "/model.safetensors.index.json",
                             ReadText(directory() + "/model.safetensors.index.json") + "\n");
                 })
                ->digest,
            digest);
  EXPECT_NE(Read(3, [](PublishedFiles& files) { files.tensors["x"] = {{1}, "BF16", "ab"}; })->digest, digest);
  // Values are not read.
  EXPECT_EQ(Read(3, [](PublishedFiles& files) { files.tensors["lm_head.weight"].bytes[0] ^= 1; })->digest, digest);
}

TEST_F(PublishedModelTest, RecordReadsBack) {
  const auto contents = Read(3);
  Manifest manifest = contents->manifest;
  manifest.published->digest_read = contents->digest;
  manifest.published->bytes_read = 12;
  manifest.published->directory = "model";
  const auto again = SeedContentsFromRecord(ToText(manifest));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(again->manifest == manifest);
  EXPECT_EQ(again->digest, contents->digest);
}

TEST_F(PublishedModelTest, TensorsHaveTheirOwnTypes) {
  const auto contents = Read(1, [](PublishedFiles& files) {
    files.config["torch_dtype"] = "bfloat16";
    files.tensors["model.norm.weight"] = {{60}, "F32", std::string(240, '\0')};
  });
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  EXPECT_EQ(contents->manifest.tensors.at("model.norm.weight").dtype, DType::F32);
  EXPECT_EQ(contents->manifest.tensors.at("lm_head.weight").dtype, DType::BF16);
}

TEST_F(PublishedModelTest, BuffersAreNotRead) {
  const auto contents = Read(1, [](PublishedFiles& files) {
    files.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {{1}, "F32", "abcd"};
  });
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  EXPECT_FALSE(contents->manifest.tensors.contains("model.layers.0.self_attn.rotary_emb.inv_freq"));
}

TEST_F(PublishedModelTest, TiedHeadMayBeThere) {
  const auto tie = [](PublishedFiles& files) { files.config["tie_word_embeddings"] = true; };
  const auto both = Read(1, tie);
  ASSERT_TRUE(both.ok()) << both.error().message;
  EXPECT_EQ(both->manifest.published->copies,
            (std::map<std::string, std::string>{{"lm_head.weight", "model.embed_tokens.weight"}}));
  const auto remove = [](PublishedFiles& files) { files.tensors.erase("lm_head.weight"); };
  EXPECT_THAT(Why(1, remove), HasSubstr("it has no tensor lm_head.weight, and config.json does not say "
                                        "`tie_word_embeddings` true"));
  EXPECT_THAT(Why(1,
                  [&](PublishedFiles& files) {
                    tie(files);
                    files.tensors["lm_head.weight"] = {{2}, "BF16", "abcd"};
                  }),
              HasSubstr("and lm_head.weight is bf16[2], model.embed_tokens.weight bf16[257, 60]"));
}

TEST_F(PublishedModelTest, RefusesBrokenDirectories) {
  struct Case {
    int num_files;
    std::function<void()> change;
    std::string why;
  };
  const auto put = [&](const std::string& name, const std::string& text) {
    return [=, this] { WriteText(directory() + "/" + name, text); };
  };
  const auto first = [&](json& map) -> json& { return *map.begin(); };
  for (const Case& of : {
           Case{1, [&] { Remove("model.safetensors"); },
                "it has config.json, and neither model.safetensors nor model.safetensors.index.json; get the rest"},
           {1,
            [&] {
              Remove("model.safetensors");
              put("pytorch_model.bin", "x")();
            },
            "its weights are in pytorch_model.bin, which is a program of Python and is not read; open it in"},
           {1, put("model.safetensors.index.json", "{}"), "it has model.safetensors and model.safetensors.index.json"},
           {3, [&] { Remove(Second); },
            fmt::format("model.safetensors.index.json lists {}, which is not there", Second)},
           {3, [&] { ChangeIndex([&](json& map) { first(map) = Second; }); }, "; get the model's files again"},
           {3, [&] { ChangeIndex([&](json& map) { map.erase(map.begin()); }); },
            "model.safetensors.index.json does not list it; get the model's files again"},
           {3, [&] { ChangeIndex([&](json& map) { map["extra.weight"] = Second; }); },
            fmt::format("says that tensor extra.weight is in {}, which has none of this name", Second)},
           {3, [&] { ChangeIndex([&](json& map) { first(map) = "../x"; }); }, "expected the plain name of a file"},
           {3, [&] { ChangeIndex([&](json& map) { map = json::object(); }); }, "its \"weight_map\" is empty"},
           {3, put("model.safetensors.index.json", "{}"), "model.safetensors.index.json: \"weight_map\" is missing"},
           {3, put("model.safetensors.index.json", "{"), "model.safetensors.index.json: "},
           {3,
            [&] {
              std::filesystem::copy_file(directory() + "/" + Second, directory() + "/model-00003-of-00003.safetensors",
                                         std::filesystem::copy_options::overwrite_existing);
            },
            " is in model-00002-of-00003.safetensors and in model-00003-of-00003.safetensors; get the model's files"},
           {1, put("model.safetensors", std::string(7, 'x')), "7 bytes are no safetensors file; get the file again"},
           {1,
            [&] {
              const std::string text = ReadText(directory() + "/model.safetensors");
              WriteText(directory() + "/model.safetensors", text.substr(0, text.size() - 1));
            },
            "its tensors take "},
           {1,
            [&] {
              Remove("model.safetensors");
              std::filesystem::create_symlink("/dev/null", directory() + "/model.safetensors");
            },
            "/model.safetensors is a link, a FIFO or another thing that is no regular file; put the files themselves"},
           {3,
            [&] {
              Remove(Second);
              ASSERT_EQ(mkfifo((directory() + "/" + Second).c_str(), 0600), 0);
            },
            std::string(Second) + " is a link, a FIFO"},
           {1,
            [&] {
              Remove("config.json");
              std::filesystem::create_symlink("/dev/zero", directory() + "/config.json");
            },
            "/config.json is a link, a FIFO"},
       }) {
    EXPECT_THAT(Why(of.num_files, {}, of.change), HasSubstr(of.why));
  }
}

TEST_F(PublishedModelTest, RefusesWrongTensors) {
  EXPECT_THAT(Why(1,
                  [](PublishedFiles& files) {
                    files.tensors["lm_head.weight"] = {{4}, "I8", "abcd"};
                  }),
              HasSubstr("tensor lm_head.weight in model.safetensors is I8; F32, F16 and BF16 are read"));
  EXPECT_THAT(Why(1,
                  [](PublishedFiles& files) {
                    files.tensors["lm_head.weight"] = {{0}, "BF16", ""};
                  }),
              HasSubstr("tensor lm_head.weight in model.safetensors is [0]; expected a plain name and at least one"));
  EXPECT_THAT(Why(1,
                  [](PublishedFiles& files) {
                    files.tensors["a b"] = {{1}, "BF16", "ab"};
                  }),
              HasSubstr("tensor a b in model.safetensors is [1]; expected a plain name"));
}

}  // namespace
}  // namespace shardc
