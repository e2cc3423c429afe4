// Recipes that `shardc new --from` makes of a model of Hugging Face, and plans of a large one from its headers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <utility>

#include "compiler/checkpoint/published_config.h"
#include "compiler/keys/model_sizes.h"
#include "compiler/model/model_family.h"
#include "tests/cli/program.h"
#include "tests/support/published_files.h"
#include "tests/support/repository.h"

namespace shardc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

auto RunNew(const std::vector<std::string>& arguments) -> Finished { return RunProgram(Shardc(), arguments); }

/// Returns the keys of config.json of Llama 3 70B that are not defaults.
auto Llama70B() -> json {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"hidden_size", 8192},
          {"intermediate_size", 28672},
          {"num_hidden_layers", 80},
          {"num_attention_heads", 64},
          {"num_key_value_heads", 8},
          {"vocab_size", 128256},
          {"max_position_embeddings", 8192},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 500000.0},
          {"rope_scaling", nullptr},
          {"tie_word_embeddings", false},
          {"torch_dtype", "bfloat16"}};
}

TEST(NewFrom, WritesSizesOfConfig) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "recipes");
  for (const std::string type : {"llama", "qwen2", "qwen3"}) {
    PublishedFiles::Make(type, "BF16").Write(folder / type, 3);
    const std::string path = folder / ("recipes/" + type + ".toml");
    const Finished made = RunProgram("/bin/sh", {"-c", fmt::format("cd {} && {} new recipes/{}.toml --from {}/",
                                                                   folder.path(), Shardc(), type, type)});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const std::string text = ReadText(path);
    EXPECT_THAT(text,
                AllOf(HasSubstr(fmt::format("family = \"{}\"\nlayers = 2\n", type)),
                      HasSubstr("# The model takes sequences of at most 64 tokens.\nseq = 64\n"),
                      HasSubstr("vocab = 257\n"), HasSubstr("norm_eps = 1e-05\ntied = false\nrope_theta = 5000.0\n"),
                      HasSubstr("; tools/tokenize_text.py makes them by the model's own tokenizer, and\n"),
                      Not(HasSubstr("tokenize --bytes")), HasSubstr("[start]\n"),
                      HasSubstr(fmt::format("first = {{ seed = \"../{}", type))));
    const Finished planned = RunNew({"plan", "--explain", path});
    EXPECT_EQ(planned.exit_code, 0) << planned.err;
    EXPECT_THAT(planned.err, Not(HasSubstr("seed")));
    const Finished warned = RunNew({"check", path, "--set", "model.rope_theta=10000.0", "--set", "model.seq=65"});
    EXPECT_EQ(warned.exit_code, 0) << warned.err;
    EXPECT_THAT(warned.err, AllOf(HasSubstr("[seed-of-another-model]"), HasSubstr("model.seq is 65, there 64")));
  }
}

