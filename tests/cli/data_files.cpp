// What check, plan and explain say of the files that a recipe or a plan names: those that are here are judged, with the
// recipe's line, and what they hold is shown.
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/edited.h"
#include "tests/support/process.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// The files of SoundRecipe.
constexpr const char* TokensLine = "tokens = [\"tokens.bin\"]\n";

/// What llm.c writes for Llama 3: another header, and ids of 4 bytes.
auto Llama3Text(int32_t count) -> std::string {
  std::vector<int32_t> words(256, 0);
  words[0] = 20240801;
  words[1] = 7;
  words[2] = count;
  words.resize(words.size() + static_cast<size_t>(count), 3);
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(int32_t)};
}

/// llm.c's header, and so many ids, all of them 3.
auto BinText(int32_t count) -> std::string {
  std::vector<int32_t> header(256, 0);
  header[0] = 20240520;
  header[1] = 1;
  header[2] = count;
  std::string text(reinterpret_cast<const char*>(header.data()), 1024);
  for (int32_t i = 0; i < count; ++i) {
    text += std::string("\3\0", 2);
  }
  return text;
}

class DataFiles : public testing::Test {
 protected:
  auto Ask(std::vector<std::string> arguments) -> Finished { return RunProgram(Shardc(), arguments); }
  auto Check(std::vector<std::string> more = {}) -> Finished {
    more.insert(more.begin(), {"check", recipe_});
    return Ask(more);
  }

  TemporaryFolder folder_;
  /// Sequences of 8; its tokens are line 15.
  std::string recipe_ = WriteIn(folder_, "sound.toml", SoundRecipe());
  std::string tokens_ = folder_ / "tokens.bin";
};

