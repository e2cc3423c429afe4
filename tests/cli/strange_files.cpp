// Names and files from strangers: control characters reach no terminal, and a file is read up to a bound, whatever it
// is.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "tests/cli/program.h"
#include "tests/support/process.h"
#include "tests/support/sanitized.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

auto ShardcRun() -> std::string { return SHARDC_BINARY_DIR "/shardc-run"; }
auto HasRuntime() -> bool { return std::filesystem::exists(ShardcRun()); }

/// Sets the title of a window, clears the screen, turns the text around.
constexpr std::string_view Hostile = "\x1b]0;x\x07\x1b[2J\xe2\x80\xae";
constexpr std::string_view Shown = "\\u001b]0;x\\u0007\\u001b[2J\\u202e";

/// What of `text` a terminal would act on.
auto ControlsOf(std::string_view text) -> std::string {
  std::string found;
  std::copy_if(text.begin(), text.end(), std::back_inserter(found),
               [](char c) { return (c >= 0 && c < 0x20 && c != '\n' && c != '\t') || c == 0x7f; });
  return found;
}

TEST(WorkingDirectory, MayBeGone) {
  const TemporaryFolder folder;
  const std::string sound = WriteIn(folder, "sound.toml", SoundRecipe());
  const std::string plan = folder / "sound.plan";
  ASSERT_EQ(RunProgram(Shardc(), {"plan", sound, "-o", plan}).exit_code, 0);
  const std::string gone = folder / "gone";
  const std::string model = SHARDC_SOURCE_DIR "/tests/support/published";
  const auto run_there = [&](const std::vector<std::string>& command) {
    std::filesystem::create_directory(gone);
    return RunProcess(command, {.folder = gone, .before_exec = [&] { std::filesystem::remove(gone); }});
  };
  for (const std::vector<std::string>& command : {std::vector<std::string>{Shardc(), "plan", "../sound.toml"},
                                                  {Shardc(), "run", "../sound.toml"},
                                                  {Shardc(), "run", sound},
                                                  {Shardc(), "run", plan},
                                                  {Shardc(), "run", sound, "--trace", "trace.json"},
                                                  {Shardc(), "new", folder / "new.toml", "--from", model},
                                                  {Shardc(), "doctor"}}) {
    const Outcome outcome = run_there(command);
    EXPECT_EQ(outcome.status, 6) << command[1];
    EXPECT_THAT(outcome.err, HasSubstr("error: the working directory is gone (")) << command[1];
  }
  EXPECT_EQ(run_there({Shardc(), "check", sound}).status, 0);
}

TEST(StrangeNames, OfArgumentsAndPathsAreSpelledOut) {
  const TemporaryFolder folder;
  const std::string hostile(Hostile);
  const std::string sound = WriteIn(folder, "sound.toml", SoundRecipe());
  const std::string broken = WriteIn(folder, hostile + ".toml", "[model]\nlayers = 0\n");
  const std::string missing = folder / (hostile + "/x");
  std::vector<std::vector<std::string>> commands{
      {Shardc(), "check", broken},
      {Shardc(), "check", missing},
      {Shardc(), "check", sound, hostile},
      {Shardc(), hostile},
      {Shardc(), "check", sound, "--" + hostile},
      {Shardc(), "check", sound, "--color=" + hostile},
      {Shardc(), "check", sound, "--set", hostile},
      {Shardc(), "plan", sound, "--disable=" + hostile},
      {Shardc(), "plan", sound, "-o", missing},
      {Shardc(), "plan", sound, "--print-init", "--run-dir", missing},
      {Shardc(), "help", hostile},
      {Shardc(), "tokenize", "--bytes", missing, "-o", folder / "x.bin"},
  };
  if (HasRuntime()) {
    const std::string plan = WriteIn(folder, hostile + ".plan", "plan version=0 " + hostile + "\n");
    commands.push_back({ShardcRun(), missing});
    commands.push_back({ShardcRun(), plan});
    commands.push_back({ShardcRun(), plan, "--" + hostile});
  }
  for (const std::vector<std::string>& command : commands) {
    const Finished finished = RunProgram(command[0], {command.begin() + 1, command.end()});
    SCOPED_TRACE(testing::PrintToString(command));
    EXPECT_NE(finished.exit_code, 0);
    EXPECT_THAT(finished.err, HasSubstr(Shown));
    EXPECT_THAT(ControlsOf(finished.err + finished.out), IsEmpty()) << finished.err;
  }
}

