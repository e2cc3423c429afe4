// The program as a user meets it: exit codes, what goes to which stream, colour, files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "compiler/plan/text.h"
#include "tests/cli/program.h"
#include "tests/support/edited.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

auto RunShardc(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {})
    -> Finished {
  return RunProgram(Shardc(), arguments, environment);
}

TEST(Cli, ExitCodes) {
  const TemporaryFolder folder;
  const std::string sound = WriteIn(folder, "sound.toml", SoundRecipe());
  const std::string broken = WriteIn(folder, "broken.toml", "[model]\nlayers = 0\n");
  const std::string missing = folder / "missing.toml";
  WriteIn(folder, "here.u8", std::string(100, '\3'));
  struct Case {
    std::vector<std::string> arguments;
    int exit_code;
  };
  const Case cases[] = {
      {{"--help"}, 0},
      {{"check", "-h"}, 0},
      {{"--version"}, 0},
      {{"check", sound}, 0},
      {{"check", "--set", "train.steps=3", "--set", "model.layers=3", sound}, 0},
      {{"check", sound, "--set", "train.steps=3", "--strict"}, 3},
      {{"check", sound, "--set", "train.steps=3", "--strict", "--set", "data.tokens=[\"here.u8\"]", "--set",
        "data.format=u8"},
       0},
      {{"check", "--set", "train.eval_every=3", sound}, 0},
      {{"check", "--set", "train.eval_every=3", "--strict", sound}, 3},
      {{"check", "--set", "train.stepz=3", sound}, 3},
      {{"check", broken}, 3},
      {{"plan", broken}, 3},
      {{"plan", sound}, 0},
      {{"plan", sound, "-o", "/nonexistent/x.plan"}, 6},
      {{"run", broken}, 3},
      {{"eval", broken, "--checkpoint", "x"}, 3},
      {{"eval", sound, "--checkpoint", "x"}, 3},
      {{"eval", sound}, 3},
      {{"eval", sound, "--set", "data.eval_tokens=64"}, 5},
      {{"check", missing}, 2},
      {{"check", folder.path()}, 2},
      {{}, 2},
      {{"frobnicate"}, 2},
      {{"check"}, 2},
      {{"check", sound, "extra"}, 2},
      {{"check", sound, "--frob"}, 2},
      {{"check", sound, "--color=blue"}, 2},
      {{"plan", sound, "--stop-after=nothing"}, 2},
      {{"plan", sound, "--disable=nothing"}, 2},
      {{"help", "model.layers"}, 0},
      {{"help", "erfinv"}, 0},
      {{"help", "init_std"}, 0},
      {{"help", "no-such-thing"}, 2},
      {{"tokenize", sound, "-o", folder / "x.bin"}, 2},
      {{"tokenize", "--bytes", missing, "-o", folder / "x.bin"}, 2},
      {{"tokenize", "--bytes", "/dev/null", "-o", folder / "x.bin"}, 2},
      {{"docs"}, 2},
      {{"docs", "--errors"}, 0},
      {{"schema"}, 0},
      {{"schema", "--plan"}, 0},
  };
  for (const Case& c : cases) {
    const Finished finished = RunShardc(c.arguments);
    std::string line = "shardc";
    for (const std::string& argument : c.arguments) {
      line += " " + argument;
    }
    EXPECT_EQ(finished.exit_code, c.exit_code) << line << "\n" << finished.err;
    if (c.exit_code == 0) {
      EXPECT_NE(finished.out, "") << line;
    } else {
      EXPECT_EQ(finished.out, "") << line;
      EXPECT_NE(finished.err, "") << line;
    }
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "x.bin"));
}