TEST_F(DataFiles, PatternsAreListedInPlans) {
  for (const char* name : {"c[1].bin", "shards/b.bin", "shards/a.bin", "shards/a.idx"}) {
    std::filesystem::create_directories(std::filesystem::path(folder_ / name).parent_path());
    WriteText(folder_ / name, BinText(40));
  }
  const std::string plan = folder_ / "made.plan";
  // The first is the name of a file.
  const Finished made =
      Ask({"plan", recipe_, "--set", R"(data.tokens=["c[1].bin", "shards/*.bin"])", "--output", plan});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(ReadText(plan), HasSubstr(fmt::format("tokens \"{0}/c[1].bin\"\ntokens \"{0}/shards/a.bin\"\n"
                                                    "tokens \"{0}/shards/b.bin\"\n",
                                                    folder_.path())));
  EXPECT_THAT(Check({"--set", R"(data.tokens=["shards/*.idx"])"}).err, Not(HasSubstr("token-pattern-unmatched")));
  const Finished none = Check({"--set", R"(data.tokens=["shards/*.txt"])"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.err, HasSubstr("no file matches \"shards/*.txt\" [token-pattern-unmatched]"));
}

TEST_F(DataFiles, EvalFilesAreHereAndCounted) {
  WriteText(tokens_, BinText(40));
  WriteText(folder_ / "short.bin", BinText(8));
  WriteText(folder_ / "valid.bin", BinText(17));
  const auto plan = [&](const std::string& files) {
    return Ask({"plan", recipe_, "--explain", "--set", fmt::format("data.eval=[{}]", files)});
  };
  EXPECT_THAT(plan("\"valid.bin\"").out, HasSubstr("  evaluation: 17 tokens in files of their own, 2 samples\n"));
  EXPECT_THAT(plan("\"valid.bin\", \"short.bin\"").out, HasSubstr("evaluation: 25 tokens"));
  struct Case {
    std::string files;
    std::string says;
  };
  for (const auto& [files, says] : std::vector<Case>{
           {"\"none.bin\"", "none.bin is not here, and the plan says how many samples an evaluation has [eval-files]"},
           {"\"short.bin\"",
            "the files of `eval` hold 8 tokens, and one sample takes 9 (`model.seq` + 1) [eval-files]"},
           {"\"sound.toml\"", "error: evaluation file "},
       }) {
    const Finished refused = plan(files);
    EXPECT_EQ(refused.exit_code, 3) << files;
    EXPECT_THAT(refused.err, HasSubstr(says));
  }
}

TEST_F(DataFiles, AFileThatIsNotHereIsAWarningOfCheckAlone) {
  const Finished checked = Check();
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_THAT(checked.err, AllOf(HasSubstr("sound.toml:15:10: warning: token file " + tokens_ +
                                           " is not here; the run will need it [token-file-missing]"),
                                 HasSubstr("tokens = [\"tokens.bin\"]\n")));
  EXPECT_EQ(Check({"--strict"}).exit_code, 3);
  EXPECT_EQ(Ask({"plan", recipe_, "--explain"}).err, "");
  const Finished scanned = Check({"--data"});
  EXPECT_EQ(scanned.exit_code, 3);
  EXPECT_THAT(scanned.err, HasSubstr("No such file or directory; `data.tokens` is relative to the recipe's folder "
                                     "[token-file-invalid]"));
}

TEST_F(DataFiles, WhatIsHereIsJudgedWithItsLine) {
  struct Case {
    std::string text;
    std::string part;
    std::string kind = "token-file-invalid";
  };
  const Case cases[] = {
      {"", "has 0 bytes, so it has no llm.c header"},
      {std::string(2000, '\1'), "has no llm.c header: it begins with 16843009, not 20240520"},
      {std::string(2000, 'x'), " is text, and no ids; make ids of it by "},
      {Llama3Text(20),
       "has the header of llm.c's files for Llama 3 (magic 20240801, version 7, u32 ids), which this "
       "program does not read; cut the header off"},
      {BinText(20).substr(0, 1050), "has 1050 bytes, its header says 20 tokens, which is 1064 bytes"},
      {BinText(8), "8 tokens in 1 file, 0 of them held out by `data.eval_tokens`: 8 left to train on",
       "data-too-short"},
      {BinText(0), "0 tokens in 1 file", "data-too-short"},
  };
  for (const Case& test : cases) {
    WriteText(tokens_, test.text);
    for (const std::string command : {"check", "plan", "run"}) {
      const Finished finished = Ask({command, recipe_});
      EXPECT_EQ(finished.exit_code, 3) << command;
      EXPECT_EQ(finished.out, "");
      EXPECT_THAT(finished.err, AllOf(HasSubstr("sound.toml:15:10: error: "), HasSubstr(test.part),
                                      HasSubstr("[" + test.kind + "]\n"), HasSubstr("^~~~")));
    }
    EXPECT_THAT(Check({"--format=json"}).out, HasSubstr(R"("name":")" + test.kind));
  }
  WriteText(tokens_, BinText(9));
  const Finished sound = Check({"--strict", "--set", "train.steps=4"});
  EXPECT_EQ(sound.exit_code, 0) << sound.err;
  EXPECT_EQ(sound.err, "");
  EXPECT_THAT(Check({"--set", "data.format=u16"}).err, HasSubstr("set `data.format` to bin [token-file-invalid]"));
  // The header of Llama 3 is not read as 256 ids, and what the message says to do gives a file that is read.
  WriteText(tokens_, Llama3Text(20));
  EXPECT_THAT(Check({"--set", "data.format=u32"}).err, HasSubstr("the header of llm.c's files for Llama 3"));
  WriteText(tokens_, Llama3Text(20).substr(1024));
  const Finished cut = Check({"--data", "--set", "data.format=u32"});
  EXPECT_EQ(cut.exit_code, 0) << cut.err;
}

TEST_F(DataFiles, AFolderIsNoFileAndEachFaultIsTold) {
  std::filesystem::create_directory(tokens_);
  WriteText(folder_ / "cut.bin", "x");
  const Finished finished = Check({"--set", R"(data.tokens=["tokens.bin", "cut.bin", "absent.bin"])"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_THAT(finished.err, AllOf(HasSubstr("tokens.bin is a folder, not a regular file"),
                                  HasSubstr("cut.bin has 1 bytes"), HasSubstr("absent.bin is not here")));
}

TEST_F(DataFiles, AWrongWordOfSyntheticIsTheOnlyError) {
  WriteText(recipe_, Edited(SoundRecipe(), {{TokensLine, "synthetic = \"Zipf\"\n"}}));
  const Finished checked = Check();
  EXPECT_EQ(checked.exit_code, 3);
  EXPECT_THAT(checked.err, AllOf(HasSubstr("sound.toml:15:13: error: "), HasSubstr("\"zipf\""),
                                 HasSubstr("wait for this\n"), Not(HasSubstr("neither `data.tokens`"))));
}

TEST_F(DataFiles, SourcesAndTargetsAreJudgedAtTheirOwnLines) {
  WriteText(folder_ / "short.bin", BinText(5));
  WriteText(folder_ / "long.bin", BinText(50));
  const std::string sources =
      "[[data.source]]\ntokens = [\"long.bin\"]\nweight = 1\n[[data.source]]\ntokens = [\"short.bin\"]\nweight = 1\n";
  WriteText(recipe_, Edited(SoundRecipe(), {{TokensLine, sources}}));
  EXPECT_THAT(Check().err, AllOf(HasSubstr("sound.toml:19:10: error: source source1: 5 tokens in 1 file"),
                                 Not(HasSubstr("source0"))));
  WriteText(recipe_, SoundRecipe());
  WriteText(tokens_, BinText(50));
  EXPECT_THAT(
      Check({"--set", R"(data.targets=["short.bin"])"}).err,
      HasSubstr("the target files of head tokens hold 5 ids, and the token files 50: there is one for each token "
                "[token-file-invalid]"));
}

TEST_F(DataFiles, CheckDataNamesFileByteAndToken) {
  std::string text = BinText(5000);
  text[1024 + 2 * 4321] = 32;
  WriteText(tokens_, text);
  EXPECT_EQ(Check().exit_code, 0);
  const std::string fault =
      "token file " + tokens_ + ": id 32 at byte 9666 (token 4321 of the file), and `model.vocab` is 32";
  const Finished finished = Check({"--data"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, AllOf(HasSubstr("sound.toml:15:10: error: " + fault), HasSubstr("[token-id-invalid]")));
  // The bar is for terminals.
  EXPECT_THAT(finished.err, Not(HasSubstr("looking at")));
  EXPECT_THAT(Check({"--data", "--format=json"}).out, HasSubstr(R"("name":"token-id-invalid")"));
  EXPECT_EQ(Check({"--data", "--set", "model.vocab=33"}).exit_code, 0);
  // Of a plan file too.
  const std::string plan = folder_ / "sound.plan";
  ASSERT_EQ(Ask({"plan", recipe_, "-o", plan}).exit_code, 0);
  EXPECT_EQ(Ask({"check", plan}).exit_code, 0);
  const Finished of_plan = Ask({"check", plan, "--data"});
  EXPECT_EQ(of_plan.exit_code, 3);
  EXPECT_THAT(of_plan.err, HasSubstr("error: " + fault));
}

// Samples of 8 tokens. Of 5,000 tokens 40 are held out, so that 619 samples are trained on, and 4 are held out.
TEST_F(DataFiles, CheckDataAsksForTargets) {
  constexpr int64_t NumTokens = 5000;
  WriteText(tokens_, BinText(NumTokens));
  const std::string own = R"(data.targets=["own.bin"])";
  const std::string further = R"(loss.head=[{name = "next", vocab = 32, targets = ["next.bin"]}])";
  const std::string held_out = "data.eval_tokens=40";
  const std::string next_has_none = "head next has no target to train on: ";
  const std::string own_has_none = "head tokens has no target to train on: ";
  const std::string eval_has_none = "no position of the held-out samples has a target";
  struct Case {
    std::vector<std::string> sets;
    /// The places of the targets.
    std::vector<int64_t> own;
    std::vector<int64_t> next;
    std::string error;
  };
  const Case cases[] = {
      {{own}, {}, {}, own_has_none},
      {{own}, {1}, {}, ""},
      {{own}, {4992}, {}, ""},
      // No position predicts the first token, and no sample has the last ones.
      {{own}, {0}, {}, own_has_none},
      {{own}, {4993}, {}, own_has_none},
      {{own, held_out}, {4992}, {}, own_has_none},
      {{own, held_out}, {4952}, {}, eval_has_none},
      {{own, held_out}, {4952, 4960, 4993}, {}, eval_has_none},
      {{own, held_out}, {4952, 4961}, {}, ""},
      {{further}, {}, {}, next_has_none},
      {{further}, {}, {3000}, ""},
      {{further, own}, {3000}, {}, next_has_none},
      {{further, own}, {}, {3000}, own_has_none},
      {{further, own, held_out}, {3000}, {3000}, eval_has_none},
      {{further, own, held_out}, {3000}, {3000, 4992}, ""},
      {{further, held_out}, {}, {3000}, ""},
  };
  const auto write = [&](const std::string& name, const std::vector<int64_t>& places) {
    std::string text = BinText(NumTokens);
    std::fill(text.begin() + 1024, text.end(), '\xff');
    for (const int64_t place : places) {
      text.replace(static_cast<size_t>(1024 + 2 * place), 2, std::string("\3\0", 2));
    }
    WriteText(folder_ / name, text);
  };
  for (const Case& test : cases) {
    write("own.bin", test.own);
    write("next.bin", test.next);
    std::vector<std::string> sets;
    for (const std::string& set : test.sets) {
      sets.insert(sets.end(), {"--set", set});
    }
    const std::string what =
        fmt::format("{} {} {}", fmt::join(sets, " "), fmt::join(test.own, " "), fmt::join(test.next, " "));
    EXPECT_EQ(Check(sets).exit_code, 0) << what;
    const std::string plan = folder_ / "targets.plan";
    std::vector<std::string> planning{"plan", recipe_, "-o", plan};
    planning.insert(planning.end(), sets.begin(), sets.end());
    ASSERT_EQ(Ask(planning).exit_code, 0) << what;
    sets.emplace_back("--data");
    const Finished of_recipe = Check(sets);
    const Finished of_plan = Ask({"check", plan, "--data"});
    EXPECT_EQ(of_recipe.exit_code, test.error.empty() ? 0 : 3) << what << of_recipe.err;
    EXPECT_EQ(of_plan.exit_code, test.error.empty() ? 0 : 3) << what << of_plan.err;
    EXPECT_THAT(of_recipe.err, HasSubstr(test.error)) << what;
    EXPECT_THAT(of_plan.err, HasSubstr(test.error)) << what;
    if (!test.error.empty()) {
      EXPECT_THAT(of_recipe.err, HasSubstr("[token-file-invalid]\n")) << what;
    }
  }
}

TEST_F(DataFiles, NamesTheDatasetOfAPrefix) {
  WriteText(folder_ / "set.bin", "\1\0\2\0");
  WriteText(folder_ / "set.idx", "");
  const std::string says = "set: No such file or directory; write set.bin in `data.tokens`, which is there";
  const auto check = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"--set", "data.tokens=[\"set\"]"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Check(arguments);
  };
  EXPECT_THAT(check({"--data"}).err, HasSubstr(says));
  const Finished of_megatron = check({"--set", "data.format=megatron"});
  EXPECT_EQ(of_megatron.exit_code, 3);
  EXPECT_THAT(of_megatron.err, HasSubstr(says));
}

TEST_F(DataFiles, PlanFilesAreJudgedToo) {
  const std::string plan = folder_ / "sound.plan";
  ASSERT_EQ(Ask({"plan", recipe_, "-o", plan}).exit_code, 0);
  const Finished missing = Ask({"check", plan});
  EXPECT_EQ(missing.exit_code, 0);
  EXPECT_EQ(missing.err, "warning: token file " + tokens_ + " is not here; the run will need it\n");
  WriteText(tokens_, "x");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"check", plan}, {"plan", plan}, {"plan", plan, "--explain"}}) {
    const Finished finished = Ask(command);
    EXPECT_EQ(finished.exit_code, 3);
    EXPECT_THAT(finished.err, HasSubstr("error: token file " + tokens_ + " has 1 bytes, so it has no llm.c header"));
  }
}

TEST_F(DataFiles, ExplainShowsTokensSamplesAndEpochs) {
  EXPECT_THAT(Ask({"plan", recipe_, "--explain"}).out, Not(HasSubstr("data: ")));
  // 5 samples for each epoch: 41 tokens, 3 samples short of a 44.
  WriteText(tokens_, BinText(41));
  EXPECT_THAT(Ask({"plan", recipe_, "--explain"}).out, HasSubstr("data: one stream, 1 sample per step, in 10 steps\n"
                                                                 "  tokens  samples per epoch  samples  epochs\n"
                                                                 "  41                      5       10    2.00\n"));
  const auto json = nlohmann::json::parse(Ask({"plan", recipe_, "--explain", "--format=json"}).out);
  const auto& source = json["data"]["sources"][0];
  EXPECT_EQ(source["tokens"], 41);
  EXPECT_EQ(source["epoch_samples"], 5);
  EXPECT_EQ(source["samples"], 10);
  EXPECT_EQ(source["epochs"], 2.0);
}

TEST_F(DataFiles, ExplainShowsThemOfEachSourceThatIsHere) {
  WriteText(folder_ / "here.bin", BinText(17));
  const std::string sources =
      "[[data.source]]\ntokens = [\"here.bin\"]\nweight = 3\n[[data.source]]\ntokens = [\"absent.bin\"]\nweight = 1\n";
  WriteText(recipe_, Edited(SoundRecipe(), {{TokensLine, sources}, {"micro = 1", "micro = 4"}}));
  const std::string out = Ask({"plan", recipe_, "--explain"}).out;
  EXPECT_THAT(out, HasSubstr("  source   weight  samples  of all    tokens  samples per epoch  epochs\n"));
  EXPECT_THAT(out, HasSubstr("  source0  3            30  75.000 %      17                  2   15.00\n"));
  EXPECT_THAT(out, HasSubstr("  source1  1            10  25.000 %  -"));
  const auto json = nlohmann::json::parse(Ask({"plan", recipe_, "--explain", "--format=json"}).out);
  EXPECT_EQ(json["data"]["sources"][0]["epochs"], 15.0);
  EXPECT_FALSE(json["data"]["sources"][1].contains("epochs"));
}

TEST_F(DataFiles, TokensThatAreMadeNeedNoFiles) {
  WriteText(recipe_, Edited(SoundRecipe(), {{TokensLine, "synthetic = \"zipf\"\n"}}));
  EXPECT_EQ(Check({"--strict", "--data"}).exit_code, 0);
  EXPECT_THAT(Ask({"plan", recipe_, "--explain"}).out,
              HasSubstr("data: made (zipf), 1 sample per step, in 10 steps; no files, no epochs\n"));
  const std::string plan = folder_ / "made.plan";
  ASSERT_EQ(Ask({"plan", recipe_, "-o", plan}).exit_code, 0);
  EXPECT_THAT(ReadText(plan), AllOf(HasSubstr(" synthetic=zipf"), Not(HasSubstr("\ntokens "))));
  EXPECT_EQ(Ask({"check", plan}).exit_code, 0);
  EXPECT_EQ(Ask({"plan", plan}).out, ReadText(plan));
}

// Paths in a plan hold from any folder.
TEST_F(DataFiles, APlanNamesItsFilesFromAnywhere) {
  const ProcessOptions beside{.folder = folder_.path()};
  ASSERT_EQ(RunProcess({Shardc(), "plan", "sound.toml", "-o", "sound.plan"}, beside).status, 0);
  const std::string text = ReadText(folder_ / "sound.plan");
  const std::string folder = std::filesystem::canonical(folder_.path()).string();
  EXPECT_THAT(text, HasSubstr("tokens \"" + folder + "/tokens.bin\"\n"));
  EXPECT_THAT(text, HasSubstr(" run_dir=\"" + folder + "/runs/sound\""));
  // From elsewhere, the same plan.
  const TemporaryFolder elsewhere;
  const Outcome again = RunProcess({Shardc(), "plan", recipe_}, {.folder = elsewhere.path()});
  EXPECT_EQ(again.out, text);
}

}  // namespace
}  // namespace shardc
