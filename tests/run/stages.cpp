// Stages: runs that continue another run's checkpoint, by the programs. What goes on does so to the bit; what begins
// again is as in a run of its own; and nothing that cannot go on is taken without a word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "compiler/base/files.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/checkpoint/safetensors.h"
#include "compiler/plan/init_rule.h"
#include "compiler/verify/verify.h"
#include "tests/support/repository.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Bytes of the tensors of a checkpoint of one mesh, by rank's file and name.
using Tensors = std::map<std::string, std::string>;

auto TensorsOf(const std::string& checkpoint) -> Tensors {
  Tensors tensors;
  for (const auto& entry : std::filesystem::directory_iterator(checkpoint)) {
    if (entry.path().extension() != ".safetensors") {
      continue;
    }
    const auto directory = OpenDirectory(PosixFs(), checkpoint);
    const auto file = OpenFileAt(*directory, entry.path().filename().string());
    const auto header = ReadSafetensorsHeader(*file);
    EXPECT_TRUE(header.ok());
    const std::string text = ReadText(entry.path());
    for (const SafetensorsTensor& tensor : header->tensors) {
      tensors[entry.path().filename().string() + " " + tensor.name] = text.substr(
          static_cast<size_t>(header->data_begin + tensor.data.begin), static_cast<size_t>(tensor.data.size()));
    }
  }
  EXPECT_FALSE(tensors.empty()) << checkpoint;
  return tensors;
}

auto ManifestAt(const std::string& checkpoint) -> Manifest {
  const auto manifest = ManifestFromText(ReadText(checkpoint + "/manifest.json"));
  EXPECT_TRUE(manifest.ok()) << manifest.error().message;
  return *manifest;
}

class Stages : public testing::Test {
 protected:
  Stages() : training_({"train.eval_every=0", "optimizer.lr=1e-2 * (1 - step / 40)", "checkpoint.every=0"}) {}

  static auto Continue(const std::string& run, const std::string& more, Sets sets) -> Sets {
    sets.push_back(fmt::format("start.first={{ continue = \"{}\"{} }}", run, more));
    return sets;
  }
  /// Runs a stage in a folder of its name; expects that it ends well.
  auto RunStage(const std::string& name, Sets sets) const -> std::string {
    sets.push_back("start.run_id=" + name);
    const Outcome outcome = training_.Run(name, sets);
    EXPECT_EQ(outcome.status, 0) << name << ": " << outcome.err;
    return outcome.err;
  }
  auto Newest(const std::string& run) const -> std::string {
    return training_ / run + "/checkpoints/" + CheckpointsOf(training_ / run).back();
  }

  Training training_;
};

TEST_F(Stages, WithNothingResetAreOneRun) {
  for (const Sets& sets :
       std::vector<Sets>{{}, {"optimizer.name=sgd", "optimizer.momentum=0.9"}, {"data.order=sequential"}}) {
    for (const char* name : {"whole", "first", "second"}) {
      std::filesystem::remove_all(training_ / name);
    }
    auto with = [&](Sets more) {
      more.insert(more.end(), sets.begin(), sets.end());
      return more;
    };
    RunStage("whole", with({"train.steps=12"}));
    RunStage("first", with({"train.steps=7"}));
    const std::string err = RunStage("second", with(Continue("first", ", reset = []", {"train.steps=5"})));
    EXPECT_THAT(err, AllOf(HasSubstr("run second: continues "), HasSubstr("moments of 7 updates go on"),
                           HasSubstr("the schedule goes on at step 7"), HasSubstr("the data go on after 84 samples")));
    const Metrics whole = ReadMetrics(training_ / "whole");
    const Metrics second = ReadMetrics(training_ / "second");
    ASSERT_EQ(second.steps.size(), 5U);
    for (size_t s = 0; s < 5; ++s) {
      EXPECT_EQ(second.steps[s].loss, whole.steps[s + 7].loss) << s;
      EXPECT_EQ(second.steps[s].lr, whole.steps[s + 7].lr) << s;
    }
    EXPECT_EQ(TensorsOf(Newest("second")), TensorsOf(Newest("whole")));
    const Manifest manifest = ManifestAt(Newest("second"));
    EXPECT_EQ(manifest.step, 5);
    EXPECT_EQ(manifest.state.at("updates"), 12);
    EXPECT_EQ(manifest.seed.steps_before, 7);
    EXPECT_THAT(ReadText(training_ / "second/attempts/0001/attempt.json"), HasSubstr("\"steps_before\": 7"));
    EXPECT_EQ(manifest.data.first_samples, std::vector<int64_t>{84});
  }
}

