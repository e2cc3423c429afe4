// What a run leaves on record, what a restart says of it, and what it does where the record and the disk disagree.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/core/what_changed.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

auto AttemptOf(const std::string& run_dir, const std::string& name) -> nlohmann::json {
  return nlohmann::json::parse(ReadText(run_dir + "/attempts/" + name + "/attempt.json"), nullptr, false);
}

auto LinesOf(const std::string& path) -> std::vector<nlohmann::json> {
  std::vector<nlohmann::json> lines;
  std::istringstream text(ReadText(path));
  for (std::string line; std::getline(text, line);) {
    lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

TEST(Records, NotesAreToldAndKept) {
  const Training training({"train.steps=2", "train.eval_every=0", "optimizer.lr=1e-3 * warmup(20)"});
  const Outcome outcome = training.Run();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const std::string note = "note: the learning rate rises up to the last of the 2 steps, from 5e-05 to 0.0001";
  EXPECT_THAT(outcome.err, HasSubstr(note));
  EXPECT_THAT(ReadText(training / "run/attempts/0001/log.txt"), HasSubstr(note));
}

TEST(Records, AnAttemptHoldsWhatWasAskedAndWhatCameOfIt) {
  const Training training({"train.steps=20"});
  const Outcome first = training.Run("run", {"optimizer.clip_norm=0.5"});
  ASSERT_EQ(first.status, 0) << first.err;
  const std::string folder = training / "run/attempts/0001";
  EXPECT_EQ(ReadText(folder + "/recipe.toml"), ReadText(training / "tiny.toml"));
  EXPECT_THAT(ReadText(folder + "/resolved.toml"),
              AllOf(HasSubstr("\noptimizer.clip_norm = 0.5\n"), HasSubstr("\ncheckpoint.keep = 2\n")));
  EXPECT_THAT(ReadText(folder + "/plan.shardc"), testing::StartsWith("plan version="));
  EXPECT_EQ(ReadText(folder + "/log.txt"), first.err);
  const auto json = AttemptOf(training / "run", "0001");
  EXPECT_EQ(json["attempt"], 1);
  EXPECT_EQ(json["run_id"], "tiny");
  EXPECT_EQ(json["asked"]["recipe"], training / "tiny.toml");
  EXPECT_EQ(json["asked"]["sets"], (nlohmann::json{"train.steps=20", "optimizer.clip_norm=0.5"}));
  EXPECT_EQ(json["began_from"], (nlohmann::json{{"kind", "scratch"}}));
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["mesh"]["dp"], 2);
  EXPECT_EQ(json["ended"], "complete");
  EXPECT_EQ(json["exit_code"], 0);
  EXPECT_EQ(json["last_step"], 20);
  EXPECT_FALSE(json.contains("error"));
  for (const char* member : {"began_at", "ended_at", "host", "pid", "shardc", "libtorch", "device", "plan_hash"}) {
    EXPECT_TRUE(json.contains(member)) << member;
  }

  // Of the second nothing touches the first.
  const auto before = ContentsOf(folder);
  const Outcome second = training.Run("run", {"train.steps=24"});
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(ContentsOf(folder), before);
  EXPECT_EQ(ReadText(training / "run/attempts/0002/log.txt"), second.err);
  const auto began = AttemptOf(training / "run", "0002")["began_from"];
  EXPECT_EQ(began["kind"], "checkpoint");
  EXPECT_EQ(began["step"], 20);

  // A plan has no recipe's text, and a recipe that resolves to itself.
  const Outcome of_plan =
      RunProcess({SHARDC_BINARY_DIR "/shardc", "run", folder + "/plan.shardc", "--run-dir", training / "again"});
  ASSERT_EQ(of_plan.status, 0) << of_plan.err;
  EXPECT_EQ(AttemptOf(training / "again", "0001")["asked"]["plan"], folder + "/plan.shardc");
  EXPECT_FALSE(std::filesystem::exists(training / "again/attempts/0001/recipe.toml"));
  EXPECT_EQ(ReadText(training / "again/attempts/0001/resolved.toml"), ReadText(folder + "/resolved.toml"));
  // Looking makes no attempt.
  ASSERT_EQ(training.Eval(training / "run/checkpoints/step-00000024").status, 0);
  EXPECT_FALSE(std::filesystem::exists(training / "run/attempts/0003"));
}

TEST(Records, HowAnAttemptEnded) {
  const Training training({"train.steps=100000", "train.eval_every=0"});
  Process stopped(training.RunCommand());
  ASSERT_TRUE(stopped.Await([&] { return ReadMetrics(training / "run").last_step() >= 3; })) << stopped.err();
  stopped.Kill(SIGTERM);
  ASSERT_EQ(stopped.Wait().status, 75);
  EXPECT_EQ(AttemptOf(training / "run", "0001")["ended"], "stopped");
  EXPECT_EQ(AttemptOf(training / "run", "0001")["last_step"], ReadMetrics(training / "run").last_step());

  // Rank 0 dies, and the launcher tells.
  Process killed(training.RunCommand());
  const int64_t begun = ReadMetrics(training / "run").last_step();
  ASSERT_TRUE(killed.Await([&] { return ReadMetrics(training / "run").last_step() >= begun + 2; })) << killed.err();
  ::kill(killed.Children().at(0), SIGKILL);
  ASSERT_EQ(killed.Wait().status, 6);
  const auto json = AttemptOf(training / "run", "0002");
  EXPECT_EQ(json["ended"], "failed");
  EXPECT_EQ(json["exit_code"], 6);
  EXPECT_THAT(json["error"].get<std::string>(), HasSubstr("was killed by signal 9"));

  // All die, and the next launch tells.
  Process silent(training.RunCommand());
  ASSERT_TRUE(silent.Await([&] { return AttemptOf(training / "run", "0003").contains("began_from"); }));
  silent.KillGroup(SIGKILL);
  silent.Wait();
  EXPECT_FALSE(AttemptOf(training / "run", "0003").contains("ended"));
  const Outcome next = training.Run("run", {"train.steps=1"});
  EXPECT_EQ(next.status, 0) << next.err;
  EXPECT_THAT(next.err, HasSubstr("the last launch (attempt 0003 of run tiny) did not end properly"));
  EXPECT_THAT(ReadText(training / "run/attempts/0004/log.txt"),
              HasSubstr("attempt 0003 of run tiny) did not end properly"));
}

TEST(Records, SavesAreOnRecord) {
  const Training training({"train.steps=6", "checkpoint.every=2", "checkpoint.keep=1"});
  ASSERT_EQ(training.Run().status, 0);
  const auto lines = LinesOf(training / "run/saves.jsonl");
  ASSERT_EQ(lines.size(), 3U);
  for (size_t i = 0; i < lines.size(); ++i) {
    const int64_t step = 2 * (static_cast<int64_t>(i) + 1);
    EXPECT_EQ(lines[i]["step"], step);
    EXPECT_EQ(lines[i]["attempt"], 1);
    EXPECT_EQ(lines[i]["path"], training / ("run/checkpoints/" + CheckpointNameOf(step)));
  }
}

// The data that was lost: a run that lost sight of its checkpoints began from scratch and overwrote its own records.
TEST(Records, NoneFoundThoughOneIsOnRecordIsAnError) {
  const Training training({"train.steps=4"});
  ASSERT_EQ(training.Run().status, 0);
  const auto before = ContentsOf(training / "run/checkpoints");
  const std::string metrics = ReadText(training / "run/metrics.jsonl");
  const Outcome lost = training.Run("run", {"checkpoint.dir=elsewhere", "train.steps=6"});
  EXPECT_EQ(lost.status, 5);
  EXPECT_THAT(lost.err, AllOf(HasSubstr(training / "elsewhere"),
                              HasSubstr("step 4 of it was saved to " + training / "run/checkpoints/step-00000004"),
                              HasSubstr("set `checkpoint.dir` to " + training / "run/checkpoints"),
                              HasSubstr("another `start.run_id`")));
  EXPECT_EQ(ContentsOf(training / "run/checkpoints"), before);
  EXPECT_EQ(ReadText(training / "run/metrics.jsonl"), metrics);
  // One way on, and the other; the curve that it takes the place of is kept.
  const Outcome back = training.Run("run", {"checkpoint.dir=run/checkpoints", "train.steps=6"});
  EXPECT_EQ(back.status, 0) << back.err;
  EXPECT_THAT(back.err, HasSubstr("at step 4\n"));
  const std::string curve = ReadText(training / "run/metrics.jsonl");
  const Outcome other = training.Run("run", {"checkpoint.dir=elsewhere", "start.run_id=other"});
  EXPECT_EQ(other.status, 0) << other.err;
  EXPECT_THAT(other.err, HasSubstr("started from scratch, seed 7 (no earlier checkpoint in " + training / "elsewhere"));
  EXPECT_EQ(ReadText(training / "run/attempts/0004/metrics_dropped.jsonl"), curve);
}

// What a loss of power may leave of the record is no licence to begin from scratch.
TEST(Records, OneOfSavesThatDoesNotReadIsAnError) {
  const Training training({"train.steps=2"});
  ASSERT_EQ(training.Run().status, 0);
  std::filesystem::remove_all(training / "run/checkpoints");
  for (const std::string& text :
       {std::string(103, '\0'), std::string("garbage\n"), std::string("{\"step\":\"x\"}\n")}) {
    WriteText(training / "run/saves.jsonl", text);
    const Outcome outcome = training.Run();
    EXPECT_EQ(outcome.status, 5) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("1 of the lines of " + training / "run/saves.jsonl do not read"));
  }
  // Beside a checkpoint it is in nobody's way.
  std::filesystem::remove(training / "run/saves.jsonl");
  ASSERT_EQ(training.Run().status, 0);
  WriteText(training / "run/saves.jsonl", "garbage");
  EXPECT_EQ(training.Run("run", {"train.steps=4"}).status, 0);
}

