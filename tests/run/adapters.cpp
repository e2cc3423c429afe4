// Runs of adapters: they begin from a model, go on where they stopped, and are exported merged and as peft has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/published_files.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

const Sets AdapterSets{"train.eval_every=0", "checkpoint.every=2"};

auto ExportAs(const std::string& run, const std::string& output, const char* how) -> Outcome {
  return RunProcess({SHARDC_BINARY_DIR "/shardc", "export", run, "-o", output, how});
}

/// Returns the sets of a run of adapters of the model.
auto AdapterRun(const std::string& model, const Sets& more) -> Sets {
  Sets sets = AdapterSets;
  sets.insert(sets.end(), {"init.rule=[]", "start.run_id=tuned", fmt::format("start.first={{ seed = \"{}\" }}", model),
                           "adapter.kind=lora", "adapter.rank=4", "adapter.alpha=8", "optimizer.lr=0.01"});
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

auto FloatsOf(const PublishedTensor& tensor) -> std::vector<float> {
  std::vector<float> floats;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    floats.push_back(tensor.At(i));
  }
  return floats;
}

/// A trained model, in its own directory.
class AdapterBase {
 public:
  AdapterBase() : training_(With(AdapterSets, {"train.steps=2"})) {
    EXPECT_EQ(training_.Run().status, 0);
    EXPECT_EQ(RunProcess({SHARDC_BINARY_DIR "/shardc", "export", training_ / "run", "-o", path()}).status, 0);
  }
  auto path() const -> std::string { return training_ / "model"; }

  static auto With(Sets sets, const Sets& more) -> Sets {
    sets.insert(sets.end(), more.begin(), more.end());
    return sets;
  }

 private:
  Training training_;
};

/// Expects that each matrix with an adapter is W + scale B A in the merged model, and that the rest is the base.
/// `scale`: by rank. Returns how many have one.
auto ExpectSums(const PublishedTensors& base, const PublishedTensors& adapter, const PublishedTensors& merged,
                double (*scale)(int64_t rank)) -> size_t {
  EXPECT_EQ(merged.size(), base.size());
  size_t num_adapted = 0;
  for (const auto& [name, weight] : base) {
    std::vector<float> expected = FloatsOf(weight);
    const std::string module = "base_model.model." + name.substr(0, name.rfind(".weight"));
    const auto a = adapter.find(module + ".lora_A.weight");
    if (a == adapter.end()) {
      EXPECT_EQ(FloatsOf(merged.at(name)), expected) << name;
      continue;
    }
    ++num_adapted;
    const std::vector<float> down = FloatsOf(a->second);
    const std::vector<float> up = FloatsOf(adapter.at(module + ".lora_B.weight"));
    const auto rank = static_cast<size_t>(a->second.shape[0]);
    const auto inputs = static_cast<size_t>(a->second.shape[1]);
    EXPECT_EQ(up.size(), expected.size() / inputs * rank) << name;
    const std::vector<float> sum = FloatsOf(merged.at(name));
    bool moves = false;
    for (size_t e = 0; e < expected.size(); ++e) {
      double product = 0;
      for (size_t r = 0; r < rank; ++r) {
        product += static_cast<double>(up[e / inputs * rank + r]) * down[r * inputs + e % inputs];
      }
      EXPECT_NEAR(sum[e], expected[e] + scale(a->second.shape[0]) * product, 1e-6 * (1 + std::abs(expected[e])))
          << name;
      moves |= sum[e] != expected[e];
    }
    EXPECT_TRUE(moves) << name;
  }
  EXPECT_EQ(2 * num_adapted, adapter.size());
  return num_adapted;
}