TEST_F(Stages, BeginScheduleAndDataAnewByDefault) {
  RunStage("first", {"train.steps=6"});
  const Sets changed = Continue("first", "", {"train.steps=3", "batch.global=24", "optimizer.lr=1e-3"});
  const std::string err = RunStage("second", changed);
  EXPECT_THAT(err,
              AllOf(HasSubstr("moments of 6 updates go on; the schedule begins again; the data begin again"),
                    HasSubstr("  batch.global 12 -> 24: an update is the mean over "),
                    HasSubstr("  optimizer.lr \"1e-2 * (1 - step / 40)\" -> 0.001: the rate is that of this stage")));
  std::vector<std::string> arguments{"--explain"};
  for (const std::string& set : changed) {
    arguments.insert(arguments.end(), {"--set", set});
  }
  const Outcome explained = RunProcess(training_.Command("plan", arguments));
  EXPECT_EQ(explained.status, 0) << explained.err;
  EXPECT_THAT(explained.out, AllOf(HasSubstr("\n            batch.global 12 -> 24: an update is the mean over "),
                                   HasSubstr("\n            train.steps 6 -> 3: of this stage alone\n")));
  EXPECT_EQ(ReadMetrics(training_ / "second").steps[0].lr, 1e-3);
  // A seed of the same parameters, whose moments are 0, goes elsewhere from its second step on.
  RunStage("seeded", {"train.steps=3", "batch.global=24", "optimizer.lr=1e-3",
                      fmt::format("start.first={{ seed = \"{}\" }}", Newest("first"))});
  EXPECT_EQ(ReadMetrics(training_ / "second").steps[0].loss, ReadMetrics(training_ / "seeded").steps[0].loss);
  EXPECT_NE(ReadMetrics(training_ / "second").steps[1].loss, ReadMetrics(training_ / "seeded").steps[1].loss);
  // All that is reset is a seed.
  RunStage("reset", Continue("first", ", reset = [\"moments\", \"schedule\", \"data\"]",
                             {"train.steps=3", "batch.global=24", "optimizer.lr=1e-3"}));
  EXPECT_EQ(TensorsOf(Newest("reset")), TensorsOf(Newest("seeded")));
}

TEST_F(Stages, GoOnAfterEachRestart) {
  RunStage("first", {"train.steps=4"});
  RunStage("whole", Continue("first", "", {"train.steps=6"}));
  RunStage("second", Continue("first", "", {"train.steps=3"}));
  // The base has trained on, and its checkpoint is gone.
  RunStage("first", {"train.steps=5"});
  std::filesystem::remove_all(training_ / "first/checkpoints/step-00000004");
  EXPECT_THAT(RunStage("second", Continue("first", "", {"train.steps=6"})), HasSubstr("run second: resumed from "));
  EXPECT_EQ(TensorsOf(Newest("second")), TensorsOf(Newest("whole")));
  std::filesystem::remove_all(training_ / "first");
  EXPECT_THAT(RunStage("second", Continue("first", "", {"train.steps=6"})), HasSubstr("complete, 6 of 6 steps"));
  // Nor does it matter what became of the run before, once there is a checkpoint of its own.
  RunStage("first", {"train.steps=4", "model.layers=1"});
  EXPECT_THAT(RunStage("second", Continue("first", "", {"train.steps=6"})), HasSubstr("finished at step 6, by "));
  // Without what it continues it would be another run.
  const Outcome without = training_.Run("second", {"start.run_id=second", "train.steps=7"});
  EXPECT_EQ(without.status, 5);
  EXPECT_THAT(without.err,
              AllOf(HasSubstr("the run continues step 4 of run first, and the number of steps before is 4 in "
                              "the checkpoint, 0 in this run"),
                    HasSubstr("put `start.first` back")));
}