/// Runs `command` with its stdout on a terminal; what it wrote there.
auto OnATerminal(const std::vector<std::string>& command) -> std::string {
  int terminal = -1;
  int program_side = -1;
  EXPECT_EQ(openpty(&terminal, &program_side, nullptr, nullptr, nullptr), 0);
  Process process(command, {.before_exec = [&] { dup2(program_side, STDOUT_FILENO); }});
  EXPECT_EQ(process.Wait().status, 0) << process.err();
  close(program_side);
  std::string text;
  std::array<char, 4096> bytes{};
  // Ends with EIO, once nobody has the other side.
  for (ssize_t count = 0; (count = read(terminal, bytes.data(), bytes.size())) > 0;) {
    text.append(bytes.data(), static_cast<size_t>(count));
  }
  close(terminal);
  std::erase(text, '\r');
  return text;
}

TEST(StrangeNames, LongOnesAreCut) {
  const TemporaryFolder folder;
  const std::string name(60'000, 'x');
  const std::string recipe = WriteIn(folder, "long.toml", SoundRecipe() + name + " = 1\n[" + name + "]\n");
  const std::string sound = WriteIn(folder, "sound.toml", SoundRecipe());
  for (const std::vector<std::string>& command : {std::vector<std::string>{"check", recipe},
                                                  {"check", sound, "--set", "model." + name + "=1"},
                                                  {"check", sound, "--set", "model.family=" + name},
                                                  {"check", sound, "--set", "start.run_id=" + name},
                                                  {"check", name},
                                                  {"check", "--" + name},
                                                  {"plan", sound, "-o", folder / name},
                                                  {name},
                                                  {"help", name},
                                                  {"export", name, "-o", folder / "model"}}) {
    const Finished finished = RunProgram(Shardc(), command);
    EXPECT_NE(finished.exit_code, 0) << command[0];
    EXPECT_LT(finished.err.size(), 4000U) << command[0];
    EXPECT_THAT(finished.err, HasSubstr("xxx...xxx")) << command[0];
  }
}

TEST(StrangeNames, AMessageIsSpelledOutOnATerminalAndInAFile) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / std::string(Hostile));
  const std::string name = WriteIn(folder, fmt::format("{}/a.toml", Hostile), SoundRecipe());
  const std::string message = fmt::format("{}: ok\n", folder / fmt::format("{}/a.toml", Shown));
  EXPECT_EQ(OnATerminal({Shardc(), "check", name}), message);
  EXPECT_EQ(RunProgram(Shardc(), {"check", name}).out, message);
}

/// An address space of 4 GiB, and 20 s of processor time: what reads without a bound ends there.
auto Bounded(const std::vector<std::string>& command) -> Outcome {
  return RunProcess(command, {.before_exec = [] {
                      const rlimit memory{rlim_t{4} << 30, rlim_t{4} << 30};
                      const rlimit seconds{20, 20};
                      if (!IsSanitized) {
                        setrlimit(RLIMIT_AS, &memory);
                      }
                      setrlimit(RLIMIT_CPU, &seconds);
                    }});
}

struct StrangeFile {
  std::string path;
  int exit_code;
  std::string message;
};

TEST(StrangeFiles, RecipesEndWithAReason) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  std::filesystem::create_directory(folder / "folder.toml");
  const StrangeFile cases[] = {
      {folder / "fifo", 2, "it is a FIFO; give a file"},
      {folder / "folder.toml", 2, "Is a directory"},
      {"/dev/zero", 3, "recipe-too-large"},
      {"/dev/null", 3, "missing-section"},
      {WriteIn(folder, "empty.toml", ""), 3, "missing-section"},
      {WriteIn(folder, "utf16.toml", std::string("\xff\xfe[\0m\0o\0d\0e\0l\0]\0\n\0", 18)), 3, "UTF-16"},
      {WriteIn(folder, "utf16be.toml", std::string("\xfe\xff\0[\0m\0o\0d\0e\0l\0]\0\n", 18)), 3, "UTF-16"},
  };
  for (const StrangeFile& c : cases) {
    const Outcome outcome = Bounded({Shardc(), "check", c.path});
    EXPECT_EQ(outcome.status, c.exit_code) << c.path << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(c.message)) << c.path;
  }
  EXPECT_EQ(RunProgram(Shardc(), {"check", WriteIn(folder, "mark.toml", "\xef\xbb\xbf" + SoundRecipe())}).exit_code, 0);
}