TEST(NewFrom, CountsTypesOfTensors) {
  const TemporaryFolder folder;
  PublishedFiles files = PublishedFiles::Make("llama", "BF16");
  files.config["torch_dtype"] = "bfloat16";
  files.tensors["model.norm.weight"] = PublishedFiles::Make("llama", "F32").tensors.at("model.norm.weight");
  files.Write(folder / "model");
  const std::string path = folder / "r.toml";
  const Finished made = RunNew({"new", path, "--from", folder / "model"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(ReadText(path), HasSubstr(fmt::format("# Of its tensors 1 is f32 and {} are bf16. Each is read as",
                                                    files.tensors.size() - 1)));
  const Finished planned = RunNew({"plan", path});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, AllOf(HasSubstr("seed_tensor model.norm.weight f32["), HasSubstr("lm_head.weight bf16[")));
}

/// Writes config.json and headers of the tensors that it gives, in files of their real size, which have no data on
/// disk.
auto WriteSparse(const std::string& directory, const json& config, size_t num_files = 1) -> void {
  std::filesystem::create_directories(directory);
  WriteText(directory + "/config.json", config.dump());
  PlanKeys keys;
  keys.model = ReadPublishedConfig(config.dump())->model;
  const ModelSizes sizes = ResolveModel(keys);
  const ParameterSpecs specs = ParametersOf(ModelFamilyOf(*FromText<Family>(sizes.family)), sizes);
  json index = {{"metadata", json::object()}, {"weight_map", json::object()}};
  for (size_t file = 0; file < num_files; ++file) {
    const std::string name =
        num_files == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", file + 1, num_files);
    json header;
    int64_t offset = 0;
    for (size_t t = specs.size() * file / num_files; t < specs.size() * (file + 1) / num_files; ++t) {
      const int64_t end = offset + NumElements(specs[t].shape) * 2;
      header[specs[t].name] = {{"dtype", "BF16"}, {"shape", specs[t].shape}, {"data_offsets", {offset, end}}};
      index["weight_map"][specs[t].name] = name;
      offset = end;
    }
    const std::string text = header.dump();
    const uint64_t length = text.size();
    std::string begin(8, '\0');
    std::memcpy(begin.data(), &length, 8);
    WriteText(directory + "/" + name, begin + text);
    std::filesystem::resize_file(directory + "/" + name, 8 + text.size() + static_cast<size_t>(offset));
  }
  if (num_files > 1) {
    WriteText(directory + "/model.safetensors.index.json", index.dump());
  }
}

TEST(NewFrom, NamesThePreset) {
  const TemporaryFolder folder;
  // The keys of published config.json that give sizes, beside some that do not.
  const json llama2 = {{"architectures", {"LlamaForCausalLM"}}, {"intermediate_size", 11008}, {"rms_norm_eps", 1e-5},
                       {"max_position_embeddings", 4096},       {"pad_token_id", 0},          {"pretraining_tp", 1}};
  const json llama32 = {{"architectures", {"LlamaForCausalLM"}},
                        {"hidden_size", 2048},
                        {"head_dim", 64},
                        {"intermediate_size", 8192},
                        {"num_hidden_layers", 16},
                        {"num_key_value_heads", 8},
                        {"vocab_size", 128256},
                        {"rms_norm_eps", 1e-5},
                        {"rope_theta", 500000.0},
                        {"rope_scaling",
                         {{"factor", 32.0},
                          {"low_freq_factor", 1.0},
                          {"high_freq_factor", 4.0},
                          {"original_max_position_embeddings", 8192},
                          {"rope_type", "llama3"}}},
                        {"tie_word_embeddings", true}};
  const json qwen25 = {{"architectures", {"Qwen2ForCausalLM"}},
                       {"hidden_size", 896},
                       {"intermediate_size", 4864},
                       {"num_attention_heads", 14},
                       {"num_hidden_layers", 24},
                       {"num_key_value_heads", 2},
                       {"rope_theta", 1000000.0},
                       {"use_mrope", false},
                       {"sliding_window", 32768},
                       {"tie_word_embeddings", true}};
  const json qwen3 = {{"architectures", {"Qwen3ForCausalLM"}},
                      {"num_hidden_layers", 36},
                      {"num_key_value_heads", 8},
                      {"intermediate_size", 12288},
                      {"rope_theta", 1000000},
                      {"attention_bias", false}};
  for (const auto& [preset, config] : std::map<std::string, json>{{"llama2-7b", llama2},
                                                                  {"llama3-70b", Llama70B()},
                                                                  {"llama3.2-1b", llama32},
                                                                  {"qwen2.5-0.5b", qwen25},
                                                                  {"qwen3-8b", qwen3}}) {
    WriteSparse(folder / "model", config);
    const std::string path = folder / (preset + ".toml");
    ASSERT_EQ(RunNew({"new", path, "--from", folder / "model"}).exit_code, 0) << preset;
    EXPECT_THAT(ReadText(path), AllOf(HasSubstr("preset = \"" + preset + "\"\n"), Not(HasSubstr("hidden ="))));
  }
  // A model that takes shorter sequences than its preset.
  json shorter = llama2;
  shorter["max_position_embeddings"] = 2048;
  WriteSparse(folder / "model", shorter);
  ASSERT_EQ(RunNew({"new", folder / "short.toml", "--from", folder / "model"}).exit_code, 0);
  EXPECT_THAT(ReadText(folder / "short.toml"), HasSubstr("preset = \"llama2-7b\"\n# The model takes sequences of at "
                                                         "most 2048 tokens.\nseq = 2048\n"));
  json other = Llama70B();
  other["rms_norm_eps"] = 1e-6;
  WriteSparse(folder / "model", other);
  ASSERT_EQ(RunNew({"new", folder / "s.toml", "--from", folder / "model"}).exit_code, 0);
  EXPECT_THAT(ReadText(folder / "s.toml"), AllOf(Not(HasSubstr("preset =")), HasSubstr("hidden = 8192\n"),
                                                 HasSubstr("seq = 4096\n"), HasSubstr("norm_eps = 1e-06\n")));
}

TEST(NewFrom, RefusesWhatIsNoModel) {
  const TemporaryFolder folder;
  const auto why = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"new", folder / "r.toml"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished made = RunNew(arguments);
    EXPECT_NE(made.exit_code, 0);
    EXPECT_FALSE(std::filesystem::exists(folder / "r.toml"));
    return made.err;
  };
  EXPECT_THAT(why({"--from", folder / "none"}), HasSubstr("there is no such folder"));
  EXPECT_THAT(
      why({"--from", folder.path()}),
      HasSubstr(
          "it has neither manifest.json nor config.json; name a checkpoint, the directory of a run, or a model of"));
  EXPECT_THAT(why({"--from", RepositoryPath(SampleSeed)}),
              HasSubstr("it is a checkpoint of run base; take the recipe of that run"));
  EXPECT_THAT(why({"--from", folder.path(), "--preset", "llama3-8b"}), HasSubstr("give one of them"));
  PublishedFiles files = PublishedFiles::Make("llama", "BF16");
  files.config["logits_soft_cap"] = 30;
  files.Write(folder / "model");
  EXPECT_THAT(why({"--from", folder / "model"}), HasSubstr("the key `logits_soft_cap` is not known"));
}