// The first update of a parameter that was frozen is that of a first step: the bias correction counts its own updates.
TEST_F(Stages, CountUpdatesOfEachParameter) {
  const std::string name = "model.embed_tokens.weight";
  RunStage("frozen", {"train.steps=6", "optimizer.frozen=[\"model.embed*\"]"});
  const std::string err = RunStage("unfrozen", Continue("frozen", "", {"train.steps=1", "optimizer.lr=1e-3"}));
  EXPECT_THAT(err, AllOf(HasSubstr("moments of 6 updates go on, 1 parameter begins with moments of 0"),
                         HasSubstr("  optimizer.frozen [\"model.embed*\"] -> []: what is trained now and was frozen")));
  RunStage("fresh", Continue("frozen", ", reset = [\"moments\", \"schedule\", \"data\"]",
                             {"train.steps=1", "optimizer.lr=1e-3"}));
  const Tensors unfrozen = TensorsOf(Newest("unfrozen"));
  const Tensors fresh = TensorsOf(Newest("fresh"));
  ASSERT_EQ(unfrozen.size(), fresh.size());
  int64_t num_of_embedding = 0;
  for (const auto& [of, bytes] : fresh) {
    const bool is_embedding = of.find(name) != std::string::npos;
    num_of_embedding += is_embedding ? 1 : 0;
    EXPECT_EQ(bytes == unfrozen.at(of), is_embedding) << of;
  }
  EXPECT_GE(num_of_embedding, 3);
  // The next stage still knows.
  const Manifest manifest = ManifestAt(Newest("unfrozen"));
  EXPECT_EQ(manifest.tensors.at(name).first_update, 6);
  EXPECT_EQ(manifest.tensors.at("lm_head.weight").first_update, 0);
  RunStage("third", Continue("unfrozen", ", reset = []", {"train.steps=2", "optimizer.lr=1e-3"}));
  RunStage("longer", Continue("frozen", "", {"train.steps=3", "optimizer.lr=1e-3"}));
  EXPECT_EQ(TensorsOf(Newest("third")), TensorsOf(Newest("longer")));
  EXPECT_EQ(ManifestAt(Newest("third")).tensors.at(name).first_update, 6);
}

// A parameter that a rule copies from another was trained in no step, and has no moments.
TEST_F(Stages, CopiesBeginWithoutMoments) {
  RunStage("first", {"train.steps=4"});
  const Sets copy = {"train.steps=1",
                     "init.rule=[{match=\"lm_head.weight\", value=\"seed('model.embed_tokens.weight')\"}]"};
  const std::string err =
      RunStage("copied", Continue("first", ", missing = [\"lm_head.weight\"], unused = [\"lm_head.weight\"]", copy));
  EXPECT_THAT(err, HasSubstr("moments of 4 updates go on, 1 parameter begins with moments of 0"));
  EXPECT_EQ(ManifestAt(Newest("copied")).tensors.at("lm_head.weight").first_update, 4);
}

TEST_F(Stages, TakeTheLastCheckpointOrNone) {
  RunStage("first", {"train.steps=4", "checkpoint.every=2"});
  std::filesystem::remove(Newest("first") + "/manifest.json");
  const Outcome outcome = training_.Run("second", Continue("first", "", {"start.run_id=second"}));
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(outcome.err, HasSubstr("the checkpoint \"first\" cannot be read: "));
}

// A stage goes on in what it trains on, and may hold out other tokens.
TEST_F(Stages, MayEvaluateOnOtherTokens) {
  RunStage("first", {"train.steps=4", "data.eval_tokens=0"});
  WriteBin(training_ / "eval.bin", EasyTokens(500));
  RunStage("second",
           Continue("first", ", reset = []", {"train.steps=1", "data.eval_tokens=0", "data.eval=[\"eval.bin\"]"}));
  WriteBin(training_ / "other.bin", EasyTokens(600));
  RunStage("third",
           Continue("second", ", reset = []", {"train.steps=1", "data.eval_tokens=0", "data.eval=[\"other.bin\"]"}));
}

