// What is answered to a configuration of torchtitan trains as that did: each recipe of an answer is accepted, and means
// what the key meant. So does the table of defaults that differ.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <regex>
#include <set>

#include "compiler/check/check_recipe.h"
#include "compiler/ops/op_facts.h"
#include "compiler/recipe/key_rows.h"
#include "compiler/recipe/other_tools.h"
#include "tests/recipe/torchtitan_schedule.h"
#include "tests/support/plan_samples.h"
#include "tests/support/repository.h"

namespace shardc {
namespace {

const std::string Seed = RepositoryPath(SampleSeed);

/// Returns the step's first op of this type.
template <class OpType>
auto FirstOf(const Plan& plan) -> const OpType& {
  const std::vector<Op>& ops = plan.section(SectionKind::Step).ops;
  const auto found = std::ranges::find_if(ops, [](const Op& op) { return std::holds_alternative<OpType>(op.body); });
  CHECK(found != ops.end(), "the step has no such op");
  return std::get<OpType>(found->body);
}

auto CountOps(const Plan& plan, SectionKind section, OpKind kind, std::optional<Phase> phase = {}) -> int64_t {
  return std::ranges::count_if(plan.section(section).ops,
                               [&](const Op& op) { return op.kind() == kind && op.phase == phase.value_or(op.phase); });
}

auto RecomputedLayers(const Plan& plan) -> std::set<int64_t> {
  std::set<int64_t> layers;
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    if (op.phase == Phase::Recompute && FactsOf(op).work == Work::Product) {
      layers.insert(op.layer);
    }
  }
  return layers;
}

auto RunsEvery(const Plan& plan, SectionKind section, int64_t steps) -> bool {
  return std::ranges::find(plan.triggers, Trigger{section, TriggerKind::EverySteps, steps}) != plan.triggers.end();
}

auto Sizes(const Plan& plan, int64_t replicate, int64_t dp, int64_t tp) -> bool {
  return plan.mesh.size(Axis::Replicate) == replicate && plan.mesh.size(Axis::Dp) == dp &&
         plan.mesh.size(Axis::Tp) == tp;
}

auto AllParametersAre(const Plan& plan, DType master, DType compute) -> bool {
  return std::ranges::all_of(plan.parameters, [&](const Parameter& own) { return own.dtype == master; }) &&
         std::ranges::all_of(plan.sub_vectors, [&](const SubVector& own) { return own.compute == compute; });
}

struct Answer {
  std::string section;
  std::string key;
  /// The value of a configuration of torchtitan.
  std::string theirs;
  /// The lines that the answer tells to write.
  std::vector<std::string> ours;
  bool (*means_the_same)(const Plan& plan);
};

const std::vector<Answer> Answers{
    {"metrics", "log_freq", "5", {"train.log_every=5"}, [](const Plan& p) { return p.run.log_every == 5; }},
    {"model", "name", "llama3", {"model.family=llama"}, [](const Plan& p) { return p.model.at("family") == "llama"; }},
    {"optimizer",
     "beta1",
     "0.8",
     {"optimizer.betas=[0.8, 0.95]"},
     [](const Plan& p) { return FirstOf<op::Adamw>(p).beta1 == 0.8 && FirstOf<op::Adamw>(p).beta2 == 0.95; }},
    {"optimizer",
     "beta2",
     "0.99",
     {"optimizer.betas=[0.9, 0.99]"},
     [](const Plan& p) { return FirstOf<op::Adamw>(p).beta1 == 0.9 && FirstOf<op::Adamw>(p).beta2 == 0.99; }},
    {"training", "batch_size", "3", {"batch.micro=3"}, [](const Plan& p) { return p.run.micro_batch == 3; }},
    {"training", "local_batch_size", "3", {"batch.micro=3"}, [](const Plan& p) { return p.run.micro_batch == 3; }},
    {"training",
     "global_batch_size",
     "24",
     {"batch.global=24"},
     [](const Plan& p) { return p.run.tokens_per_step == 24 * p.data.seq; }},
    {"training", "seq_len", "16", {"model.seq=16"}, [](const Plan& p) { return p.data.seq == 16; }},
    {"training",
     "max_norm",
     "0.5",
     {"optimizer.clip_norm=0.5"},
     [](const Plan& p) { return FirstOf<op::ClipFactor>(p).max_norm == 0.5; }},
    {"training", "steps", "20", {"train.steps=20"}, [](const Plan& p) { return p.run.steps == 20; }},
    {"training",
     "dtype",
     "bfloat16",
     {"precision.master=bf16", "precision.compute=bf16"},
     [](const Plan& p) { return AllParametersAre(p, DType::BF16, DType::BF16); }},
    {"training",
     "mixed_precision_param",
     "bfloat16",
     {"precision.compute=bf16"},
     [](const Plan& p) { return AllParametersAre(p, DType::F32, DType::BF16); }},
    {"training",
     "mixed_precision_reduce",
     "float32",
     {"precision.reduce=fp32", "precision.compute=bf16"},
     [](const Plan& p) { return p.values[FirstOf<op::ReduceScatter>(p).full].dtype == DType::F32; }},
    {"training",
     "seed",
     "5",
     {"init.seed=5", "data.seed=5"},
     [](const Plan& p) { return p.run.init_seed == 5 && p.data.seed == 5; }},
    {"debug",
     "seed",
     "5",
     {"init.seed=5", "data.seed=5"},
     [](const Plan& p) { return p.run.init_seed == 5 && p.data.seed == 5; }},
    {"training",
     "data_parallel_replicate_degree",
     "2",
     {"mesh.replicate=2", "mesh.dp=1"},
     [](const Plan& p) { return Sizes(p, 2, 1, 1); }},
    {"training", "data_parallel_degree", "3", {"mesh.dp=3"}, [](const Plan& p) { return Sizes(p, 1, 3, 1); }},
    {"training", "data_parallel_shard_degree", "3", {"mesh.dp=3"}, [](const Plan& p) { return Sizes(p, 1, 3, 1); }},
    {"training", "tensor_parallel_degree", "2", {"mesh.tp=2"}, [](const Plan& p) { return Sizes(p, 1, 2, 2); }},
    {"parallelism",
     "data_parallel_replicate_degree",
     "2",
     {"mesh.replicate=2", "mesh.dp=1"},
     [](const Plan& p) { return Sizes(p, 2, 1, 1); }},
    {"parallelism", "data_parallel_shard_degree", "3", {"mesh.dp=3"}, [](const Plan& p) { return Sizes(p, 1, 3, 1); }},
    {"parallelism", "tensor_parallel_degree", "2", {"mesh.tp=2"}, [](const Plan& p) { return Sizes(p, 1, 2, 2); }},
    // Two blocks and the head are gathered again in backward, which does not read the embedding's parameters.
    {"parallelism",
     "fsdp_reshard_after_forward",
     "always",
     {"shard.reshard_after_forward=true"},
     [](const Plan& p) { return CountOps(p, SectionKind::Step, OpKind::AllGather, Phase::Backward) == 3; }},
    {"parallelism",
     "fsdp_reshard_after_forward",
     "never",
     {"shard.reshard_after_forward=false"},
     [](const Plan& p) { return CountOps(p, SectionKind::Step, OpKind::AllGather, Phase::Backward) == 0; }},
    {"parallelism",
     "fsdp_reshard_after_forward",
     "default",
     {"shard.reshard_after_forward=true", "shard.units=torchtitan"},
     [](const Plan& p) { return CountOps(p, SectionKind::Step, OpKind::AllGather, Phase::Backward) == 2; }},
    {"checkpoint",
     "folder",
     "saved",
     {"checkpoint.dir=saved"},
     [](const Plan& p) { return p.run.checkpoint_dir.ends_with("saved"); }},
    {"checkpoint",
     "interval",
     "5",
     {"checkpoint.every=5"},
     [](const Plan& p) { return RunsEvery(p, SectionKind::Save, 5); }},
    {"checkpoint",
     "initial_load_path",
     Seed,
     {"start.first={ seed = \"" + Seed + "\" }", "model.hidden=8", "model.heads=2", "model.kv_heads=2", "model.ffn=16",
      "model.vocab=32"},
     [](const Plan& p) {
       return CountOps(p, SectionKind::Init, OpKind::LoadParameter) == p.parameters.size() &&
              CountOps(p, SectionKind::Init, OpKind::Initialize) == 0;
     }},
    {"checkpoint",
     "keep_latest_k",
     "3",
     {"checkpoint.keep=3"},
     [](const Plan& p) { return p.run.checkpoint_keep == 3; }},
    {"activation_checkpoint",
     "mode",
     "full",
     {"recompute.policy=full"},
     [](const Plan& p) {
       return RecomputedLayers(p) == std::set<int64_t>{0, 1};
     }},
    {"activation_checkpoint",
     "mode",
     "none",
     {"recompute.policy=none"},
     [](const Plan& p) { return RecomputedLayers(p).empty(); }},
    // torchtitan counts blocks from 1 and computes those again whose number is even.
    {"activation_checkpoint",
     "selective_ac_option",
     "2",
     {"recompute.policy=full", "recompute.layers=layer % 2 == 1"},
     [](const Plan& p) { return RecomputedLayers(p) == std::set<int64_t>{1}; }},
    {"activation_checkpoint",
     "selective_ac_option",
     "op",
     {"recompute.policy=torchtitan-sac"},
     [](const Plan& p) {
       return RecomputedLayers(p) == std::set<int64_t>{0, 1};
     }},
    {"validation",
     "enable",
     "true",
     {"data.eval_tokens=64"},
     [](const Plan& p) { return p.data.eval_tokens == 64 && !p.section(SectionKind::Eval).ops.empty(); }},
    {"validation",
     "enabled",
     "true",
     {"data.eval_tokens=64"},
     [](const Plan& p) { return p.data.eval_tokens == 64 && !p.section(SectionKind::Eval).ops.empty(); }},
    {"validation",
     "freq",
     "4",
     {"train.eval_every=4"},
     [](const Plan& p) { return RunsEvery(p, SectionKind::Eval, 4); }},
};

/// Answers that tell to write a remark, or a key whose values other tests compare with published ones.
const std::set<std::string> NotInPlans{"job.description", "model.flavor"};

auto AnswerTo(std::string_view section, std::string_view key) -> std::string {
  for (const KeyElsewhere& row : TorchtitanKeys()) {
    if (row.section == section && row.key == key) {
      return std::string(row.answer);
    }
  }
  return "";
}

/// Returns the text between the first two quotes.
auto FirstQuoted(const std::string& text) -> std::string {
  const size_t begin = text.find('"') + 1;
  return text.substr(begin, text.find('"', begin) - begin);
}

/// The rows of torchtitan's schedule; each answer begins with a whole expression.
const std::vector<std::pair<std::array<std::string, 2>, Scheduler>> Schedules{
    {{"lr_scheduler", "warmup_steps"}, {}},
    {{"training", "warmup_steps"}, {}},
    {{"lr_scheduler", "total_steps"}, {.total = 5000}},
    {{"lr_scheduler", "decay_ratio"}, {.decay_ratio = 0.2}},
    {{"lr_scheduler", "decay_type"}, {.type = "cosine"}},
    {{"lr_scheduler", "min_lr_factor"}, {.least = 0.1}},
    {{"lr_scheduler", "lr_min"}, {.least = 0.1}},
};

TEST(TorchtitanAnswers, SchedulesAreTheSame) {
  for (const auto& [name, theirs] : Schedules) {
    ExpectSchedule(FirstQuoted(AnswerTo(name[0], name[1])), theirs, 3e-4);
  }
  // The answer of decay_type has two factors more.
  const std::string answer = AnswerTo("lr_scheduler", "decay_type");
  const auto with = [&](const std::string& factor) {
    EXPECT_THAT(answer, testing::HasSubstr(factor));
    return "3e-4 * warmup(200) * " + factor;
  };
  ExpectSchedule(with("linear(200, 0)"), {}, 3e-4);
  ExpectSchedule(with("(if step < 200 then 1 else 1 - sqrt((step - 200) / (steps - 200)))"), {.type = "sqrt"}, 3e-4);
  // Of a configuration without a section lr_scheduler.
  const auto sections = TorchtitanSections();
  const auto whole = std::ranges::find(sections, "lr_scheduler", &Hint::word);
  ASSERT_NE(whole, sections.end());
  ExpectSchedule(FirstQuoted(std::string(whole->answer)), {}, 8e-4);
}

TEST(TorchtitanAnswers, RecipesMeanTheSame) {
  std::set<std::string> judged = NotInPlans;
  for (const auto& [name, theirs] : Schedules) {
    judged.insert(name[0] + "." + name[1]);
  }
  for (const Answer& own : Answers) {
    SCOPED_TRACE(fmt::format("{}.{} = {}", own.section, own.key, own.theirs));
    judged.insert(own.section + "." + own.key);
    const std::vector<std::string> keys = KeysToWrite(AnswerTo(own.section, own.key));
    ASSERT_FALSE(keys.empty());
    EXPECT_TRUE(std::ranges::any_of(own.ours, [&](const std::string& set) { return set.starts_with(keys[0] + "="); }));
    EXPECT_TRUE(own.means_the_same(CompileSample(own.ours)));
  }
  for (const KeyElsewhere& row : TorchtitanKeys()) {
    EXPECT_EQ(row.answer.starts_with("write "), judged.contains(fmt::format("{}.{}", row.section, row.key)))
        << row.section << "." << row.key << ": a case of this test, or none, belongs to the answer: " << row.answer;
  }
}

TEST(TorchtitanAnswers, ExportDoesNotChangeTraining) {
  // The key converts the last save alone.
  EXPECT_THAT(AnswerTo("checkpoint", "export_dtype"), testing::StartsWith("`shardc export --dtype bf16` writes"));
}

/// Returns key and value of each `section.key = value` in a text.
auto LinesIn(const std::string& text) -> std::vector<std::pair<std::string, std::string>> {
  static const std::regex Line(R"re(([a-z]+\.[a-z_]+) = ("[^"]*"|\[[^\]]*\]|\{[^}]*\}|[0-9a-z.]+))re");
  std::vector<std::pair<std::string, std::string>> lines;
  for (std::sregex_iterator found(text.begin(), text.end(), Line); found != std::sregex_iterator(); ++found) {
    lines.emplace_back((*found)[1], (*found)[2]);
  }
  return lines;
}