TEST(NewFrom, RefusesWhatCheckWouldByItsKey) {
  const TemporaryFolder folder;
  const auto why = [&](const std::string& key, const nlohmann::json& value) {
    PublishedFiles files = PublishedFiles::Make("qwen2", "BF16");
    files.config[key] = value;
    files.Write(folder / "model");
    const Finished refused = RunProgram(Shardc(), {"new", folder / "r.toml", "--from", folder / "model"});
    EXPECT_EQ(refused.exit_code, 5) << key << refused.out;
    EXPECT_FALSE(std::filesystem::exists(folder / "r.toml"));
    std::filesystem::remove_all(folder / "model");
    return refused.err;
  };
  for (const char* const key : {"hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads",
                                "vocab_size", "max_position_embeddings", "rms_norm_eps", "rope_theta"}) {
    EXPECT_THAT(why(key, 0), HasSubstr(fmt::format("config.json: `{}` is 0, and gives `model.", key)));
  }
  EXPECT_THAT(why("max_position_embeddings", int64_t{1} << 62),
              HasSubstr("`max_position_embeddings` is 4611686018427387904, and gives `model.seq`, which takes 1 to "));
  EXPECT_THAT(why("num_hidden_layers", 7), HasSubstr("`num_hidden_layers` is 7, and the weights have tensors of "));
  EXPECT_THAT(why("layer_types", std::vector<std::string>(9, "full_attention")),
              HasSubstr("`layer_types` has 9 entries, and `num_hidden_layers` is "));
  EXPECT_THAT(why("num_attention_heads", 3), HasSubstr("`heads` is from `num_attention_heads`"));
  EXPECT_THAT(why("rope_scaling", {{"rope_type", "linear"}, {"factor", 0.0}}),
              HasSubstr("; it is from `rope_scaling`"));
}

TEST(NewFrom, NaNOfPythonIsTold) {
  const TemporaryFolder folder;
  PublishedFiles::Make("llama", "BF16").Write(folder / "model");
  for (const std::string word : {"NaN", "Infinity", "-Infinity"}) {
    WriteText(folder / "model/config.json", "{\"rms_norm_eps\": " + word + "}");
    EXPECT_THAT(RunProgram(Shardc(), {"new", folder / "r.toml", "--from", folder / "model"}).err,
                HasSubstr("config.json: `rms_norm_eps` is NaN or Infinity, which Python writes and JSON lacks; write a "
                          "number"));
  }
}