TEST(AdapterRuns, MergeIsTheSumOfBaseAndAdapter) {
  const AdapterBase base;
  const auto weights = ReadSafetensors(base.path() + "/model.safetensors");
  for (const Sets& mesh : {Sets{"mesh.dp=2"}, Sets{"mesh.dp=1", "mesh.tp=2"}}) {
    const Training tuned(AdapterRun(
        base.path(),
        AdapterBase::With(mesh, {"train.steps=4", "adapter.scaling=rslora",
                                 R"(adapter.override=[{match="model.layers.0.mlp.down_proj.weight", rank=2}])"})));
    const Outcome outcome = tuned.Run();
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Outcome merged = ExportAs(tuned / "run", tuned / "merged", "--merge");
    ASSERT_EQ(merged.status, 0) << merged.err;
    EXPECT_THAT(merged.out, HasSubstr("with their adapters added"));
    const Outcome exported = ExportAs(tuned / "run", tuned / "adapter", "--adapter");
    ASSERT_EQ(exported.status, 0) << exported.err;
    const json config = json::parse(ReadText(tuned / "adapter/adapter_config.json"));
    EXPECT_EQ(config.at("peft_type"), "LORA");
    EXPECT_EQ(config.at("r"), 4);
    EXPECT_EQ(config.at("lora_alpha"), 8);
    EXPECT_EQ(config.at("use_rslora"), true);
    EXPECT_EQ(config.at("rank_pattern"), json({{"model.layers.0.mlp.down_proj", 2}}));
    EXPECT_EQ(config.at("target_modules"),
              json({"down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"}));

    const auto adapter = ReadSafetensors(tuned / "adapter/adapter_model.safetensors");
    EXPECT_EQ(adapter.at("base_model.model.model.layers.0.mlp.down_proj.lora_A.weight").shape[0], 2);
    EXPECT_EQ(adapter.at("base_model.model.model.layers.1.mlp.down_proj.lora_A.weight").shape[0], 4);
    EXPECT_EQ(ExpectSums(weights, adapter, ReadSafetensors(tuned / "merged/model.safetensors"),
                         [](int64_t rank) { return 8 / std::sqrt(static_cast<double>(rank)); }),
              14U);
  }
}

/// Returns the sets of a run from a model of type phi3 that Fused() made.
auto FusedRun(const std::string& model, const Sets& more) -> Sets {
  Sets sets{"model.vocab=257", "model.hidden=60",     "model.heads=4",         "model.kv_heads=2",  "model.head_dim=12",
            "model.ffn=102",   "model.norm_eps=1e-5", "model.rope_theta=5000", "optimizer.lr=1e-3", "train.steps=4"};
  sets.insert(sets.end(), more.begin(), more.end());
  return AdapterRun(model, sets);
}

TEST(AdapterRuns, FusedModulesAreExportedAsTheBaseHasThem) {
  const TemporaryFolder folder;
  const PublishedFiles files = PublishedFiles::Make("llama", "F32").Fused();
  files.Write(folder / "model");
  for (const Sets& mesh : {Sets{"mesh.dp=2"}, Sets{"mesh.dp=1", "mesh.tp=2"}}) {
    const Training tuned(
        FusedRun(folder / "model", AdapterBase::With(mesh, {R"(adapter.fused=["qkv_proj", "gate_up_proj"])",
                                                            R"(adapter.override=[{match="*.1.mlp.*", rank=2}])"})));
    const Outcome outcome = tuned.Run();
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, Not(HasSubstr("adapter-modules")));
    const Outcome exported = ExportAs(tuned / "run", tuned / "adapter", "--adapter");
    ASSERT_EQ(exported.status, 0) << exported.err;
    const json config = json::parse(ReadText(tuned / "adapter/adapter_config.json"));
    EXPECT_EQ(config.at("target_modules"), json({"down_proj", "gate_up_proj", "o_proj", "qkv_proj"}));
    EXPECT_EQ(config.at("rank_pattern"),
              json({{"model.layers.1.mlp.down_proj", 2}, {"model.layers.1.mlp.gate_up_proj", 2}}));
    const auto adapter = ReadSafetensors(tuned / "adapter/adapter_model.safetensors");
    const auto shape_of = [&](const std::string& name) {
      return adapter.at("base_model.model.model.layers." + name).shape;
    };
    EXPECT_EQ(shape_of("0.self_attn.qkv_proj.lora_A.weight"), (std::vector<int64_t>{4, 60}));
    EXPECT_EQ(shape_of("0.self_attn.qkv_proj.lora_B.weight"), (std::vector<int64_t>{96, 4}));
    EXPECT_EQ(shape_of("1.mlp.gate_up_proj.lora_B.weight"), (std::vector<int64_t>{204, 2}));

    const Outcome merged = ExportAs(tuned / "run", tuned / "merged", "--merge");
    ASSERT_EQ(merged.status, 0) << merged.err;
    EXPECT_THAT(merged.out, HasSubstr("15 tensors of"));
    EXPECT_EQ(json::parse(ReadText(tuned / "merged/config.json")).at("architectures"), json({"Phi3ForCausalLM"}));
    EXPECT_EQ(ExpectSums(files.tensors, adapter, ReadSafetensors(tuned / "merged/model.safetensors"),
                         [](int64_t rank) { return 8 / static_cast<double>(rank); }),
              8U);
  }
}