/// Returns the errors that the sample has with these texts.
auto ErrorsWith(const std::vector<std::string>& sets) -> std::string {
  SourceSet sources;
  Diagnostics diagnostics(&sources);
  const auto recipe = ReadRecipe("sample.toml", std::string(SampleRecipe()), sets, sources, diagnostics);
  if (recipe.ok()) {
    CheckRecipe(*recipe, diagnostics);
  }
  return diagnostics.has_errors() ? RenderText(diagnostics, {}) : "";
}

TEST(OtherTools, LinesOfAnswersAreAccepted) {
  std::vector<std::string> answers;
  for (const auto& rows : {TorchtitanKeys(), HintsInSections()}) {
    for (const KeyElsewhere& row : rows) {
      answers.emplace_back(row.answer);
    }
  }
  for (const auto& rows : {TorchtitanSections(), Hints()}) {
    for (const Hint& row : rows) {
      answers.emplace_back(row.answer);
    }
  }
  int num_lines = 0;
  for (const std::string& answer : answers) {
    for (auto [key, value] : LinesIn(answer)) {
      ++num_lines;
      if (const size_t folder = value.find("DIR"); folder != std::string::npos) {
        value.replace(folder, 3, Seed);
      }
      EXPECT_EQ(ErrorsWith({fmt::format("{}={}", key, value), "train.steps=10000"}), "") << answer;
    }
  }
  EXPECT_GT(num_lines, 25);
}