TEST(Records, ACurveThatIsRemovedDuringARunEndsIt) {
  const Training training({"train.steps=100000", "train.eval_every=0", "checkpoint.every=0"});
  Process process(training.RunCommand());
  ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() >= 5; })) << process.err();
  std::filesystem::remove(training / "run/metrics.jsonl");
  const Outcome outcome = process.Wait(Seconds{20});
  EXPECT_EQ(outcome.status, 6);
  EXPECT_THAT(outcome.err, HasSubstr("metrics.jsonl was removed during the run"));
}

/// At no save, since there is none.
TEST(Records, ALaunchThatIsNoOwnerAnyMoreEndsSoon) {
  for (const char* name : {"run/launch.json", "run/checkpoints/lease.json"}) {
    const Training training({"train.steps=1000000", "train.eval_every=0", "checkpoint.every=0"});
    Process process(training.RunCommand());
    ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() >= 5; })) << process.err();
    WriteText(training / name, "x");
    const Outcome outcome = process.Wait(Seconds{30});
    EXPECT_EQ(outcome.status, 6);
    EXPECT_THAT(outcome.err, HasSubstr("was overwritten, and is no lease now"));
    const auto attempt = nlohmann::json::parse(ReadText(training / "run/attempts/0001/attempt.json"));
    EXPECT_EQ(attempt.at("last_step"), ReadMetrics(training / "run").last_step());
  }
}

