// Answers to slips on the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>

#include "compiler/driver/command.h"
#include "tests/cli/program.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

auto ErrorOf(const std::vector<std::string>& arguments) -> std::string {
  const Finished finished = RunProgram(Shardc(), arguments);
  EXPECT_EQ(finished.exit_code, 2) << arguments.front();
  EXPECT_EQ(finished.out, "");
  return finished.err;
}

/// A letter left out, doubled, changed, swapped with the next one.
auto TyposOf(const std::string& word, size_t from) -> std::set<std::string> {
  std::set<std::string> typos;
  for (size_t i = from; i + 1 < word.size(); ++i) {
    std::string swapped = word;
    std::swap(swapped[i], swapped[i + 1]);
    typos.insert(swapped);
  }
  const size_t middle = from + (word.size() - from) / 2;
  typos.insert(std::string(word).erase(middle, 1));
  typos.insert(std::string(word).insert(middle, 1, word[middle]));
  typos.insert(std::string(word).replace(middle, 1, "x"));
  typos.erase(word);
  return typos;
}

TEST(Answers, AMisspeltCommand) {
  EXPECT_THAT(ErrorOf({"chekc", "base.toml"}),
              StartsWith("error: unknown command `chekc`; did you mean `check`?\ncommands: check plan diff run "));
  EXPECT_THAT(ErrorOf({"train", "base.toml"}),
              StartsWith("error: unknown command `train`; write: shardc run RECIPE\ncommands: "));
  EXPECT_THAT(ErrorOf({"base.toml", "check"}),
              StartsWith("error: the command comes first; write: shardc check base.toml\n"));
  EXPECT_THAT(ErrorOf({"check", "base.toml", "check"}), StartsWith("error: unexpected argument `check`\n"));
  EXPECT_THAT(ErrorOf({"version"}), StartsWith("error: unknown command `version`; write: shardc --version\n"));
  EXPECT_THAT(ErrorOf({"base.toml"}),
              StartsWith("error: unknown command `base.toml`; a file comes after a command: shardc check base.toml\n"));
}

TEST(Answers, SlipsOfCommandsAreAnsweredWithTheCommand) {
  std::set<std::string> names;
  for (const Subcommand& command : Subcommands()) {
    names.emplace(command.name);
  }
  for (const Subcommand& command : Subcommands()) {
    for (const std::string& typo : TyposOf(std::string(command.name), 0)) {
      if (!names.contains(typo)) {
        EXPECT_THAT(ErrorOf({typo, "x"}), HasSubstr(fmt::format("did you mean `{}`?", command.name)));
      }
    }
  }
}

TEST(Answers, SlipsOfOptionsAreAnsweredWithTheOption) {
  for (const Subcommand& command : Subcommands()) {
    const std::string help = RunProgram(Shardc(), {std::string(command.name), "--help"}).out;
    std::set<std::string> flags;
    for (size_t at = help.find("--", help.find("Usage:")); at != std::string::npos; at = help.find("--", at + 2)) {
      const size_t end = help.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at);
      const bool is_declared = at >= 2 && (help[at - 1] == ' ' || help[at - 1] == ',');
      if (is_declared && end - at > 4 && help.rfind('\n', at) + 12 > at) {
        flags.insert(help.substr(at, end - at));
      }
    }
    EXPECT_TRUE(flags.contains("--help")) << help;
    for (const std::string& flag : flags) {
      for (const std::string& typo : TyposOf(flag, 2)) {
        if (!flags.contains(typo)) {
          const std::string error = ErrorOf({std::string(command.name), typo, "a"});
          EXPECT_THAT(error, HasSubstr(fmt::format("unknown option `{}`; did you mean `{}`?", typo, flag)));
        }
      }
    }
  }
}

TEST(Answers, AnArgumentTooManyAndAWordOfAnOption) {
  const TemporaryFolder folder;
  const std::string sound = WriteIn(folder, "sound.toml", SoundRecipe());
  EXPECT_THAT(ErrorOf({"check", sound, "extra"}), StartsWith("error: unexpected argument `extra`\n"));
  EXPECT_THAT(ErrorOf({"check", sound, "--set", "mesh.dp", "4"}),
              StartsWith("error: unexpected argument `4`; did you mean --set mesh.dp=4?\n"));
  EXPECT_THAT(ErrorOf({"run", sound, "--dp", "2"}),
              StartsWith("error: unknown option `--dp`; for the key of the recipe: --set mesh.dp=VALUE\n"));
  EXPECT_THAT(ErrorOf({"check", sound, "--color=nver"}), HasSubstr("did you mean `never`?"));
}