TEST(TorchtitanAnswers, TableOfDefaultsIsTrue) {
  std::ifstream page(SHARDC_SOURCE_DIR "/docs/coming_from_torchtitan.md");
  std::vector<std::string> sets;
  bool is_below = false;
  for (std::string line; std::getline(page, line);) {
    is_below = line.starts_with("## ") ? line == "## Defaults that differ" : is_below;
    if (!is_below || !line.starts_with("| ")) {
      continue;
    }
    const size_t last = line.rfind(" | ");
    const size_t own = line.rfind(" | ", last - 1);
    for (const auto& [key, value] : LinesIn(line.substr(own, last - own))) {
      const auto& rows = RecipeKeyRows();
      const auto row = std::ranges::find(rows, key, [](const RecipeKeyRow& candidate) { return candidate.path(); });
      ASSERT_NE(row, rows.end()) << line;
      EXPECT_EQ(row->default_text, value) << line;
    }
    for (const auto& [key, value] : LinesIn(line.substr(last))) {
      sets.push_back(fmt::format("{}={}", key, value));
    }
  }
  EXPECT_GT(sets.size(), 9);
  sets.insert(sets.end(), {"batch.micro=1", "batch.global=8", "train.steps=10000"});
  EXPECT_EQ(ErrorsWith(sets), "");
  const auto lr = std::ranges::find_if(sets, [](const std::string& set) { return set.starts_with("optimizer.lr="); });
  ASSERT_NE(lr, sets.end());
  ExpectSchedule(FirstQuoted(*lr), {}, 8e-4);
}

}  // namespace
}  // namespace shardc
