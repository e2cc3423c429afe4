// A known model in a few lines, as a user meets it: plan and check with what is assumed, run without, the list of
// presets, and new recipes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compiler/base/preset_rows.h"
#include "tests/cli/program.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

auto RunIt(const std::vector<std::string>& arguments) -> Finished { return RunProgram(Shardc(), arguments); }

TEST(KnownModels, ARecipeOfLlama3With8BHasTwelveLines) {
  const TemporaryFolder folder;
  const std::string text =
      "[model]\npreset = \"llama3-8b\"\n[mesh]\ndp = 8\n[optimizer]\nlr = \"3e-4 * warmup(200)\"\n"
      "[data]\ntokens = [\"tokens.bin\"]\n[batch]\nmicro = 1\n[train]\nsteps = 1000\n";
  EXPECT_LE(std::ranges::count(text, '\n'), 12);
  const std::string path = WriteIn(folder, "r.toml", text);
  const Finished checked = RunIt({"check", path});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_EQ(checked.out, path + ": ok\n");
  EXPECT_THAT(checked.err, Not(HasSubstr("assumed")));
  const Finished planned = RunIt({"plan", "--explain", path});
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("parameters  8,030,261,248 in all"));
}

TEST(KnownModels, ArePlannedFromThePresetAlone) {
  const TemporaryFolder folder;
  const std::string path = WriteIn(folder, "r.toml", "model.preset = \"llama3-8b\"\n");
  const Finished planned = RunIt({"plan", "--explain", path, "--set", "mesh.dp=8"});
  EXPECT_EQ(planned.exit_code, 0) << planned.err;
  EXPECT_THAT(planned.out, HasSubstr("\npreset      llama3-8b; init.scheme torchtitan-llama\n"));
  const std::string assumed = path + ": assumed ";
  EXPECT_EQ(planned.err,
            assumed +
                "optimizer.lr = 0.0003 (a constant learning rate; memory and communication do not depend on it)\n" +
                assumed + "data.tokens = [\"tokens-not-given\"] (no file: the plan can be looked at, and not run)\n" +
                assumed + "batch.micro = 1 (one sequence per rank and microbatch)\n" + assumed +
                "train.steps = 1000 (memory and communication do not depend on it)\n");
  const std::string shown =
      "assumed     for planning; `shardc run` asks for these keys in the recipe:\n"
      "            optimizer.lr = 0.0003\n"
      "            data.tokens = [\"tokens-not-given\"]\n"
      "            batch.micro = 1\n"
      "            train.steps = 1000\n";
  EXPECT_THAT(planned.out, HasSubstr(shown));
  const Finished json = RunIt({"plan", "--explain", "--format", "json", path});
  EXPECT_EQ(
      nlohmann::json::parse(json.out).at("assumed").dump(),
      R"({"batch.micro":"1","data.tokens":"[\"tokens-not-given\"]","optimizer.lr":"0.0003","train.steps":"1000"})");
  const Finished checked = RunIt({"check", path});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_EQ(checked.out, path + ": ok to plan; `shardc run` needs what was assumed\n");
  const Finished init = RunIt({"plan", "--print-init", path});
  EXPECT_THAT(init.out, HasSubstr("init.scheme, preset llama3-8b"));
}

TEST(KnownModels, WhatIsAssumedDoesNotRun) {
  const TemporaryFolder folder;
  const std::string path = WriteIn(folder, "r.toml", "model.preset = \"llama-debug\"\n");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"run", path}, {"eval", path, "--checkpoint", "x"}}) {
    const Finished finished = RunIt(command);
    EXPECT_EQ(finished.exit_code, 3);
    EXPECT_THAT(finished.err, HasSubstr("[train] is missing; these keys have no default: `steps`"));
    EXPECT_THAT(finished.err, Not(HasSubstr("assumed")));
  }
  const std::string without_data = WriteIn(
      folder, "d.toml",
      "[model]\npreset = \"llama-debug\"\nseq = 8\n[optimizer]\nlr = 1\n[batch]\nmicro = 1\n[train]\nsteps = 1\n");
  EXPECT_THAT(RunIt({"run", without_data}).err, HasSubstr("[data]"));

  const std::string plan = folder / "r.plan";
  const auto refused = [&](const std::string& keys) {
    EXPECT_EQ(RunIt({"plan", "--explain", plan}).exit_code, 0);
    for (const std::string command : {"check", "run"}) {
      const Finished finished = RunIt({command, plan});
      EXPECT_EQ(finished.exit_code, 3) << command;
      EXPECT_THAT(finished.err, HasSubstr("was made from a recipe without " + keys + ": it has assumed values"))
          << command;
    }
  };
  ASSERT_EQ(RunIt({"plan", path, "-o", plan}).exit_code, 0);
  refused("optimizer.lr, data.tokens, batch.micro, train.steps");
  // Synthetic data need no file: the learning rate alone is assumed.
  const std::string without_lr = WriteIn(
      folder, "l.toml",
      "[model]\npreset = \"llama-debug\"\n[data]\nsynthetic = \"zipf\"\n[batch]\nmicro = 1\n[train]\nsteps = 1\n");
  ASSERT_EQ(RunIt({"plan", without_lr, "-o", plan}).exit_code, 0);
  refused("optimizer.lr");
}

TEST(KnownModels, AreWrittenOutByEmit) {
  const TemporaryFolder folder;
  const std::string path = WriteIn(folder, "r.toml", "model.preset = \"qwen3-0.6b\"\n");
  const Finished finished = RunIt({"plan", "--emit=recipe", path});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("\nscheme = \"normal\"  # preset qwen3-0.6b\n"));
  EXPECT_THAT(finished.out, HasSubstr("\nhead_dim = 128  # preset qwen3-0.6b\n"));
  EXPECT_THAT(finished.out, HasSubstr("\n# micro = 1  # assumed\n"));
}