TEST(Answers, AValueThatOthersWrite) {
  const TemporaryFolder folder;
  const std::string sound = WriteIn(folder, "sound.toml", SoundRecipe());
  const auto error_with = [&](const char* set) { return RunProgram(Shardc(), {"check", sound, "--set", set}).err; };
  EXPECT_THAT(error_with("precision.compute=bfloat16"), HasSubstr("help: did you mean \"bf16\"?\n"));
  EXPECT_THAT(error_with("precision.compute=float32"), HasSubstr("help: did you mean \"fp32\"?\n"));
  EXPECT_THAT(error_with("mesh.dp=-1"), HasSubstr("help: write the number of ranks"));
  EXPECT_THAT(error_with("model.preset=mistral-7b"), HasSubstr("shardc new FILE --from DIR"));
  EXPECT_THAT(error_with("optimizer.clip_norm=none"), HasSubstr("; 0 switches clipping off\n"));
  EXPECT_THAT(error_with("data.eval="), HasSubstr("leave it out, or type --unset data.eval\n"));
  EXPECT_THAT(ErrorOf({"new", folder / "n.toml", "--preset", "llama3"}), HasSubstr("did you mean \"llama3-"));
}

TEST(Answers, HelpOnWordsOfTheField) {
  const auto help = [](const std::string& name) { return RunProgram(Shardc(), {"help", name}).out; };
  EXPECT_EQ(help("75"), "75 (exit code): stopped by a signal; a run has saved\n");
  for (const char* word : {"sac", "MFU", "flash", "out-of-memory", "arena"}) {
    EXPECT_THAT(help(word), StartsWith(fmt::format("{} (word of other trainers): ", word)));
  }
  EXPECT_EQ(RunProgram(Shardc(), {"help"}).out, RunProgram(Shardc(), {"--help"}).out);
  EXPECT_THAT(ErrorOf({"trian", "base.toml"}),
              StartsWith("error: unknown command `trian`; did you mean: shardc run RECIPE\n"));
}

TEST(Answers, ACommandThatIsAnOptionHere) {
  EXPECT_THAT(ErrorOf({"fit", "base.toml"}),
              StartsWith("error: unknown command `fit`; write: shardc plan --fit 80GiB RECIPE\n"));
  EXPECT_THAT(ErrorOf({"profile", "base.toml"}),
              StartsWith("error: unknown command `profile`; write: shardc run RECIPE --trace FILE\n"));
}

TEST(Answers, HelpOnWhatIsNotOfferedSaysSo) {
  const auto help = [](const std::string& name) { return RunProgram(Shardc(), {"help", name}); };
  EXPECT_EQ(
      help("mesh.pp").out,
      "mesh.pp (word of other trainers): pipeline parallelism is not offered; the axes of [mesh] are replicate, dp "
      "and tp\n");
  EXPECT_EQ(help("fp8").out,
            "fp8 (word of other trainers): fp8 is not offered; precision.compute is \"fp32\" or \"bf16\"\n");
  EXPECT_THAT(help("parallelism.context_parallel_degree").out, HasSubstr("context parallelism is not offered"));
  EXPECT_THAT(help("activation_checkpoint").out, HasSubstr(": write [recompute]; the default there is "));
  EXPECT_EQ(help("fp8").exit_code, 0);
  // The right names are explained as before, and slips of them get the nearest one.
  EXPECT_THAT(help("dtype").out, HasSubstr("precision"));
  EXPECT_THAT(ErrorOf({"help", "mesh.dpp"}), HasSubstr("did you mean `mesh.dp`?"));
}

TEST(Answers, HelpOfACommand) {
  const std::string help = RunProgram(Shardc(), {"help", "run"}).out;
  EXPECT_THAT(help, StartsWith("run (command): train from a recipe or a plan"));
  EXPECT_THAT(help, HasSubstr("\nrun: the machine\n"));
}