TEST(StrangeFiles, PlansEndWithAReason) {
  if (!HasRuntime()) {
    GTEST_SKIP() << "built without the runtime";
  }
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  const std::string large = WriteIn(folder, "large.plan", "plan version=");
  std::filesystem::resize_file(large, (size_t{96} << 20) + 1);
  const StrangeFile cases[] = {
      {"/dev/zero", 3, "has more than 100663296 bytes, which no plan has"},
      {large, 3, "has more than 100663296 bytes, which no plan has"},
      {folder / "fifo", 2, "it is a FIFO; give a file"},
      {folder.path(), 2, "Is a directory"},
      {"/dev/null", 3, "the text has 0 bytes"},
      {folder / "missing", 2, "No such file"},
  };
  for (const StrangeFile& c : cases) {
    const Outcome outcome = Bounded({ShardcRun(), c.path});
    EXPECT_EQ(outcome.status, c.exit_code) << c.path << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(c.message)) << c.path;
  }
}

TEST(StrangeFiles, TokenizeRefusesBeforeItWrites) {
  const TemporaryFolder folder;
  const std::string large = WriteIn(folder, "large.txt", "");
  std::filesystem::resize_file(large, size_t{1} << 31);
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  const StrangeFile cases[] = {
      {large, 4, "more than 2147483647 tokens do not fit one file"},
      {folder / "fifo", 2, "it is a FIFO; give a file"},
  };
  for (const StrangeFile& c : cases) {
    // A file of 64 KiB is the most that may be written.
    const Outcome outcome =
        RunProcess({Shardc(), "tokenize", "--bytes", c.path, "-o", folder / "x.bin"}, {.before_exec = [] {
                     const rlimit most{1 << 16, 1 << 16};
                     setrlimit(RLIMIT_FSIZE, &most);
                   }});
    EXPECT_EQ(outcome.status, c.exit_code) << c.path << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(c.message)) << c.path;
    EXPECT_FALSE(std::filesystem::exists(folder / "x.bin"));
  }
}

TEST(StrangeFiles, WhatIsPipedInIsReadOnce) {
  const TemporaryFolder folder;
  std::filesystem::copy_file(Shardc(), folder / "shardc");
  const std::string runtime = WriteIn(folder, "shardc-run", "#!/bin/sh\nhead -c 13 \"$1\"\n");
  std::filesystem::permissions(runtime, std::filesystem::perms::owner_all);
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  const std::string plan = folder / "sound.plan";
  ASSERT_EQ(RunProgram(Shardc(), {"plan", recipe, "-o", plan}).exit_code, 0);
  for (const std::string& piped : {recipe, plan}) {
    const Outcome outcome =
        RunProcess({"/bin/sh", "-c", "cat \"$1\" | \"$2\" run /dev/stdin", "sh", piped, folder / "shardc"},
                   {.folder = folder.path()});
    EXPECT_EQ(outcome.status, 0) << piped << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "plan version=") << piped;
  }
}

TEST(StrangeFiles, AFileSizeLimitIsAnErrorAndLeavesNothing) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "r.toml", SoundRecipe());
  const std::string text = WriteIn(folder, "text", std::string(100'000, 'a'));
  const auto limit = [] {
    const rlimit most{.rlim_cur = 8192, .rlim_max = 8192};
    setrlimit(RLIMIT_FSIZE, &most);
  };
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{Shardc(), "plan", recipe, "-o", folder / "out"},
        std::vector<std::string>{Shardc(), "tokenize", "--bytes", text, "-o", folder / "out"}}) {
    const Outcome outcome = RunProcess(command, {.before_exec = limit});
    EXPECT_EQ(outcome.status, 6) << outcome.err;
    EXPECT_THAT(outcome.err, testing::HasSubstr("File too large"));
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    EXPECT_TRUE(entry.path() == recipe || entry.path() == text) << entry.path();
  }
}

}  // namespace
}  // namespace shardc