TEST(KnownModels, AreWrittenOutWithoutWarning) {
  const TemporaryFolder folder;
  const std::string preset = "[model]\npreset = \"llama-debug\"\nseq = 8\n";
  const std::string sizes =
      "[model]\nfamily = \"llama\"\nlayers = 1\nhidden = 8\nheads = 2\nffn = 8\nvocab = 256\nseq = 8\n";
  const std::string steps = "[optimizer]\nlr = 0.01\n[batch]\nmicro = 1\n[train]\nsteps = 1\n[data]\n";
  const std::string rule = "[[init.rule]]\nmatch = \"*\"\nvalue = \"normal(0, 0.02)\"\n";
  for (const std::string& text :
       {preset + steps + "synthetic = \"zipf\"\n", sizes + steps + "synthetic = \"zipf\"\nseed = 3\n" + rule,
        preset + steps + "tokens = [\"r.toml\"]\nformat = \"u8\"\norder = \"sequential\"\n"}) {
    const std::string path = WriteIn(folder, "r.toml", text);
    const Finished emitted = RunIt({"plan", "--emit=recipe", path});
    EXPECT_EQ(emitted.exit_code, 0) << emitted.err;
    EXPECT_EQ(RunIt({"check", WriteIn(folder, "written.toml", emitted.out)}).err, "");
  }
}

TEST(KnownModels, AreTheSameChoiceWrittenOut) {
  const TemporaryFolder folder;
  for (const PresetRow& row : PresetRows()) {
    const std::string path = WriteIn(folder, "r.toml", fmt::format("model.preset = \"{}\"\n", row.name));
    const std::string written = WriteIn(folder, "written.toml", RunIt({"plan", "--emit=recipe", path}).out);
    const Finished report = RunIt({"plan", "--explain", written});
    EXPECT_EQ(report.exit_code, 0) << report.err;
    EXPECT_THAT(report.out, AllOf(HasSubstr("set as in the preset: "), Not(HasSubstr("which the preset does not set"))))
        << row.name;
  }
  // A choice is told.
  const std::string other = WriteIn(folder, "r.toml", "[model]\npreset = \"llama3-8b\"\ntied = true\n");
  EXPECT_THAT(RunIt({"plan", "--explain", other}).out, HasSubstr("tied true set by recipe:3"));
}

TEST(KnownModels, AWrongNameIsAnsweredWithTheNearest) {
  const TemporaryFolder folder;
  const std::string path = WriteIn(folder, "r.toml", "[model]\npreset = \"llama3-8\"\n");
  const Finished finished = RunIt({"check", path});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_EQ(finished.err, path +
                              ":2:10: error: \"llama3-8\" is no preset of a model [unknown-preset]\n"
                              "    2 | preset = \"llama3-8\"\n"
                              "      |          ^~~~~~~~~~\n"
                              "help: did you mean \"llama3-8b\"? `shardc presets` lists all\n"
                              "10 more checks wait for this\n");
}

TEST(KnownModels, AreListed) {
  const Finished text = RunIt({"presets"});
  EXPECT_EQ(text.exit_code, 0);
  const auto json = nlohmann::json::parse(RunIt({"presets", "--format", "json"}).out);
  ASSERT_EQ(json.size(), PresetRows().size());
  for (size_t i = 0; i < json.size(); ++i) {
    EXPECT_EQ(json[i].at("name"), PresetRows()[i].name);
    EXPECT_THAT(text.out, HasSubstr("\n" + json[i].at("name").get<std::string>() + " "));
  }
  EXPECT_EQ(json[3].at("parameters"), 8'030'261'248);
  EXPECT_EQ(json[3].at("keys").at("model.layers"), 32);
  EXPECT_EQ(json[3].at("keys").at("init.scheme"), "torchtitan-llama");
  EXPECT_THAT(text.out, HasSubstr("8,030,261,248"));
  std::istringstream lines(text.out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100U) << line;
  }
}

TEST(NewRecipes, PassTheCheckAndReplaceNothing) {
  const TemporaryFolder folder;
  const std::string path = folder / "r.toml";
  const Finished made = RunIt({"new", path, "--preset", "qwen3-0.6b"});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("shardc plan --explain " + path));
  const std::string text = ReadText(path);
  EXPECT_THAT(text, StartsWith("#:schema recipe.schema.json\n"));
  EXPECT_THAT(text, HasSubstr("preset = \"qwen3-0.6b\""));
  const Finished checked = RunIt({"check", path});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_THAT(checked.err, Not(HasSubstr("assumed")));

  const Finished again = RunIt({"new", path});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_THAT(again.err, HasSubstr(path + " exists, and stays as it is"));
  EXPECT_EQ(ReadText(path), text);
  const Finished unknown = RunIt({"new", folder / "s.toml", "--preset", "llama3-8"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean \"llama3-8b\""));
  EXPECT_EQ(RunIt({"new", folder / "none" + std::string("/s.toml")}).exit_code, 6);
  EXPECT_EQ(RunIt({"new", folder / "t.toml"}).exit_code, 0);
  EXPECT_EQ(RunIt({"check", folder / "t.toml"}).exit_code, 0);
  // A first trial of a few steps needs no other change.
  for (const char* steps : {"train.steps=1", "train.steps=2", "train.steps=20"}) {
    const Finished tried = RunIt({"check", folder / "t.toml", "--set", steps});
    EXPECT_EQ(tried.exit_code, 0) << tried.err;
  }
}

}  // namespace
}  // namespace shardc
