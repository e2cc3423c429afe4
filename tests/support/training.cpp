#include "tests/support/training.h"
#include "tests/support/compile_recipe.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "compiler/base/check.h"

namespace shardc {

auto TinyRecipe() -> std::string_view {
  return R"toml(
[model]
family = "llama"
layers = 2
hidden = 32
heads = 2
ffn = 64
vocab = 256
seq = 32

[mesh]
dp = 2

[init]
seed = 7

[[init.rule]]
match = "*norm.weight"
value = 1

[[init.rule]]
match = "*proj.weight"
value = "normal(0, 1 / sqrt(fan_in))"

[[init.rule]]
match = "*tokens.weight"
value = "normal(0, 1)"

[[init.rule]]
match = "lm_head.weight"
value = "normal(0, 1 / sqrt(fan_in))"

[optimizer]
lr = "1e-2 * min((step + 1) / 10, 1)"

[data]
tokens = ["tokens.bin"]
eval_tokens = 1000

[batch]
global = 12

[train]
steps = 40
eval_every = 20

[checkpoint]
every = 20

[run]
threads = 1
)toml";
}

auto SlowSteps() -> Sets { return {"model.hidden=256", "model.heads=4", "model.ffn=768", "model.seq=128"}; }

auto WriteBin(const std::string& path, const std::vector<uint16_t>& ids) -> void {
  // Magic, version, number of tokens; the rest of the 256 words is zero.
  std::vector<int32_t> header(256, 0);
  header[0] = 20240520;
  header[1] = 1;
  header[2] = static_cast<int32_t>(ids.size());
  std::string text(header.size() * sizeof(int32_t) + ids.size() * sizeof(uint16_t), '\0');
  std::memcpy(text.data(), header.data(), header.size() * sizeof(int32_t));
  std::memcpy(text.data() + header.size() * sizeof(int32_t), ids.data(), ids.size() * sizeof(uint16_t));
  WriteText(path, text);
}

auto EasyTokens(int64_t count) -> std::vector<uint16_t> {
  const std::vector<std::string> words{"mesh ", "axis ", "shard ", "gather ", "reduce ", "unit ", "plan ", "step "};
  std::mt19937 generator(1);
  std::vector<uint16_t> ids;
  while (static_cast<int64_t>(ids.size()) < count) {
    for (const char letter : words[generator() % words.size()]) {
      ids.push_back(static_cast<uint8_t>(letter));
    }
  }
  ids.resize(static_cast<size_t>(count));
  return ids;
}

auto DocumentTokens(int64_t count, uint32_t state) -> std::vector<uint16_t> {
  std::vector<uint16_t> tokens = EasyTokens(count);
  for (size_t at = 3; at < tokens.size(); at += 1 + (state >> 16) % 30) {
    tokens[at] = DocumentEnd;
    state = state * 1664525 + 1013904223;
  }
  tokens.back() = DocumentEnd;
  return tokens;
}

Training::Training(Sets sets) : sets_(std::move(sets)) {
  constexpr int64_t NumTokens = 40'000;
  WriteText(folder_ / "tiny.toml", std::string(TinyRecipe()));
  WriteBin(folder_ / "tokens.bin", EasyTokens(NumTokens));
}

auto Training::Command(const std::string& command, const std::vector<std::string>& arguments) const
    -> std::vector<std::string> {
  std::vector<std::string> all{SHARDC_BINARY_DIR "/shardc", command, folder_ / "tiny.toml"};
  for (const std::string& set : sets_) {
    all.insert(all.end(), {"--set", set});
  }
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

auto Training::RunCommand(const std::string& run, const Sets& more_sets) const -> std::vector<std::string> {
  std::vector<std::string> arguments{"--run-dir", folder_ / run};
  for (const std::string& set : more_sets) {
    arguments.insert(arguments.end(), {"--set", set});
  }
  return Command("run", arguments);
}

auto Training::Compile(const Sets& more_sets) const -> Plan {
  Sets sets = sets_;
  sets.insert(sets.end(), more_sets.begin(), more_sets.end());
  return CompileRecipe(folder_ / "tiny.toml", ReadText(folder_ / "tiny.toml"), sets).plan;
}

static auto NumberAt(const nlohmann::json& line, const char* key) -> double {
  return line.at(key).is_null() ? std::nan("") : line.at(key).get<double>();
}

static auto AddLine(const std::string& text, Metrics& metrics) -> void {
  const auto line = nlohmann::json::parse(text, nullptr, false);
  size_t optional = 0;
  for (const char* key : {"mfu", "hfu", "skipped", "targets"}) {
    optional += line.is_object() && line.contains(key) ? 1 : 0;
  }
  const auto has_just = [&](const std::vector<const char*>& keys) {
    // The time is a text.
    return line.is_object() && line.size() == keys.size() + 1 + optional && line.contains("time") &&
           std::all_of(keys.begin(), keys.end(), [&](const char* key) {
             return line.contains(key) && (line[key].is_number() || line[key].is_null());
           });
  };
  if (has_just({"step", "loss", "grad_norm", "lr", "step_ms", "tokens_per_s", "tokens", "elapsed_s", "resident_bytes",
                "arena_bytes"})) {
    metrics.steps.push_back({.step = line["step"].get<int64_t>(),
                             .loss = NumberAt(line, "loss"),
                             .grad_norm = NumberAt(line, "grad_norm"),
                             .lr = NumberAt(line, "lr"),
                             .step_ms = NumberAt(line, "step_ms"),
                             .tokens_per_s = NumberAt(line, "tokens_per_s")});
  } else if (has_just({"step", "eval_loss", "elapsed_s"})) {
    metrics.evals.emplace_back(line["step"].get<int64_t>(), NumberAt(line, "eval_loss"));
  } else {
    metrics.others.push_back(text);
  }
}

auto ReadMetrics(const std::string& run_dir) -> Metrics {
  Metrics metrics;
  std::string text = ReadText(run_dir + "/metrics.jsonl");
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
    AddLine(text.substr(0, end), metrics);
    text.erase(0, end + 1);
  }
  if (!text.empty()) {
    metrics.others.push_back(text);
  }
  return metrics;
}

