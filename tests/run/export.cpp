// Checkpoints as models of Hugging Face: what is exported is what a run begins from.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "compiler/base/bfloat16.h"
#include "tests/support/published_files.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// Returns the tensors of a file that asks transformers to take them as PyTorch's.
auto ReadWeights(const std::string& path) -> PublishedTensors {
  EXPECT_THAT(ReadText(path).substr(0, 100), HasSubstr(R"("__metadata__":{"format":"pt"})"));
  return ReadSafetensors(path);
}

auto Export(const std::string& checkpoint, const std::string& output, std::vector<std::string> more = {}) -> Outcome {
  std::vector<std::string> command{SHARDC_BINARY_DIR "/shardc", "export", checkpoint, "-o", output};
  command.insert(command.end(), more.begin(), more.end());
  return RunProcess(command);
}

const Sets ShortSets{"train.steps=3", "train.eval_every=0", "checkpoint.every=0"};

auto ShortRun(const Sets& more = {}) -> Sets {
  Sets sets = ShortSets;
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

/// Returns the sets of a run that begins from a model and keeps its weights: the rate is 0.
auto KeepingRun(const std::string& model, const Sets& more) -> Sets {
  Sets sets = ShortRun({"train.steps=1", "optimizer.lr=0", "init.rule=[]", "start.run_id=second",
                        fmt::format("start.first={{ seed = \"{}\" }}", model)});
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

TEST(Export, ComesBackFromEachMesh) {
  struct Case {
    const char* name;
    Sets model;
    Sets mesh;
    Sets other_mesh;
    const char* architecture;
  };
  const std::vector<Case> cases{
      // A run with shorter sequences hands back the length that the model takes.
      {"llama", {"model.kv_heads=1"}, {"mesh.dp=2", "mesh.tp=1"}, {"mesh.dp=1", "model.seq=8"}, "LlamaForCausalLM"},
      {"tied", {"model.tied=true", "model.vocab=257"}, {"mesh.dp=2", "mesh.tp=2"}, {"mesh.dp=3"}, "LlamaForCausalLM"},
      {"qwen2", {"model.family=qwen2"}, {"mesh.dp=1", "mesh.tp=2"}, {"mesh.dp=2"}, "Qwen2ForCausalLM"},
      {"qwen3", {"model.family=qwen3", "model.head_dim=24"}, {"mesh.dp=3"}, {"mesh.tp=2"}, "Qwen3ForCausalLM"},
      {"rope", {"model.rope_frequency=llama3_rope(8, 1, 4, 16)"}, {"mesh.dp=2"}, {"mesh.dp=1"}, "LlamaForCausalLM"},
      // A formula that equals the default.
      {"spelling",
       {"model.rope_frequency=rope_theta^(-2*index(0)/head_dim)"},
       {"mesh.dp=1"},
       {"model.rope_frequency=rope_theta ^ (-2 * index(0) / head_dim)"},
       "LlamaForCausalLM"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Sets sets = ShortRun(c.model);
    sets.insert(sets.end(), {R"--(init.rule=[{match = "*", value = "normal(0, 0.1)"}])--"});
    const Training first(sets);
    ASSERT_EQ(first.Run("run", c.mesh).status, 0);
    const Outcome exported = Export(first / "run", first / "model");
    ASSERT_EQ(exported.status, 0) << exported.err;
    EXPECT_THAT(exported.out, HasSubstr(" tensors of "));
    const json config = json::parse(ReadText(first / "model/config.json"));
    EXPECT_EQ(config.at("architectures"), json({c.architecture}));
    EXPECT_EQ(config.at("hidden_size"), 32);
    EXPECT_EQ(config.at("torch_dtype"), "float32");
    const auto weights = ReadWeights(first / "model/model.safetensors");
    EXPECT_EQ(weights.contains("lm_head.weight"), std::string(c.name) != "tied");

    Sets seeded = KeepingRun(first / "model", c.model);
    seeded.insert(seeded.end(), c.other_mesh.begin(), c.other_mesh.end());
    const Training second(seeded);
    const Outcome outcome = second.Run();
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    ASSERT_EQ(Export(second / "run", second / "model").status, 0);
    EXPECT_EQ(ReadText(second / "model/model.safetensors"), ReadText(first / "model/model.safetensors"));
    EXPECT_EQ(ReadText(second / "model/config.json"), ReadText(first / "model/config.json"));
  }
}

TEST(Export, SplitsFilesAndRounds) {
  const Training training(ShortRun({"model.kv_heads=1"}));
  ASSERT_EQ(training.Run().status, 0);
  const std::string checkpoint = training / "run/checkpoints/step-00000003";
  ASSERT_EQ(Export(checkpoint, training / "whole").status, 0);
  ASSERT_EQ(Export(checkpoint, training / "split", {"--max-file", "20kB"}).status, 0);
  const auto whole = ReadWeights(training / "whole/model.safetensors");
  const json index = json::parse(ReadText(training / "split/model.safetensors.index.json"));
  int64_t bytes = 0;
  std::map<std::string, int64_t> of_files;
  for (const auto& [name, expected] : whole) {
    const std::string file = index.at("weight_map").at(name);
    EXPECT_EQ(ReadWeights(training / ("split/" + file)).at(name).bytes, expected.bytes) << name;
    bytes += std::ssize(expected.bytes);
    of_files[file] += std::ssize(expected.bytes);
  }
  EXPECT_EQ(index.at("metadata").at("total_size"), bytes);
  EXPECT_GT(of_files.size(), 3);
  for (const auto& [file, size] : of_files) {
    // The embedding alone has more.
    EXPECT_LE(size, 256 * 32 * 4) << file;
  }
  // A run begins from the split model as from the whole one.
  const Training second(KeepingRun(training / "split", {"model.kv_heads=1", "mesh.dp=1"}));
  ASSERT_EQ(second.Run().status, 0);
  ASSERT_EQ(Export(second / "run", second / "model").status, 0);
  EXPECT_EQ(ReadText(second / "model/model.safetensors"), ReadText(training / "whole/model.safetensors"));

  ASSERT_EQ(Export(checkpoint, training / "bf16", {"--dtype", "bf16"}).status, 0);
  ASSERT_EQ(Export(checkpoint, training / "f16", {"--dtype", "f16"}).status, 0);
  const auto bf16 = ReadWeights(training / "bf16/model.safetensors");
  const auto f16 = ReadWeights(training / "f16/model.safetensors");
  for (const auto& [name, expected] : whole) {
    ASSERT_EQ(bf16.at(name).dtype, "BF16");
    ASSERT_EQ(f16.at(name).dtype, "F16");
    for (size_t i = 0; i < expected.bytes.size() / sizeof(float); ++i) {
      float exact = 0;
      BFloat16 brain{};
      _Float16 half{};
      std::memcpy(&exact, expected.bytes.data() + i * sizeof(exact), sizeof(exact));
      std::memcpy(&brain, bf16.at(name).bytes.data() + i * sizeof(brain), sizeof(brain));
      std::memcpy(&half, f16.at(name).bytes.data() + i * sizeof(half), sizeof(half));
      ASSERT_LE(std::abs(Load(brain) - exact), std::abs(exact) * 0x1p-8F) << name << " " << i;
      ASSERT_LE(std::abs(static_cast<float>(half) - exact), std::abs(exact) * 0x1p-11F + 0x1p-25F) << name << " " << i;
    }
  }
  EXPECT_EQ(json::parse(ReadText(training / "f16/config.json")).at("torch_dtype"), "float16");
}

TEST(Export, CopiesTokenizer) {
  const Training training(ShortSets);
  ASSERT_EQ(training.Run().status, 0);
  std::filesystem::create_directories(training / "published");
  WriteText(training / "published/tokenizer.json", "{}");
  WriteText(training / "published/model.safetensors", "not copied");
  constexpr size_t Large = (size_t{256} << 20) + 1;
  WriteText(training / "published/tokenizer.model", "");
  std::filesystem::resize_file(training / "published/tokenizer.model", Large);
  ASSERT_EQ(Export(training / "run", training / "model", {"--tokenizer", training / "published"}).status, 0);
  EXPECT_EQ(ReadText(training / "model/tokenizer.json"), "{}");
  EXPECT_EQ(std::filesystem::file_size(training / "model/tokenizer.model"), Large);
  EXPECT_EQ(ReadWeights(training / "model/model.safetensors").size(), 21);
}

TEST(Export, NamesClassThatTakesSizes) {
  const Sets sizes{"model.hidden=20",  "model.heads=3", "model.kv_heads=3",
                   "model.head_dim=8", "mesh.dp=1",     "mesh.tp=1"};
  const Training training(ShortRun(sizes));
  ASSERT_EQ(training.Run().status, 0);
  ASSERT_EQ(Export(training / "run", training / "model").status, 0);
  const json config = json::parse(ReadText(training / "model/config.json"));
  EXPECT_EQ(config.at("architectures"), json({"MistralForCausalLM"}));
  EXPECT_EQ(config.at("model_type"), "mistral");
  EXPECT_EQ(config.at("sliding_window"), json());
  const Training second(KeepingRun(training / "model", sizes));
  const Outcome outcome = second.Run();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST(Export, LeavesFurtherHeadsOut) {
  const Training training(
      ShortRun({R"(loss.head=[{name = "next", vocab = 256, targets = ["tokens.bin"], weight = 0.5}])",
                R"--(init.rule=[{match = "*", value = "normal(0, 0.1)"}])--"}));
  ASSERT_EQ(training.Run().status, 0);
  const Outcome outcome = Export(training / "run", training / "model");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("21 tensors of "));
  EXPECT_THAT(outcome.out, HasSubstr("; without the heads next, which no class of transformers has\n"));
  const auto weights = ReadWeights(training / "model/model.safetensors");
  EXPECT_TRUE(weights.contains("lm_head.weight"));
  EXPECT_FALSE(weights.contains("heads.next.weight"));
}

TEST(Export, RemovesWhatKilledOnesLeft) {
  const Training training(ShortSets);
  ASSERT_EQ(training.Run().status, 0);
  const std::string left = training / ".model.tmp-1";
  // The id of a process in another namespace may be any number: what runs has a lock.
  const std::string running = training / ".model.tmp-2";
  const std::string other = training / ".other.tmp-1";
  const std::string named = training / ".model.tmp-first";
  for (const std::string& path : {left, running, other, named}) {
    std::filesystem::create_directories(path);
    WriteText(path + "/model.safetensors", "begun");
  }
  const int lock = open(running.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  ASSERT_EQ(Export(training / "run", training / "model").status, 0);
  close(lock);
  EXPECT_FALSE(std::filesystem::exists(left));
  for (const std::string& path : {running, other, named}) {
    EXPECT_TRUE(std::filesystem::exists(path + "/model.safetensors")) << path;
  }
}

TEST(Export, RefusesTokenizerThatDiffers) {
  const Training training(ShortSets);
  ASSERT_EQ(training.Run().status, 0);
  std::filesystem::create_directories(training / "published");
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : {
           Case{R"({"model": {"vocab": {"a": 3, "b": 255}}, "added_tokens": [{"id": 254, "content": "c"}]})", nullptr},
           {R"({"model": {"vocab": {"a": 256, "b": 1}}})", "its largest id is 256, and the model takes ids below 256"},
           {R"({"added_tokens": [{"id": 300, "content": "c"}]})", "its largest id is 300, and"},
           {R"({"model": {"vocab": [["a", 0.5]]}, "added_tokens": [{"id": 1, "content": "c"}]})", nullptr},
           {R"({"model": )", "tokenizer.json: it holds no JSON object"},
       }) {
    SCOPED_TRACE(c.text);
    WriteText(training / "published/tokenizer.json", c.text);
    const Outcome outcome = Export(training / "run", training / "model", {"--tokenizer", training / "published"});
    EXPECT_EQ(outcome.status, c.message == nullptr ? 0 : 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(c.message == nullptr ? "" : c.message));
    std::filesystem::remove_all(training / "model");
  }
}

TEST(Export, TakesSpecialTokens) {
  const Training training(ShortSets);
  ASSERT_EQ(training.Run().status, 0);
  const std::vector<const char*> keys{"bos_token_id", "eos_token_id", "pad_token_id"};
  // Without a key transformers takes the ids of Llama's tokenizer.
  ASSERT_EQ(Export(training / "run", training / "bare").status, 0);
  for (const char* const key : keys) {
    EXPECT_EQ(json::parse(ReadText(training / "bare/config.json")).at(key), json()) << key;
  }
  std::filesystem::create_directories(training / "published");
  WriteText(training / "published/tokenizer.json", "{}");
  WriteText(training / "published/config.json", R"({"bos_token_id": 255, "eos_token_id": [3, 4], "vocab_size": 9})");
  ASSERT_EQ(Export(training / "run", training / "model", {"--tokenizer", training / "published"}).status, 0);
  const json config = json::parse(ReadText(training / "model/config.json"));
  EXPECT_EQ(config.at("bos_token_id"), 255);
  EXPECT_EQ(config.at("eos_token_id"), json({3, 4}));
  EXPECT_EQ(config.at("pad_token_id"), json());
  EXPECT_EQ(config.at("vocab_size"), 256);
  for (const char* const id : {"256", "[1, 256]", R"("</s>")", "1.5"}) {
    WriteText(training / "published/config.json", fmt::format(R"({{"eos_token_id": {}}})", id));
    const Outcome outcome = Export(training / "run", training / "refused", {"--tokenizer", training / "published"});
    EXPECT_EQ(outcome.status, 2) << id;
    EXPECT_THAT(outcome.err, HasSubstr("config.json: `eos_token_id` is "));
  }
  constexpr size_t Depth = 1'000'000;
  WriteText(training / "published/config.json",
            fmt::format(R"({{"eos_token_id": {}{}}})", std::string(Depth, '['), std::string(Depth, ']')));
  const Outcome outcome = Export(training / "run", training / "refused", {"--tokenizer", training / "published"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_THAT(outcome.err, HasSubstr("config.json: it holds no JSON object: nested more than 127 deep"));
  for (const auto& entry : std::filesystem::directory_iterator(training.path())) {
    EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
  }
}

TEST(Export, LeavesNothingWhenRefused) {
  // No sample has the id 256.
  const Training training(ShortRun(
      {"train.steps=1", "model.vocab=257",
       R"--(init.rule=[{match = "*", value = "normal(0, 0.1)"}, {match = "lm_head.weight", value = "if index(0) == 3 and index(1) == 5 then 70000 else 0"}, {match = "model.embed_tokens.weight", value = "if index(0) == 256 then 3.4e38 else index(1)"}])--"}));
  ASSERT_EQ(training.Run("run", {"optimizer.lr=0"}).status, 0);
  const Training formula(ShortRun({"model.rope_frequency=rope_theta ^ (-index(0))"}));
  ASSERT_EQ(formula.Run().status, 0);
  const Training mixed(ShortRun({R"(precision.override=[{match = "embed", master = "bf16"}])"}));
  ASSERT_EQ(mixed.Run().status, 0);
  const Training damaged(ShortSets);
  ASSERT_EQ(damaged.Run().status, 0);
  const std::string file = damaged / "run/checkpoints/step-00000003/rank-00000.safetensors";
  std::string text = ReadText(file);
  text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
  WriteText(file, text);
  std::filesystem::create_directories(training / "there");
  std::filesystem::create_directories(training / "defaults");
  WriteText(training / "defaults/generation_config.json", "{}");
  struct Case {
    std::string checkpoint;
    std::string output;
    std::vector<std::string> more;
    int status;
    std::string message;
  };
  const std::vector<Case> cases{
      {training / "run", training / "there", {}, 2, "is there already; name a directory that is not"},
      {training / "run", training / "no/folder", {}, 6, "no"},
      {training / "absent", training / "model", {}, 5, "absent is no checkpoint"},
      {training / "run",
       training / "model",
       {"--dtype", "f16"},
       2,
       "element 101 of lm_head.weight is 70000, which float16 does not hold; use --dtype bf16 or --dtype f32"},
      {training / "run",
       training / "model",
       {"--dtype", "bf16"},
       2,
       "element 8192 of model.embed_tokens.weight is 3.4e+38, which bfloat16 does not hold; use --dtype f32"},
      {training / "run", training / "model", {"--tokenizer", training / "run"}, 2, "has no tokenizer.json"},
      {training / "run", training / "model", {"--tokenizer", training / "defaults"}, 2, "has no tokenizer.json"},
      {training / "run", training / "run/model", {}, 2, "where a run keeps its files; name another folder"},
      {training / "run", training / "run/checkpoints/step-00000009", {}, 2, "where a run keeps its files"},
      // The temporary name is longer, and too long.
      {training / "run", training / std::string(250, 'x'), {}, 6, "error: cannot make "},
      {training / "run", training / "model", {"--max-file", "much"}, 2, "--max-file: `much`"},
      {mixed / "run", training / "model", {}, 2, "weights are kept in "},
      {formula / "run", training / "model", {}, 2, "rope_frequency is "},
      {damaged / "run", training / "model", {}, 5, "rank-00000.safetensors is damaged: the digest of bytes [0, "},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    const Outcome outcome = Export(c.checkpoint, c.output, c.more);
    EXPECT_EQ(outcome.status, c.status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(c.message));
    EXPECT_FALSE(std::filesystem::exists(training / "model"));
    for (const auto& entry : std::filesystem::directory_iterator(training.path())) {
      EXPECT_FALSE(entry.path().filename().string().starts_with(".")) << entry.path();
    }
  }
}

}  // namespace
}  // namespace shardc