TEST(Cli, OutputThatIsADeviceOrALinkStaysOne) {
  const TemporaryFolder folder;
  const std::string sound = WriteIn(folder, "sound.toml", SoundRecipe());
  ASSERT_EQ(RunShardc({"plan", sound, "-o", "/dev/null"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  const Finished piped = RunShardc({"plan", sound, "-o", "/dev/stdout"});
  EXPECT_EQ(piped.exit_code, 0) << piped.err;
  EXPECT_THAT(piped.out, StartsWith("plan version="));
  const std::string file = WriteIn(folder, "file.plan", "old");
  std::filesystem::create_symlink(file, folder / "link.plan");
  ASSERT_EQ(RunShardc({"plan", sound, "-o", folder / "link.plan"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link.plan"));
  EXPECT_EQ(ReadText(file), piped.out);
}

TEST(Cli, ErrorsGoToStderrWithPlaceAndCaret) {
  const TemporaryFolder folder;
  const std::string path = WriteIn(folder, "misspelt.toml", Edited(SoundRecipe(), {{"hidden", "hiden"}}));
  const Finished finished = RunShardc({"check", path});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_THAT(finished.err, StartsWith(path + ":4:1: error: `hiden` is not known in [model] [unknown-key]\n"
                                              "    4 | hiden = 8\n"
                                              "      | ^~~~~\n"
                                              "help: did you mean `hidden`?\n"));
}

TEST(Cli, ManyErrorsAreCappedWithACount) {
  const TemporaryFolder folder;
  std::string text = SoundRecipe() + "[run]\n";
  for (int i = 0; i < 130; ++i) {
    text += fmt::format("unknown_{} = 1\n", i);
  }
  const std::string path = WriteIn(folder, "many.toml", text);
  const std::string told = RunShardc({"check", path}).err;
  EXPECT_THAT(told, HasSubstr("`unknown_99` is not known"));
  EXPECT_THAT(told, Not(HasSubstr("`unknown_100` is not known")));
  EXPECT_THAT(
      told,
      HasSubstr("\n130 errors, 100 shown; `shardc check --format json RECIPE`, with the same options, prints all\n"));
  EXPECT_THAT(RunShardc({"check", "--format", "json", path}).out, HasSubstr("`unknown_129` is not known"));
}

TEST(Cli, Color) {
  const TemporaryFolder folder;
  const std::string path = WriteIn(folder, "broken.toml", "x = 1\n");
  struct Case {
    std::string flag;
    std::vector<std::string> environment;
    bool is_colored;
  };
  const Case cases[] = {
      {"--color=auto", {}, false},
      {"--color=always", {}, true},
      {"--color=always", {"NO_COLOR=1"}, true},
      {"--color=auto", {"CLICOLOR_FORCE=1"}, true},
      {"--color=auto", {"CLICOLOR_FORCE=0"}, false},
      {"--color=auto", {"CLICOLOR_FORCE=1", "NO_COLOR=1"}, false},
      {"--color=auto", {"CLICOLOR_FORCE=1", "NO_COLOR="}, true},
      {"--color=auto", {"CLICOLOR_FORCE=1", "TERM=dumb"}, false},
      {"--color=never", {"CLICOLOR_FORCE=1"}, false},
  };
  for (const Case& c : cases) {
    const Finished finished = RunShardc({"check", c.flag, path}, c.environment);
    EXPECT_EQ(finished.err.find('\x1b') != std::string::npos, c.is_colored) << c.flag;
  }
}

TEST(Cli, JsonDiagnosticsGoToStdout) {
  const TemporaryFolder folder;
  const Finished finished = RunShardc({"check", "--format=json", WriteIn(folder, "broken.toml", "x = 1\n")});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_EQ(finished.err, "");
  const std::string first = finished.out.substr(0, finished.out.find('\n'));
  EXPECT_TRUE(nlohmann::json::parse(first).contains("name")) << first;
}

TEST(Cli, WhatIsJsonReadsWhateverPathsAreCalled) {
  const TemporaryFolder folder;
  // Quotes, control characters, and a byte that is no UTF-8.
  const std::string hostile = "a\"\\\n\x01\x7f\xff";
  const std::string recipe = WriteIn(folder, hostile + ".toml", SoundRecipe() + "[start]\nrun_id = \"x\"\n");
  const std::string plan = folder / (hostile + ".plan");
  ASSERT_EQ(RunShardc({"plan", recipe, "-o", plan}).exit_code, 0);
  const std::string broken =
      WriteIn(folder, hostile + "2.toml", SoundRecipe() + "\"" + hostile.substr(0, 2) + "\" = 1");
  const std::string run_dir = folder / hostile;
  std::filesystem::create_directories(run_dir + "/attempts/0001");
  WriteText(run_dir + "/attempts/0001/init.json", RunShardc({"plan", recipe, "--print-init", "--format=json"}).out);
  const std::vector<std::vector<std::string>> commands{
      {"--version", "--format=json"},
      {"schema"},
      {"schema", "--plan"},
      {"check", broken, "--format=json"},
      {"check", broken, "--format=json", "--set", hostile},
      {"check", folder / (hostile + "3"), "--format=json"},
      {"plan", recipe, "--format=json"},
      {"plan", recipe, "--explain", "--format=json"},
      {"plan", recipe, "--print-init", "--format=json", "--run-dir", run_dir},
      {"plan", plan, "--format=json"},
      {"plan", plan, "--explain", "--format=json"},
  };
  for (const auto& command : commands) {
    const Finished finished = RunShardc(command);
    ASSERT_NE(finished.out, "") << command[0] << finished.err;
    if (command[0] != "check") {
      EXPECT_TRUE(nlohmann::json::accept(finished.out)) << testing::PrintToString(command) << finished.out;
      continue;
    }
    for (size_t begin = 0; begin < finished.out.size();) {
      const size_t end = finished.out.find('\n', begin);
      const std::string line = finished.out.substr(begin, end - begin);
      EXPECT_TRUE(nlohmann::json::accept(line)) << line;
      begin = end + 1;
    }
  }
}

TEST(Cli, PlanIsWrittenWholeOrNotAtAll) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  const std::string output = folder / "x.plan";
  const Finished written = RunShardc({"plan", recipe, "-o", output});
  EXPECT_EQ(written.exit_code, 0);
  EXPECT_EQ(written.out, "");
  const std::string text = ReadText(output);
  EXPECT_THAT(text, StartsWith("plan version="));
  EXPECT_TRUE(ParsePlan(text).ok());
  EXPECT_EQ(RunShardc({"plan", recipe}).out, text);
  EXPECT_EQ(RunShardc({"plan", recipe, "--set", "model.layers=-1", "-o", output}).exit_code, 3);
  EXPECT_EQ(ReadText(output), text);
  size_t num_files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    ++num_files;
  }
  EXPECT_EQ(num_files, 2U);
}

TEST(Cli, PlanEmitsWhatIsAsked) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  EXPECT_THAT(RunShardc({"plan", recipe, "--emit=recipe"}).out, HasSubstr("layers = 2  # sound.toml:3\n"));
  EXPECT_THAT(RunShardc({"plan", recipe, "--emit=recipe", "--set", "model.layers=3"}).out,
              HasSubstr("layers = 3  # --set\n"));
  EXPECT_THAT(RunShardc({"plan", recipe, "--emit=model"}).out,
              HasSubstr("model.norm.weight  f32[8]  normal(0, 0.02)  group default\n"));
  EXPECT_THAT(
      RunShardc({"plan", recipe, "--print-init"}).out,
      MatchesRegex("init, seed 0, 21 parameters.*model.norm.weight +\\[8\\] +normal\\(0, 0.02\\) +0 +0.02 +init.rule, "
                   "recipe:[0-9]+\n.*"));
  const auto init = nlohmann::json::parse(RunShardc({"plan", recipe, "--print-init", "--format=json"}).out);
  EXPECT_EQ(init["parameters"].size(), 21U);
  EXPECT_EQ(init["parameters"][0]["std"], 0.02);
  EXPECT_EQ(RunShardc({"plan", recipe, "--print-init", "--emit=model"}).exit_code, 2);
  EXPECT_TRUE(nlohmann::json::accept(RunShardc({"plan", recipe, "--emit=json"}).out));
  EXPECT_TRUE(nlohmann::json::parse(RunShardc({"plan", recipe, "--explain", "--format=json"}).out).contains("memory"));
  EXPECT_NE(RunShardc({"plan", recipe, "--explain"}).out, "");
  EXPECT_THAT(RunShardc({"plan", recipe, "--section=step"}).out, HasSubstr("section step {"));
  const Finished printed = RunShardc({"plan", recipe, "--stop-after=place", "--print-after=all"});
  EXPECT_THAT(printed.err, HasSubstr("// after build\nplan version="));
  EXPECT_THAT(printed.err, HasSubstr("// after place\nplan version="));
  EXPECT_THAT(printed.err, Not(HasSubstr("// after differentiate\n")));
}

/// init.json as a run of this recipe would leave it, with a mean of 0.25 and a deviation of 0.5 everywhere.
auto RecordOf(const std::string& recipe) -> std::string {
  const auto init = nlohmann::json::parse(RunShardc({"plan", recipe, "--print-init", "--format=json"}).out);
  nlohmann::json record{{"format_version", "1.0"},
                        {"seed", init["seed"]},
                        {"elements_drawn", 1},
                        {"parameters", nlohmann::json::array()}};
  for (const auto& parameter : init["parameters"]) {
    record["parameters"].push_back({{"name", parameter["name"]},
                                    {"shape", parameter["shape"]},
                                    {"dtype", "f32"},
                                    {"rule", parameter["rule"]},
                                    {"mean", 0.25},
                                    {"std", 0.5}});
  }
  return record.dump();
}

TEST(Cli, PrintInitShowsWhatARunRealised) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  const auto print = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"plan", recipe, "--print-init"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunShardc(arguments);
  };
  EXPECT_THAT(print({}).out, Not(HasSubstr("realised")));

  // In the recipe's run directory, and in another that is named.
  const std::string file = folder / "runs/sound/attempts/0002/init.json";
  const std::string other_file = folder / "other/attempts/0010/init.json";
  for (const char* name : {"runs/sound/attempts/0001", "runs/sound/attempts/0002", "runs/sound/attempts/0003",
                           "other/attempts/0009", "other/attempts/0010", "bare/attempts/0001"}) {
    std::filesystem::create_directories(folder / name);
  }
  // Of earlier attempts that began from scratch, and nothing beside the newest one.
  WriteText(folder / "runs/sound/attempts/0001/init.json", "{");
  WriteText(folder / "other/attempts/0009/init.json", "{");
  const std::string record = RecordOf(recipe);
  WriteText(file, record);
  const std::string text = print({}).out;
  EXPECT_THAT(text, HasSubstr(fmt::format("; realised in {}\n", file)));
  EXPECT_THAT(text, MatchesRegex(".*  mean +std +realised mean +realised std +from\n.*"));
  EXPECT_THAT(text,
              MatchesRegex(".*model.norm.weight +\\[8\\] +normal\\(0, 0.02\\) +0 +0.02 +0.25 +0.5 +init.rule, .*"));
  const auto json = nlohmann::json::parse(print({"--format=json"}).out);
  EXPECT_EQ(json["realised"], (nlohmann::json{{"file", file}, {"shown", true}}));
  EXPECT_EQ(json["parameters"][3]["realised_mean"], 0.25);
  EXPECT_EQ(json["parameters"][3]["realised_std"], 0.5);
  // Values do not depend on the mesh.
  EXPECT_THAT(print({"--set", "mesh.dp=4"}).out, HasSubstr("realised mean"));

  // Of another start: named, and not shown.
  struct Case {
    std::string set;
    std::string difference;
  };
  const Case cases[] = {
      {"init.seed=5", "seed 0 there, 5 here"},
      {"model.layers=1", "parameter 10 is model.layers.1.input_layernorm.weight there, model.norm.weight here"},
      {"init.rule=[{match = \"*\", value = \"normal(0, 0.03)\"}]",
       "model.embed_tokens.weight is normal(0, 0.02) there, normal(0, 0.03) here"},
  };
  for (const Case& row : cases) {
    const std::string reason = fmt::format("belongs to another start: {}", row.difference);
    const Finished other = print({"--set", row.set});
    EXPECT_EQ(other.exit_code, 0) << other.err;
    EXPECT_THAT(other.out, HasSubstr(fmt::format("\nnot shown: {} {}\n", file, reason)));
    EXPECT_THAT(other.out, Not(HasSubstr("realised")));
    const auto other_json = nlohmann::json::parse(print({"--format=json", "--set", row.set}).out);
    EXPECT_EQ(other_json["realised"], (nlohmann::json{{"file", file}, {"shown", false}, {"reason", reason}}));
    EXPECT_FALSE(other_json["parameters"][0].contains("realised_mean"));
  }
  WriteText(other_file, "{");
  const std::string other = folder / "other";
  EXPECT_THAT(print({"--run-dir", other}).out,
              HasSubstr(fmt::format("\nnot shown: {} cannot be read: it is no JSON object\n", other_file)));
  WriteText(other_file, record);
  EXPECT_THAT(print({"--run-dir", other}).out, HasSubstr(fmt::format("; realised in {}\n", other_file)));

  const std::string nowhere = folder / "nowhere";
  const Finished missing = print({"--run-dir", nowhere});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr(fmt::format("cannot open directory {}: No such file or directory", nowhere)));
  const Finished bare = print({"--run-dir", folder / "bare"});
  EXPECT_EQ(bare.exit_code, 2);
  EXPECT_THAT(bare.err, HasSubstr("has a record of its initial values (attempts/NNNN/init.json)"));
  // A link is no attempt, nor is a file that is one a record.
  std::filesystem::create_directory_symlink(folder / "other/attempts/0010", folder / "bare/attempts/0002");
  EXPECT_EQ(print({"--run-dir", folder / "bare"}).exit_code, 2);
  std::filesystem::create_symlink(other_file, folder / "bare/attempts/0001/init.json");
  EXPECT_THAT(print({"--run-dir", folder / "bare"}).err, HasSubstr("symbolic link"));
  EXPECT_EQ(RunShardc({"plan", recipe, "--run-dir", other}).exit_code, 2);
}