TEST(AdapterRuns, ModulesThatTheBaseLacksAreNotExported) {
  const TemporaryFolder folder;
  PublishedFiles::Make("llama", "F32").Fused().Write(folder / "fused");
  PublishedFiles::Make("llama", "F32").Write(folder / "apart");
  struct Case {
    const char* model;
    const char* fused;
    const char* warning;
    const char* message;
  };
  for (
      const Case& c :
      {Case{
           "fused", R"(adapter.fused=["gate_up_proj"])",
           R"(the projections of its qkv_proj have an A each [adapter-modules])",
           R"(is a Phi3ForCausalLM, which has no model.layers.0.self_attn.k_proj for peft to adapt; write a whole model by --merge, or train with adapter.fused = ["qkv_proj", "gate_up_proj"])"},
       Case{"apart", R"(adapter.fused=["qkv_proj"])", "LlamaForCausalLM has no qkv_proj [adapter-modules]",
            "is a LlamaForCausalLM, which has no model.layers.0.self_attn.qkv_proj for peft to adapt; write a whole "
            "model by --merge, or train without adapter.fused"}}) {
    const Training tuned(FusedRun(folder / c.model, {c.fused}));
    const Outcome outcome = tuned.Run();
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(c.warning));
    const Outcome adapter = ExportAs(tuned / "run", tuned / "adapter", "--adapter");
    EXPECT_EQ(adapter.status, static_cast<int>(ExitCode::Usage));
    EXPECT_THAT(adapter.err, HasSubstr(c.message));
    EXPECT_EQ(ExportAs(tuned / "run", tuned / "merged", "--merge").status, 0);
  }
}

TEST(AdapterRuns, GoOnAsIfTheyHadNotStopped) {
  const AdapterBase base;
  const Training whole(AdapterRun(base.path(), {"train.steps=6", "mesh.dp=2"}));
  ASSERT_EQ(whole.Run().status, 0);
  const Training stopped(AdapterRun(base.path(), {"train.steps=6", "mesh.dp=2"}));
  ASSERT_EQ(stopped.Run("run", {"train.steps=4"}).status, 0);
  const Outcome second = stopped.Run("run", {"mesh.dp=1", "mesh.tp=2"});
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_THAT(second.err + second.out, HasSubstr("resumed from"));
  ASSERT_EQ(stopped.Run("again", {"train.steps=4"}).status, 0);
  const Outcome again = stopped.Run("again");
  ASSERT_EQ(again.status, 0) << again.err;
  for (const Training* training : {&whole, &stopped}) {
    ASSERT_EQ(ExportAs(*training / (training == &whole ? "run" : "again"), *training / "adapter", "--adapter").status,
              0);
  }
  EXPECT_EQ(ReadText(whole / "adapter/adapter_model.safetensors"),
            ReadText(stopped / "adapter/adapter_model.safetensors"));
}