TEST(NewFrom, NamesTheWayToAModel) {
  const TemporaryFolder folder;
  PublishedFiles::Make("llama", "BF16").Write(folder / "model");
  for (const std::string path : {"adapter/adapter_config.json", "adapter/adapter_model.safetensors", "gguf/m.gguf",
                                 "dcp/.metadata", "dcp/__0_0.distcp", "alone/model.safetensors"}) {
    std::filesystem::create_directories(std::filesystem::path(folder / path).parent_path());
    WriteText(folder / path, "{}");
  }
  const std::string of_folder = "it is a file of a model; name its folder, model";
  const std::string of_adapter = "it is an adapter, which is no whole model; to train it on, name its model by";
  const std::string of_gguf = "it is GGUF, which is not read; take the model as transformers saves it";
  for (const auto& [from, says] : std::map<std::string, std::string>{
           {"model/config.json", of_folder},
           {"model/model.safetensors", of_folder},
           {"some-org/Some-Model-1B",
            "there is no such folder; if it is a name of the hub, `hf download some-org/"
            "Some-Model-1B --local-dir Some-Model-1B` makes the folder Some-Model-1B"},
           {"adapter", of_adapter},
           {"adapter/adapter_model.safetensors", of_adapter},
           {"gguf", of_gguf},
           {"gguf/m.gguf", of_gguf},
           {"dcp", "it is a distributed checkpoint of PyTorch (.metadata), which is not read; write a recipe of its"},
           {"alone/model.safetensors", "it is a file without the config.json of its model; put both"}}) {
    const Finished made =
        RunProgram("/bin/sh", {"-c", fmt::format("cd {} && {} new r.toml --from {}", folder.path(), Shardc(), from)});
    EXPECT_NE(made.exit_code, 0);
    EXPECT_THAT(made.err, HasSubstr(fmt::format("--from {}: {}", from, says)));
  }
}

TEST(NewFrom, AdaptersOfFusedModulesNeedFused) {
  const TemporaryFolder folder;
  PublishedFiles::Make("llama", "BF16").Fused().Write(folder / "model");
  ASSERT_EQ(RunNew({"new", folder / "r.toml", "--from", folder / "model"}).exit_code, 0);
  const std::string module = "base_model.model.model.layers.1.self_attn.qkv_proj.";
  std::filesystem::create_directory(folder / "adapter");
  WriteText(
      folder / "adapter/adapter_config.json",
      R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["qkv_proj"], "layers_to_transform": 1})");
  WriteText(folder / "adapter/adapter_model.safetensors",
            SafetensorsFile({{module + "lora_A.weight", {{2, 60}, "F32", std::string(480, '\0')}},
                             {module + "lora_B.weight", {{96, 2}, "F32", std::string(768, '\0')}}}));
  const Finished planned =
      RunNew({"plan", folder / "r.toml", "--set",
              fmt::format(R"(start.first={{ seed = "{}", adapter = "{}" }})", folder / "model", folder / "adapter"),
              "--set", "adapter.kind=lora", "--set", "adapter.rank=2", "--set", "adapter.alpha=4"});
  EXPECT_NE(planned.exit_code, 0);
  EXPECT_THAT(planned.err,
              HasSubstr("model.layers.1.self_attn.k_proj.weight has the A of model.layers.1.self_attn.qkv_proj there, "
                        "an A of its own here"));
  EXPECT_THAT(planned.err, HasSubstr("write into [adapter]: rank = 2, alpha = 4.0, fused = [\"qkv_proj\"], match = "));
}