TEST(Cli, ExplainNamesTheOptimizerAndWhatItKeeps) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  const auto explain = [&](const std::vector<std::string>& sets) {
    std::vector<std::string> arguments{"plan", "--explain", recipe};
    for (const std::string& set : sets) {
      arguments.insert(arguments.end(), {"--set", set});
    }
    return RunShardc(arguments).out;
  };
  EXPECT_THAT(explain({}), HasSubstr("\noptimizer   adamw, which keeps exp_avg and exp_avg_sq; weight decay "));
  EXPECT_THAT(explain({"optimizer.name=sgd"}), HasSubstr("\noptimizer   sgd, which keeps nothing; weight decay "));
  EXPECT_THAT(explain({"optimizer.name=sgd", "optimizer.momentum=0.9"}),
              HasSubstr("\noptimizer   sgd, which keeps momentum_buffer; weight decay "));
}

TEST(Cli, FullDiskIsAnError) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  const Finished finished = RunProgram("/bin/sh", {"-c", Shardc() + " plan " + recipe + " > /dev/full"});
  EXPECT_EQ(finished.exit_code, 6);
  EXPECT_THAT(finished.err, HasSubstr("No space left on device"));
}

TEST(Cli, TokenizeWritesTheFormatOfLlmC) {
  const TemporaryFolder folder;
  const std::string first = WriteIn(folder, "a.txt", "ab\n");
  const std::string second = WriteIn(folder, "b.txt", std::string("\0\xff", 2));
  const std::string output = folder / "out.bin";
  const Finished finished = RunShardc({"tokenize", "--bytes", first, second, "-o", output});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, output + ": 5 tokens\n");
  std::string expected("\x88\xd8\x34\x01\x01\x00\x00\x00\x05", 9);
  expected.resize(1024, '\0');
  expected += std::string("a\0b\0\n\0\0\0\xff\0", 10);
  EXPECT_EQ(ReadText(output), expected);
}

}  // namespace
}  // namespace shardc