TEST(AdapterRuns, AnotherScaleOrRankIsAnotherModel) {
  const AdapterBase base;
  const Training tuned(AdapterRun(base.path(), {"train.steps=4"}));
  ASSERT_EQ(tuned.Run("run", {"train.steps=2"}).status, 0);
  struct Case {
    const char* set;
    const char* message;
  };
  for (const Case& c : {Case{"adapter.alpha=16", "q_proj.weight is 2 in the checkpoint, 4 in this run"},
                        Case{"adapter.scaling=rslora", "q_proj.weight is 2 in the checkpoint, 4 in this run"},
                        Case{"adapter.rank=2", "checkpoint of another model"},
                        Case{"precision.frozen=bf16", "`precision.frozen` is another"},
                        Case{R"(adapter.fused=["qkv_proj"])", "the plan needs, and it lacks: model.layers.0"},
                        Case{R"(adapter.train_also=["*norm.weight"])", "`adapter.train_also` is another"}}) {
    const Outcome outcome = tuned.Run("run", {c.set});
    EXPECT_EQ(outcome.status, static_cast<int>(ExitCode::Checkpoint)) << c.set;
    EXPECT_THAT(outcome.err, HasSubstr(c.message)) << c.set;
  }
  EXPECT_EQ(tuned.Run().status, 0);

  const Training whole(AdapterBase::With(AdapterSets, {"train.steps=4"}));
  ASSERT_EQ(whole.Run("run", {"train.steps=2"}).status, 0);
  const Outcome adapted = whole.Run("run", {"adapter.kind=lora", "adapter.rank=4", "adapter.alpha=8"});
  EXPECT_EQ(adapted.status, static_cast<int>(ExitCode::Checkpoint));
  EXPECT_THAT(adapted.err, HasSubstr("of a run without [adapter], and this recipe has one; take it out, or"));
}

/// Returns a start from a base with an adapter beside it.
auto StartFrom(const std::string& base, const std::string& adapter) -> std::string {
  return fmt::format("start.first={{ seed = \"{}\", adapter = \"{}\" }}", base, adapter);
}

const Sets OddAdapter{"adapter.scaling=rslora", R"(adapter.override=[{match="*.down_proj.weight", rank=2, alpha=3}])"};

TEST(AdapterRuns, BeginFromExportedAdapters) {
  const AdapterBase base;
  const Training tuned(AdapterRun(base.path(), AdapterBase::With(OddAdapter, {"train.steps=4", "mesh.dp=2"})));
  ASSERT_EQ(tuned.Run().status, 0);
  ASSERT_EQ(ExportAs(tuned / "run", tuned / "adapter", "--adapter").status, 0);
  // The next stage of that run begins with the same values, at the begin of the data.
  const Sets fresh{"start.run_id=again", "train.steps=2", "checkpoint.every=1"};
  const Sets stage = AdapterBase::With(
      fresh,
      {fmt::format(R"(start.first={{ continue = "{}", reset = ["moments", "schedule", "data"] }})", tuned / "run")});
  ASSERT_EQ(tuned.Run("stage", stage).status, 0);
  const double expected = ReadMetrics(tuned / "stage").steps.front().loss;

  for (const Sets& mesh : {Sets{"mesh.dp=2"}, Sets{"mesh.dp=1", "mesh.tp=2"}}) {
    const Sets begun = AdapterBase::With(fresh, {StartFrom(base.path(), tuned / "adapter"), mesh.front(), mesh.back()});
    const std::string run = mesh.size() == 1 ? "dp" : "tp";
    const Outcome outcome = tuned.Run(run, begun);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr(" with " + (tuned / "adapter") + " ("));
    EXPECT_NEAR(ReadMetrics(tuned / run).steps.front().loss, expected, 1e-5 * expected);
    // A restart needs neither.
    const Outcome again = tuned.Run(run, AdapterBase::With(begun, {"train.steps=3"}));
    ASSERT_EQ(again.status, 0) << again.err;
    EXPECT_THAT(again.out + again.err, HasSubstr("resumed from"));
  }
  if (::testing::Test::HasFailure()) {
    return;
  }
  EXPECT_EQ(ReadMetrics(tuned / "dp").steps.front().loss, expected);

  // What goes in comes out, bit for bit.
  const Sets still = AdapterBase::With(fresh, {StartFrom(base.path(), tuned / "adapter"), "optimizer.lr=0"});
  ASSERT_EQ(tuned.Run("still", still).status, 0);
  ASSERT_EQ(ExportAs(tuned / "still", tuned / "same", "--adapter").status, 0);
  for (const char* const file : {"/adapter_model.safetensors", "/adapter_config.json"}) {
    EXPECT_EQ(ReadText(tuned / "same" + file), ReadText(tuned / "adapter" + file)) << file;
  }
}