TEST_F(Stages, AreReadByAnyMesh) {
  RunStage("first", {"train.steps=4"});
  RunStage("two", Continue("first", "", {"train.steps=1", "optimizer.lr=0", "optimizer.weight_decay=0"}));
  RunStage("tp", Continue("first", "",
                          {"train.steps=1", "optimizer.lr=0", "optimizer.weight_decay=0", "mesh.dp=1", "mesh.tp=2"}));
  RunStage("one", Continue("tp", "", {"train.steps=1", "optimizer.lr=0", "mesh.dp=1"}));
  EXPECT_NEAR(ReadMetrics(training_ / "tp").steps[0].loss, ReadMetrics(training_ / "two").steps[0].loss, 1e-5);
  EXPECT_NEAR(ReadMetrics(training_ / "one").steps[0].loss, ReadMetrics(training_ / "two").steps[0].loss, 1e-5);
  EXPECT_EQ(ManifestAt(Newest("one")).state.at("updates"), 6);
}

TEST_F(Stages, BeginFromACheckpointOfStepZeroAsFromScratch) {
  const std::vector<std::string> command = training_.Command("init", {"-o", training_ / "zero"});
  const Outcome made = RunProcess(command);
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(made.err, HasSubstr("step 0: saved " + (training_ / "zero/step-00000000")));
  EXPECT_FALSE(std::filesystem::exists(training_ / "runs"));
  RunStage("scratch", {"train.steps=3"});
  RunStage("begun", Continue("zero", "", {"train.steps=3"}));
  EXPECT_EQ(TensorsOf(Newest("begun")), TensorsOf(Newest("scratch")));
  RunStage("other", Continue("zero", "", {"train.steps=1", "mesh.dp=1", "mesh.tp=2"}));
  EXPECT_NEAR(ReadMetrics(training_ / "other").steps[0].loss, ReadMetrics(training_ / "scratch").steps[0].loss, 1e-5);
  // A checkpoint is replaced by no other.
  const auto before = ContentsOf(training_ / "zero");
  const Outcome again = RunProcess(command);
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.err,
              HasSubstr("it has a checkpoint, " + (training_ / "zero/step-00000000") + "; name another folder"));
  EXPECT_EQ(ContentsOf(training_ / "zero"), before);
}

TEST_F(Stages, AreRefusedWhereStateDoesNotFit) {
  RunStage("first", {"train.steps=4"});
  struct Row {
    std::string first;
    Sets sets;
    std::string says;
  };
  for (const Row& row : std::vector<Row>{
           {R"({ continue = "first" })",
            {"optimizer.name=sgd"},
            "`optimizer.name` is adamw there, sgd here; put it back, or add \"moments\" to `reset`"},
           {R"({ continue = "first", reset = ["schedule"] })", {"data.seed=7"}, "`data.seed` is "},
           {R"({ continue = "first", reset = [] })",
            {"model.seq=16"},
            "`model.seq` is 32 there, 16 here; put it back, or add \"data\" to `reset`"},
           {R"({ continue = "firts" })", {}, "there is no such folder; the nearest name is "},
           {R"({ continue = "tokens.bin" })", {}, "it is a file"},
           {R"({ continue = "first", reset = ["moment"] })", {}, "which may be meant as \"moments\""},
           {R"({ continue = "first", seed = "first" })", {}, "has `seed` and `continue`"},
           {R"({ seed = "first", reset = [] })", {}, "has `reset`, and a `seed` gives the parameters alone"},
           {R"({ reset = [] })", {}, "the checkpoint to begin from; or `continue`"},
           {R"({ continue = "first" })", {"model.layers=3"}, "has no model.layers.2."}}) {
    Sets sets = row.sets;
    sets.push_back("start.first=" + row.first);
    sets.emplace_back("start.run_id=second");
    const Outcome outcome = training_.Run("second", sets);
    EXPECT_EQ(outcome.status, 3) << row.first;
    EXPECT_THAT(outcome.err, HasSubstr(row.says)) << row.first;
    EXPECT_FALSE(std::filesystem::exists(training_ / "second/checkpoints")) << row.first;
  }
}