TEST(Answers, ARunDirectoryStandsForItsNewestCheckpoint) {
  const TemporaryFolder folder;
  const std::string sound = WriteIn(folder, "sound.toml", SoundRecipe());
  for (const char* step : {"step-00000007", "step-00000022"}) {
    std::filesystem::create_directories(folder / (std::string("run/checkpoints/") + step));
    WriteText(folder / (std::string("run/checkpoints/") + step + "/manifest.json"), "{}");
  }
  const std::string newest = folder / "run/checkpoints/step-00000022";
  for (const std::string& name : {folder / "run", folder / "run/checkpoints"}) {
    const Finished finished =
        RunProgram(Shardc(), {"eval", sound, "--set", "data.eval_tokens=64", "--checkpoint", name});
    EXPECT_EQ(finished.exit_code, 5);
    EXPECT_THAT(finished.err, StartsWith(fmt::format("error: {} is no checkpoint: manifest.json: ", newest)));
  }
}

// Said before ranks start, so that no rank is named that would only have been the first to look.
TEST(Answers, WhatHasNoManifestIsNoCheckpoint) {
  const TemporaryFolder folder;
  const std::string sound = WriteIn(folder, "sound.toml", SoundRecipe());
  const std::string ids = WriteIn(folder, "ids.bin", std::string(8, '\1'));
  std::filesystem::create_directories(folder / "cut");
  WriteText(folder / "cut/manifest.json", "{\n");
  for (const std::string name :
       {"step-00000022", "model", "distributed", "run/attempts/0001", "runs/a/attempts", "runs/b/attempts"}) {
    std::filesystem::create_directories(folder / name);
  }
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  WriteText(folder / "run/attempts/0001/recipe.toml", "");
  WriteText(folder / "model/config.json", "{}");
  WriteText(folder / "distributed/.metadata", "");
  struct Case {
    std::string checkpoint;
    std::string reason;
  };
  for (const Case& c :
       {Case{folder / "run/attempts",
             "it has neither manifest.json nor config.json; name a checkpoint, the directory of a run, or a model of "
             "Hugging Face"},
        Case{folder / "absent", "there is no such folder; the run there is " + (folder / "run")},
        Case{folder / "step-00000021", "there is no such folder; the nearest name is " + (folder / "step-00000022")},
        Case{sound, "it is a file; name a folder: a checkpoint, the directory of a run, or a model of Hugging Face"},
        Case{folder / "fifo", "it is a FIFO; name a folder"},
        Case{folder / "runs", "it has runs; name one of them, such as " + (folder / "runs/b")},
        Case{folder / "run/attempts/0001/recipe.toml",
             "it is of the record of a launch; name its run, " + (folder / "run")},
        Case{folder / "model", "it is a model of Hugging Face; start a run from it: --set 'start.first={ seed = \"" +
                                   (folder / "model") + "\" }'"},
        Case{folder / "distributed",
             "it is a distributed checkpoint of PyTorch (.metadata), which is not read; write a recipe of its model, "
             "and make a checkpoint for that by tools/import_checkpoint.py (docs/coming_from_torchtitan.md)"},
        Case{folder / "run",
             "it is the directory of a run that has saved no checkpoint in it; train it on, with checkpoint.every in "
             "its "
             "recipe"},
        Case{folder / "cut", "manifest.json: its first line is no digest"}}) {
    const Finished finished =
        RunProgram(Shardc(), {"eval", sound, "--set", "data.eval_tokens=64", "--checkpoint", c.checkpoint});
    EXPECT_EQ(finished.exit_code, 5) << c.checkpoint;
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(finished.err, fmt::format("error: {} is no checkpoint: {}\n", c.checkpoint, c.reason));
    const Finished exported = RunProgram(Shardc(), {"export", c.checkpoint, "-o", folder / "exported"});
    EXPECT_EQ(exported.exit_code, 5) << c.checkpoint;
    EXPECT_EQ(exported.err, finished.err);
    if (c.reason.starts_with("manifest.json") || c.checkpoint == folder / "model") {
      continue;
    }
    // The seed of a recipe gets the same answer, from every command that reads it.
    for (const std::string command : {"check", "sample", "logits"}) {
      std::vector<std::string> arguments{command, sound, "--set", "start.first={ seed = '" + c.checkpoint + "' }"};
      if (command != "check") {
        arguments.insert(arguments.end(),
                         {command == "sample" ? "--prompt-ids" : "--tokens", command == "sample" ? "1" : ids});
      }
      if (command == "logits") {
        arguments.insert(arguments.end(), {"-o", "/dev/null", "--set", "data.format=u8"});
      }
      const Finished refused = RunProgram(Shardc(), arguments);
      EXPECT_EQ(refused.exit_code, 3) << command;
      EXPECT_THAT(refused.err, HasSubstr(fmt::format("the seed \"{}\" cannot be read: {} [seed-unreadable]",
                                                     c.checkpoint, c.reason)))
          << command;
    }
  }
}