TEST(NewFrom, PlansFusedTensorsWhole) {
  const TemporaryFolder folder;
  const PublishedFiles files = PublishedFiles::Make("llama", "BF16", true).Fused();
  files.Write(folder / "model", 3);
  const std::string path = folder / "r.toml";
  ASSERT_EQ(RunNew({"new", path, "--from", folder / "model"}).exit_code, 0);
  EXPECT_THAT(ReadText(path), HasSubstr("family = \"llama\"\nlayers = 2\n"));
  const Finished planned = RunNew({"plan", path});
  ASSERT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out,
              AllOf(HasSubstr("seed_tensor model.layers.1.self_attn.qkv_proj.weight bf16[96, 60]\n"),
                    HasSubstr("seed_tensor model.layers.0.mlp.gate_up_proj.weight bf16[204, 60]\n"),
                    Not(HasSubstr("seed_tensor model.layers.0.mlp.up_proj.weight")),
                    HasSubstr("seed('model.layers.1.self_attn.qkv_proj.weight', index(0) + 72, index(1))")));
  // Long lines are wrapped.
  const std::string explained = std::regex_replace(RunNew({"plan", "--explain", path}).out, std::regex("\\n +"), " ");
  EXPECT_THAT(explained, AllOf(HasSubstr("Phi3ForCausalLM of Hugging Face"), HasSubstr("20 parameters"),
                               HasSubstr("generated; if there is a tensor lm_head.weight, the start compares its bits "
                                         "with those of model.embed_tokens.weight"),
                               HasSubstr("mlp.gate_up_proj.weight', index(0) + 102, index(1))")));

  const auto why = [&](const std::function<void(PublishedFiles&)>& change) {
    PublishedFiles changed = files;
    change(changed);
    std::filesystem::remove_all(folder / "model");
    changed.Write(folder / "model");
    const Finished checked = RunNew({"plan", path});
    EXPECT_EQ(checked.exit_code, 3) << checked.err;
    return checked.err;
  };
  const std::string qkv = "model.layers.1.self_attn.qkv_proj.weight";
  EXPECT_THAT(why([&](PublishedFiles& changed) { changed.tensors.erase(qkv); }),
              HasSubstr("the seed's files do not fit its config.json: there is no " + qkv + " [seed-contradicts"));
  EXPECT_THAT(why([&](PublishedFiles& changed) {
                changed.tensors.at(qkv).shape = {95, 60};
                changed.tensors.at(qkv).bytes.resize(2 * 95 * 60);
              }),
              HasSubstr(qkv + " in model.safetensors is [95, 60], and config.json makes it [96, 60]"));
  EXPECT_THAT(why([&](PublishedFiles& changed) { changed.config["num_key_value_heads"] = 4; }),
              HasSubstr("qkv_proj.weight in model.safetensors is [96, 60], and config.json makes it [144, 60]"));
  EXPECT_THAT(why([&](PublishedFiles& changed) { changed.config["num_hidden_layers"] = 60000; }),
              HasSubstr("no model of 14 tensors has such sizes"));
  const std::string split = "model.layers.0.mlp.up_proj.weight";
  EXPECT_THAT(why([&](PublishedFiles& changed) {
                changed.tensors[split] = PublishedFiles::Make("llama", "BF16", true).tensors.at(split);
              }),
              HasSubstr("nothing uses the seed's " + split + " [seed-tensor-left]"));
}

/// Returns the processor time of all children that have ended. On a busy machine it is about what an idle one takes.
auto SecondsOfChildren() -> double {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(NewFrom, PlansFromHeadersAlone) {
  const TemporaryFolder folder;
  WriteSparse(folder / "model", Llama70B(), 30);
  ASSERT_EQ(RunNew({"new", folder / "r.toml", "--from", folder / "model"}).exit_code, 0);
  const auto planned = [&](const std::string& first) {
    std::vector<double> seconds;
    for (int i = 0; i < 3; ++i) {
      const double before = SecondsOfChildren();
      const Finished finished = RunNew({"plan", "--explain", folder / "r.toml", "--set", "mesh.dp=8", "--set",
                                        "mesh.tp=8", "--set", "start.first=" + first});
      seconds.push_back(SecondsOfChildren() - before);
      EXPECT_EQ(finished.exit_code, 0) << finished.err;
    }
    return *std::ranges::min_element(seconds);
  };
  const double from_scratch = planned("scratch");
  const double from_headers = planned("{ seed = \"model\" }");
  EXPECT_LT(from_headers, from_scratch + 0.3);
  fmt::print("plan --explain: {:.3f} s from scratch, {:.3f} s from headers\n", from_scratch, from_headers);
}

}  // namespace
}  // namespace shardc