TEST_F(Stages, KeepNoPositionInOtherFiles) {
  RunStage("first", {"train.steps=4"});
  auto ids = EasyTokens(40000);
  ids[5] = static_cast<uint16_t>(ids[5] == 'a' ? 'b' : 'a');
  WriteBin(training_ / "tokens.bin", ids);
  Sets sets = Continue("first", ", reset = [\"schedule\"]", {"train.steps=1", "start.run_id=second"});
  const Outcome outcome = training_.Run("second", sets);
  EXPECT_EQ(outcome.status, 5);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("the run goes on with other data: what `data.tokens` holds is "),
                                 HasSubstr("put them back, or add \"data\" to `reset`")));
  RunStage("second", Continue("first", "", {"train.steps=1"}));
}

// Trains the recipes that users begin from, small.
TEST(RecipesOfStages, TrainOneAfterAnother) {
  const TemporaryFolder folder;
  for (const char* file : {"web.bin", "books.bin", "best.bin"}) {
    WriteBin(folder / file, EasyTokens(20000));
  }
  const std::vector<std::pair<std::string, std::string>> stages{
      {"1_short", "started from scratch"},
      {"2_long", "moments of 3 updates go on; the schedule begins again; the data begin again"},
      {"3_anneal", "moments of 6 updates go on; the schedule begins again; the data begin again"}};
  for (const auto& [stage, says] : stages) {
    std::filesystem::copy_file(RepositoryPath("recipes/stages/" + stage + ".toml"), folder / (stage + ".toml"));
    std::vector<std::string> command{SHARDC_BINARY_DIR "/shardc", "run", folder / (stage + ".toml")};
    for (const std::string& set :
         {std::string("model.layers=2"), std::string("model.hidden=32"), std::string("model.heads=2"),
          std::string("model.kv_heads=1"), std::string("model.head_dim=16"), std::string("model.ffn=64"),
          std::string("model.vocab=256"), std::string(stage == "1_short" ? "model.seq=32" : "model.seq=64"),
          std::string("mesh.dp=2"), std::string("precision.compute=fp32"), std::string("batch.global=4"),
          std::string("train.steps=3"), std::string("run.threads=1")}) {
      command.insert(command.end(), {"--set", set});
    }
    const Outcome outcome = RunProcess(command);
    ASSERT_EQ(outcome.status, 0) << stage << ": " << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(says)) << stage;
  }
}

TEST_F(Stages, OfAPlanThatSaysOtherwiseAreRefused) {
  RunStage("first", {"train.steps=4"});
  const Plan plan = training_.Compile(Continue(training_ / "first", "", {"train.steps=1"}));
  EXPECT_EQ(VerifyPlan(plan).size(), 0U);
  const auto finds = [&](const std::function<void(Plan&)>& change) {
    Plan changed = plan;
    change(changed);
    std::string found;
    for (const std::string& finding : VerifyPlan(changed)) {
      found += finding + "\n";
    }
    return found;
  };
  EXPECT_THAT(finds([](Plan& p) {
                std::erase_if(p.section(SectionKind::Init).ops,
                              [](const Op& op) { return op.As<op::LoadMoment>() != nullptr; });
              }),
              HasSubstr("is loaded 0 times, expected 1"));
  EXPECT_THAT(finds([](Plan& p) { p.seed.updates = 0; }), HasSubstr("load_moment-c3"));
  EXPECT_THAT(finds([](Plan& p) { p.parameters[ParameterId{0}].first_update = 4; }), HasSubstr("load_moment-c3"));
  EXPECT_THAT(finds([](Plan& p) { p.run.first_step = 4; }), HasSubstr("goes on with the schedule of step 4"));
  EXPECT_THAT(finds([](Plan& p) { p.data.sources[0].first_sample = 4; }), HasSubstr("goes on with the data of step 4"));
  EXPECT_THAT(finds([](Plan& p) { p.parameters[ParameterId{0}].first_update = 5; }), HasSubstr("first_update is 5"));
}

}  // namespace
}  // namespace shardc