TEST(Records, AnOlderOneThanIsOnRecordIsTold) {
  const Training training({"train.steps=4", "checkpoint.every=2"});
  ASSERT_EQ(training.Run().status, 0);
  const Metrics whole = ReadMetrics(training / "run");
  std::filesystem::remove_all(training / "run/checkpoints/step-00000004");
  const Outcome again = training.Run();
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, AllOf(HasSubstr("warning: step 4 of run tiny is on record in "),
                               HasSubstr("the newest checkpoint that was found is of step 2")));
  ExpectSameSteps(ReadMetrics(training / "run"), whole);
  const auto dropped = LinesOf(training / "run/attempts/0002/metrics_dropped.jsonl");
  ASSERT_GE(dropped.size(), 2U);
  EXPECT_EQ(dropped[0]["step"], 3);
  EXPECT_EQ(dropped[0]["loss"].get<double>(), whole.steps[2].loss);
}

TEST(Records, RunDirectoryThatIsGoneEndsTheRun) {
  for (const bool is_removed : {true, false}) {
    SCOPED_TRACE(is_removed ? "removed" : "renamed");
    const Training training({"train.steps=100000", "train.eval_every=0", "checkpoint.every=0"});
    Process process(training.RunCommand());
    ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() >= 3; })) << process.err();
    if (is_removed) {
      std::filesystem::remove_all(training / "run");
    } else {
      std::filesystem::rename(training / "run", training / "moved");
    }
    const Outcome outcome = process.Wait();
    EXPECT_EQ(outcome.status, 6);
    EXPECT_THAT(outcome.err, HasSubstr(fmt::format("the run directory {} is gone", training / "run")));
    EXPECT_FALSE(std::filesystem::exists(training / "run"));
    if (!is_removed) {
      EXPECT_EQ(AttemptOf(training / "moved", "0001")["ended"], "failed");
    }
  }
}