TEST(AdapterRuns, BeginBesideACheckpoint) {
  const Training whole(AdapterBase::With(AdapterSets, {"train.steps=2"}));
  ASSERT_EQ(whole.Run().status, 0);
  const std::string checkpoint = whole / "run/checkpoints/step-00000002";
  const Training tuned(AdapterRun(checkpoint, {"train.steps=2"}));
  ASSERT_EQ(tuned.Run().status, 0);
  ASSERT_EQ(ExportAs(tuned / "run", tuned / "adapter", "--adapter").status, 0);
  const Sets begun{StartFrom(checkpoint, tuned / "adapter"), "start.run_id=again", "train.steps=4"};
  ASSERT_EQ(tuned.Run("again", AdapterBase::With(begun, {"train.steps=2"})).status, 0);
  const json record = json::parse(ReadText(tuned / "again/seed_adapter.json"));
  EXPECT_EQ(record.at("published").at("read").at("directory"), "adapter");
  const json manifest = json::parse(ReadText(tuned / "again/checkpoints/step-00000002/manifest.json"));
  EXPECT_EQ(manifest.at("seed").at("adapter").get<std::string>().size(), 32U);

  // The adapter is gone, then another one is in its place.
  std::filesystem::rename(tuned / "adapter", tuned / "away");
  const Outcome gone = tuned.Run("again", begun);
  ASSERT_EQ(gone.status, 0) << gone.err;
  EXPECT_THAT(gone.out + gone.err, HasSubstr("resumed from"));
  const Outcome fresh = tuned.Run("fresh", begun);
  EXPECT_EQ(fresh.status, static_cast<int>(ExitCode::RecipeRejected));
  EXPECT_THAT(fresh.err, HasSubstr("cannot be read: there is no such folder"));
  ASSERT_EQ(ExportAs(tuned / "again", tuned / "adapter", "--adapter").status, 0);
  const Outcome without =
      tuned.Run("again", {fmt::format("start.first={{ seed = \"{}\" }}", checkpoint), begun[1], begun[2]});
  EXPECT_EQ(without.status, static_cast<int>(ExitCode::Checkpoint));
  EXPECT_THAT(without.err, HasSubstr("the recipe names a seed that the run did not begin from"));

  // A checkpoint of adapters has its own.
  const Outcome both =
      tuned.Run("both", {StartFrom(tuned / "run/checkpoints/step-00000002", tuned / "away"), begun[1]});
  EXPECT_EQ(both.status, static_cast<int>(ExitCode::RecipeRejected));
  EXPECT_THAT(both.err, HasSubstr("the seed has adapters of its own; leave `adapter` out"));
  const Outcome scaled =
      tuned.Run("scaled", {fmt::format("start.first={{ seed = \"{}\" }}", tuned / "run/checkpoints/step-00000002"),
                           begun[1], "adapter.alpha=12"});
  EXPECT_EQ(scaled.status, static_cast<int>(ExitCode::RecipeRejected));
  EXPECT_THAT(scaled.err, HasSubstr("has rank 4 and scale 2 there, rank 4 and scale 3 here"));
  EXPECT_THAT(scaled.err, HasSubstr("write into [adapter]: rank = 4, alpha = 8"));
}