static auto NamesIn(const std::string& folder) -> std::vector<std::string> {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// What bears the name of a checkpoint and more, ".damaged-1" say, is none.
static auto IsCommitted(const std::string& name) -> bool { return name.find('.') == std::string::npos; }
static auto IsUnfinished(const std::string& name) -> bool { return name.find(".tmp") != std::string::npos; }

auto CheckpointsOf(const std::string& run_dir) -> std::vector<std::string> {
  std::vector<std::string> names = NamesIn(run_dir + "/checkpoints");
  std::erase_if(names, [](const std::string& name) { return !IsCommitted(name); });
  return names;
}

auto UnfinishedSavesOf(const std::string& run_dir) -> std::vector<std::string> {
  std::vector<std::string> names = NamesIn(run_dir + "/checkpoints");
  std::erase_if(names, [](const std::string& name) { return !IsUnfinished(name); });
  return names;
}

auto CheckpointNameOf(int64_t step) -> std::string { return fmt::format("step-{:08}", step); }

auto ContentsOf(const std::string& folder) -> std::map<std::string, std::string> {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      contents[std::filesystem::relative(entry.path(), folder)] = ReadText(entry.path());
    }
  }
  return contents;
}

auto NewestCheckpointOf(const std::string& run_dir) -> std::map<std::string, std::string> {
  const auto names = CheckpointsOf(run_dir);
  return names.empty() ? std::map<std::string, std::string>() : ContentsOf(run_dir + "/checkpoints/" + names.back());
}

auto ExpectSameSteps(const Metrics& metrics, const Metrics& other) -> void {
  const auto same = [](double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); };
  ASSERT_EQ(metrics.steps.size(), other.steps.size());
  for (size_t i = 0; i < metrics.steps.size(); ++i) {
    const StepLine& a = metrics.steps[i];
    const StepLine& b = other.steps[i];
    ASSERT_TRUE(a.step == b.step && same(a.loss, b.loss) && same(a.grad_norm, b.grad_norm) && same(a.lr, b.lr))
        << "step " << a.step << " has loss " << a.loss << ", gradient norm " << a.grad_norm << ", lr " << a.lr
        << "; step " << b.step << " there has " << b.loss << ", " << b.grad_norm << ", " << b.lr;
  }
}

auto ExpectSameRun(const std::string& run_dir, const std::string& other_run_dir) -> void {
  const Metrics metrics = ReadMetrics(run_dir);
  const Metrics other = ReadMetrics(other_run_dir);
  EXPECT_THAT(metrics.others, testing::IsEmpty());
  EXPECT_THAT(other.others, testing::IsEmpty());
  ASSERT_NO_FATAL_FAILURE(ExpectSameSteps(metrics, other));
  EXPECT_EQ(metrics.evals, other.evals);

  const auto files = NewestCheckpointOf(run_dir);
  const auto other_files = NewestCheckpointOf(other_run_dir);
  ASSERT_FALSE(files.empty());
  ASSERT_EQ(files.size(), other_files.size());
  for (const auto& [name, content] : files) {
    // Not as an equality of texts: nobody wants to see them.
    EXPECT_TRUE(other_files.contains(name) && other_files.at(name) == content) << name;
  }
}

}  // namespace shardc