// Links, pipes and folders where the run directory's own files belong: an error at once, and nothing is written to what
// they stand for.
TEST(Records, StrangersInTheRunDirectoryAreErrors) {
  const Training training({"train.steps=4", "checkpoint.every=2"});
  ASSERT_EQ(training.Run("good").status, 0);
  for (const std::string name : {"metrics.jsonl", "saves.jsonl", "attempts"}) {
    for (const std::string kind : {"link", "pipe", "folder"}) {
      SCOPED_TRACE(name + " is a " + kind);
      const bool is_folder_meant = name == "attempts";
      if (is_folder_meant && kind == "folder") {
        continue;
      }
      const std::string run_dir = training / "run";
      const std::string victim = training / "victim";
      std::filesystem::remove_all(run_dir);
      std::filesystem::remove_all(victim);
      std::filesystem::copy(training / "good", run_dir, std::filesystem::copy_options::recursive);
      std::filesystem::rename(run_dir + "/" + name, victim);
      const auto before =
          is_folder_meant ? ContentsOf(victim) : std::map<std::string, std::string>{{"", ReadText(victim)}};
      if (kind == "link") {
        std::filesystem::create_symlink(victim, run_dir + "/" + name);
      } else if (kind == "pipe") {
        ASSERT_EQ(mkfifo((run_dir + "/" + name).c_str(), 0600), 0);
      } else {
        std::filesystem::create_directory(run_dir + "/" + name);
      }
      const Outcome outcome = training.Run("run", {"train.steps=6"});
      EXPECT_EQ(outcome.status, 6) << outcome.err;
      EXPECT_LT(outcome.waited.value, 20);
      EXPECT_THAT(outcome.err, HasSubstr(run_dir + "/" + name));
      const auto after =
          is_folder_meant ? ContentsOf(victim) : std::map<std::string, std::string>{{"", ReadText(victim)}};
      EXPECT_EQ(after, before);
    }
  }
  // Another name of the same file keeps what it has.
  for (const std::string name : {"metrics.jsonl", "saves.jsonl"}) {
    std::filesystem::create_hard_link(training / ("good/" + name), training / ("kept-" + name));
  }
  const std::string metrics = ReadText(training / "kept-metrics.jsonl");
  const std::string saves = ReadText(training / "kept-saves.jsonl");
  ASSERT_EQ(training.Run("good", {"train.steps=6"}).status, 0);
  EXPECT_EQ(ReadText(training / "kept-metrics.jsonl"), metrics);
  EXPECT_EQ(ReadText(training / "kept-saves.jsonl"), saves);
  EXPECT_EQ(ReadMetrics(training / "good").steps.size(), 6U);
  EXPECT_EQ(LinesOf(training / "good/saves.jsonl").size(), 3U);
}

TEST(Changed, ARestartSaysWhatChanged) {
  const Training training({"train.steps=20", "optimizer.lr=\"1e-3 * step / steps\""});
  ASSERT_EQ(training.Run().status, 0);
  // Nothing, spelled out.
  const Outcome same = training.Run("run", {"optimizer.clip_norm=1.0", "start.restart=resume"});
  EXPECT_THAT(same.err, Not(HasSubstr("changed since")));
  const Outcome longer = training.Run("run", {"train.steps=22", "init.seed=9"});
  ASSERT_EQ(longer.status, 0) << longer.err;
  EXPECT_THAT(longer.err, HasSubstr("changed since step 20: init.seed 7 -> 9 has no effect any more; train.steps 20 -> "
                                    "22 changes the schedule: lr of step 21 is 0.0009091, was 0.001\n"));
  const Outcome faster = training.Run(
      "run", {"train.steps=24", "optimizer.lr=0.5", "optimizer.weight_decay=0.9", "precision.compute=bf16"});
  ASSERT_EQ(faster.status, 0) << faster.err;
  EXPECT_THAT(faster.err,
              AllOf(HasSubstr("changed since step 22:\n"), HasSubstr("\n  precision.compute \"fp32\" -> \"bf16\"\n"),
                    HasSubstr("optimizer.lr \"1e-3 * step / steps\" -> 0.5: lr of step 23 is 0.5, was 0.001\n"),
                    HasSubstr("\n  optimizer.weight_decay 0.1 -> 0.9\n")));
}

TEST(Changed, AScheduleThatIsAnotherLaterOnIsTold) {
  const Training training({"optimizer.lr=\"1e-3 * min(1, (steps - step) / 5)\"", "checkpoint.every=12"});
  ASSERT_EQ(training.Run("run", {"train.steps=40", "checkpoint.keep=0"}).status, 0);
  for (const char* step : {"24", "36", "40"}) {
    std::filesystem::remove_all(training / fmt::format("run/checkpoints/step-000000{}", step));
  }
  const Outcome shorter = training.Run("run", {"train.steps=30"});
  EXPECT_EQ(shorter.status, 0) << shorter.err;
  EXPECT_THAT(shorter.err, HasSubstr("train.steps 40 -> 30 changes the schedule: lr of step 27 is 0.0008, was 0.001"));
  // Nothing is left to do: no step has another rate.
  const Outcome over = training.Run("run", {"train.steps=12"});
  EXPECT_EQ(over.status, 0) << over.err;
  EXPECT_THAT(over.err, testing::Not(HasSubstr("changes the schedule")));
}