TEST(Answers, APathThatIsNoRecipeIsToldWhatItIs) {
  const TemporaryFolder folder;
  for (const std::string name : {"runs/tiny/attempts/0001", "runs/tiny/checkpoints/step-00000001"}) {
    std::filesystem::create_directories(folder / name);
  }
  const std::string attempt = WriteIn(folder, "runs/tiny/attempts/0001/recipe.toml", SoundRecipe());
  const std::string checkpoint = folder / "runs/tiny/checkpoints/step-00000001";
  WriteText(checkpoint + "/manifest.json", "");
  const std::string tokens = WriteIn(folder, "t.bin", std::string("\x88\xd8\0\1", 4));
  struct Case {
    std::string path;
    std::string says;
  };
  for (const Case& c :
       {Case{folder / "runs/nothing", "No such file or directory; the run there is " + (folder / "runs/tiny")},
        Case{folder / "runs/tinny", "; the nearest name is " + (folder / "runs/tiny")},
        Case{folder / "runs", "it has runs; name one of them, such as " + (folder / "runs/tiny")},
        Case{checkpoint, "it is a checkpoint; name its run, or a recipe and --checkpoint " + checkpoint},
        Case{attempt, " is of the record of a launch; name its run, " + (folder / "runs/tiny")},
        Case{tokens, "byte 3 is zero, so it is no text; name a recipe (TOML), and files of tokens"}}) {
    for (const std::vector<std::string>& command : {std::vector<std::string>{"eval", c.path},
                                                    {"sample", c.path, "--prompt", "x"},
                                                    {"logits", c.path, "--tokens", tokens, "-o", folder / "logits"}}) {
      const Finished refused = RunProgram(Shardc(), command);
      EXPECT_THAT(refused.exit_code, testing::AnyOf(2, 3)) << c.path;
      EXPECT_THAT(refused.err, HasSubstr(c.says)) << command[0];
    }
  }
  EXPECT_THAT(RunProgram(Shardc(), {"check", folder / "runs/tiny"}).err,
              HasSubstr("it is the directory of a run, which"));
}

TEST(Answers, AManifestThatCannotBeReadIsNotCalledNoCheckpoint) {
  const TemporaryFolder folder;
  const std::string sound = WriteIn(folder, "sound.toml", SoundRecipe());
  std::filesystem::create_symlink("manifest.json", folder / "manifest.json");
  const Finished finished =
      RunProgram(Shardc(), {"eval", sound, "--set", "data.eval_tokens=64", "--checkpoint", folder.path()});
  EXPECT_EQ(finished.exit_code, 6);
  EXPECT_EQ(finished.err,
            fmt::format("error: {} cannot be read: Too many levels of symbolic links\n", folder / "manifest.json"));
}

TEST(Answers, AnEmptyFileGetsTheLeastRecipe) {
  const TemporaryFolder folder;
  const Finished finished = RunProgram(Shardc(), {"check", WriteIn(folder, "empty.toml", "")});
  EXPECT_EQ(finished.exit_code, 3);
  for (const char* section :
       {"[model] is missing", "[optimizer] is missing", "[train] is missing", "[init] has neither", "`data.tokens`",
        "[batch]", "help: the least recipe:\n    [model]\n"}) {
    EXPECT_THAT(finished.err, HasSubstr(section));
  }
}

}  // namespace
}  // namespace shardc