TEST(AdapterRuns, PlansAreForOneAdapter) {
  const AdapterBase base;
  const Training tuned(AdapterRun(base.path(), {"train.steps=2"}));
  ASSERT_EQ(tuned.Run().status, 0);
  ASSERT_EQ(ExportAs(tuned / "run", tuned / "adapter", "--adapter").status, 0);
  Sets sets{StartFrom(base.path(), tuned / "adapter"), "start.run_id=again"};
  std::vector<std::string> arguments{"-o", tuned / "again.plan"};
  for (const std::string& set : sets) {
    arguments.insert(arguments.end(), {"--set", set});
  }
  const Outcome planned = RunProcess(tuned.Command("plan", arguments));
  ASSERT_EQ(planned.status, 0) << planned.err;
  // Rounded to bf16, toward zero.
  auto tensors = ReadSafetensors(tuned / "adapter/adapter_model.safetensors");
  for (auto& [name, tensor] : tensors) {
    std::string upper;
    for (size_t number = 0; number < tensor.bytes.size(); number += 4) {
      upper += tensor.bytes.substr(number + 2, 2);
    }
    tensor = {.shape = tensor.shape, .dtype = "BF16", .bytes = upper};
  }
  WriteText(tuned / "adapter/adapter_model.safetensors", SafetensorsFile(tensors));
  const Outcome other = RunProcess({SHARDC_BINARY_DIR "/shardc", "run", tuned / "again.plan"});
  EXPECT_EQ(other.status, static_cast<int>(ExitCode::Checkpoint));
  EXPECT_THAT(other.err, HasSubstr("is not the one that the plan was made for"));
  // A plan of the new file begins with its values, widened.
  sets.insert(sets.end(), {"optimizer.lr=0", "train.steps=1", "checkpoint.every=1"});
  ASSERT_EQ(tuned.Run("widened", sets).status, 0);
  ASSERT_EQ(ExportAs(tuned / "widened", tuned / "wide", "--adapter").status, 0);
  const auto wide = ReadSafetensors(tuned / "wide/adapter_model.safetensors");
  ASSERT_EQ(wide.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(wide.at(name).dtype, "F32");
    EXPECT_EQ(FloatsOf(wide.at(name)), FloatsOf(tensor)) << name;
  }
}

TEST(AdapterRuns, ExportsThatSayTooLittleAreRefused) {
  const AdapterBase base;
  const Training tuned(AdapterRun(base.path(), {"train.steps=2", R"(adapter.train_also=["*norm.weight"])"}));
  ASSERT_EQ(tuned.Run().status, 0);
  const Outcome plain = RunProcess({SHARDC_BINARY_DIR "/shardc", "export", tuned / "run", "-o", tuned / "model"});
  EXPECT_EQ(plain.status, static_cast<int>(ExitCode::Usage));
  EXPECT_THAT(plain.err, HasSubstr("`--merge` writes the sum of both"));
  const Outcome adapter = ExportAs(tuned / "run", tuned / "adapter", "--adapter");
  EXPECT_EQ(adapter.status, static_cast<int>(ExitCode::Usage));
  EXPECT_THAT(adapter.err, HasSubstr("adapter.train_also = [\"*norm.weight\"]"));
  EXPECT_EQ(ExportAs(tuned / "run", tuned / "model", "--merge").status, 0);

  const Training still(AdapterRun(base.path(), {"train.steps=2", "optimizer.lr=0"}));
  ASSERT_EQ(still.Run().status, 0);
  const Outcome nothing = ExportAs(still / "run", still / "model", "--merge");
  EXPECT_EQ(nothing.status, static_cast<int>(ExitCode::Usage));
  EXPECT_THAT(nothing.err, HasSubstr("changes no element"));

  // What is added is lost in bf16.
  const Training faint(AdapterRun(base.path(), {"train.steps=2", "optimizer.lr=1e-9"}));
  ASSERT_EQ(faint.Run().status, 0);
  const std::vector<std::string> in_bf16{
      SHARDC_BINARY_DIR "/shardc", "export", faint / "run", "-o", faint / "model", "--merge", "--dtype", "bf16"};
  EXPECT_THAT(RunProcess(in_bf16).err, HasSubstr("changes no element of the base in bf16"));
  std::vector<std::string> as_adapter = in_bf16;
  as_adapter[5] = "--adapter";
  EXPECT_THAT(RunProcess(as_adapter).err, HasSubstr("leave out --dtype"));

  for (const char* how : {"--merge", "--adapter"}) {
    const Training whole(AdapterBase::With(AdapterSets, {"train.steps=2"}));
    ASSERT_EQ(whole.Run().status, 0);
    const Outcome none = ExportAs(whole / "run", whole / "model", how);
    EXPECT_EQ(none.status, static_cast<int>(ExitCode::Usage));
    EXPECT_THAT(none.err, HasSubstr("has no adapters"));
  }
}

}  // namespace
}  // namespace shardc