TEST(Changed, WhatACheckpointCannotTellAndWhatItMakesUp) {
  const Training training;
  const Plan plan = training.Compile();
  std::map<std::string, std::string> recipe;
  for (const RecipeEntry& entry : plan.recipe) {
    recipe[entry.key] = entry.value;
  }
  EXPECT_EQ(WhatChanged(recipe, plan, 3), "");
  EXPECT_THAT(WhatChanged({}, plan, 3), HasSubstr("does not hold the recipe that made it"));
  // Spelling out what is the same for all plans of the run says nothing; what is not set any more is told.
  auto before = recipe;
  before["model.kv_heads"] = "2";
  before["batch.global"] = "13";
  before["start.run_id"] = "\"tiny\"";
  EXPECT_EQ(WhatChanged(before, plan, 3), "");
  before["batch.micro"] = "6";
  EXPECT_EQ(WhatChanged(before, plan, 3), "changed since step 3: batch.micro 6 -> unset");
  // A stranger's checkpoint.
  before = recipe;
  before["optimizer.eps"] = "\x1b[2J\n";
  EXPECT_EQ(WhatChanged(before, plan, 3), "changed since step 3: optimizer.eps \\u001b[2J\\n -> 1e-08");
  before = recipe;
  before["optimizer.lr"] = std::string(1'000'000, '(');
  EXPECT_EQ(WhatChanged(before, plan, 3), "changed since step 3: another value of optimizer.lr");
  before = recipe;
  before["train.steps"] = "99999999999999999999999";
  EXPECT_EQ(WhatChanged(before, plan, 3), "changed since step 3: train.steps 99999999999999999999999 -> 40");
  for (int i = 0; i < 1000; ++i) {
    before["x" + std::to_string(i)] = "1";
  }
  const std::string many = WhatChanged(before, plan, 3);
  EXPECT_EQ(std::count(many.begin(), many.end(), '\n'), 21);
  EXPECT_THAT(many, testing::EndsWith("\n  and 981 more"));
}

TEST(Changed, AnotherSeedThanTheRunBeganFromIsAnError) {
  const Training training({"train.steps=4", "checkpoint.every=2", "train.eval_every=0"});
  ASSERT_EQ(training.Run("first").status, 0);
  const auto from = [](const std::string& where) { return fmt::format("start.first={{ seed = \"{}\" }}", where); };
  const Sets second{from("first/checkpoints/step-00000004"), "start.run_id=second"};
  ASSERT_EQ(training.Run("second", second).status, 0);
  EXPECT_EQ(AttemptOf(training / "second", "0001")["began_from"]["step"], 4);
  const auto manifest = nlohmann::json::parse(ReadText(training / "second/checkpoints/step-00000004/manifest.json"));
  EXPECT_EQ(manifest["seed"]["run_id"], "tiny");
  EXPECT_EQ(manifest["seed"]["step"], 4);
  const Outcome other =
      training.Run("second", {from("first/checkpoints/step-00000002"), "start.run_id=second", "train.steps=6"});
  EXPECT_EQ(other.status, 5);
  EXPECT_THAT(other.err, AllOf(HasSubstr("`start.first` names step 2 of run tiny"),
                               HasSubstr("the run began from step 4 of run tiny"),
                               HasSubstr(manifest["seed"]["digest"].get<std::string>())));
  // The same one elsewhere; then gone.
  std::filesystem::create_directories(training / "moved");
  std::filesystem::rename(training / "first/checkpoints/step-00000004", training / "moved/step-00000004");
  const Outcome moved = training.Run("second", {from("moved/step-00000004"), "start.run_id=second", "train.steps=6"});
  EXPECT_EQ(moved.status, 0) << moved.err;
  EXPECT_THAT(moved.err, HasSubstr("-> { seed = \"moved/step-00000004\" } has no effect any more"));
  std::filesystem::remove_all(training / "moved");
  const Outcome gone = training.Run("second", {from("moved/step-00000004"), "start.run_id=second", "train.steps=8"});
  EXPECT_EQ(gone.status, 0) << gone.err;
}

}  // namespace
}  // namespace shardc
