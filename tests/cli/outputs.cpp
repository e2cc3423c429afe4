// Where results go: never over what is read, and never nowhere without a word.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "compiler/base/check.h"
#include "tests/cli/program.h"
#include "tests/support/process.h"

namespace shardc {
namespace {

using testing::HasSubstr;

TEST(Outputs, ReplaceNothingThatIsRead) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  const std::string tokens = folder / "tokens.bin";
  const std::string text = WriteIn(folder, "text.txt", "some text");
  const std::string link = folder / "link.toml";
  std::filesystem::create_symlink(recipe, link);
  const std::string plan = folder / "sound.plan";
  ASSERT_EQ(RunProgram(Shardc(), {"tokenize", "--bytes", text, "-o", tokens}).exit_code, 0);
  const std::vector<std::string> small{"--set", "model.seq=2", "--set", "model.vocab=256"};
  const auto with_small = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), small.begin(), small.end());
    return arguments;
  };
  ASSERT_EQ(RunProgram(Shardc(), with_small({"plan", recipe, "-o", plan})).exit_code, 0);
  const std::string held_out = WriteIn(folder, "held_out.bin", ReadText(tokens));
  const std::vector<std::string> logits{"logits", recipe, "--tokens", text, "--set", "data.eval=['held_out.bin']",
                                        "-o"};
  const auto logits_to = [&](const std::string& output) {
    std::vector<std::string> arguments = with_small(logits);
    arguments.insert(arguments.begin() + std::ssize(logits), output);
    return arguments;
  };
  const std::string plan_before = ReadText(plan);
  const std::string tokens_before = ReadText(tokens);
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{with_small({"plan", recipe, "-o", recipe}),
                                             with_small({"plan", recipe, "-o", folder / "./sound.toml"}),
                                             with_small({"plan", recipe, "-o", link}),
                                             with_small({"plan", link, "-o", recipe}),
                                             with_small({"plan", recipe, "--format", "html", "-o", recipe}),
                                             with_small({"plan", recipe, "--emit=recipe", "-o", recipe}),
                                             with_small({"plan", recipe, "-o", tokens}),
                                             {"plan", plan, "-o", plan},
                                             {"tokenize", "--bytes", text, "-o", text},
                                             logits_to(recipe),
                                             logits_to(text),
                                             logits_to(tokens),
                                             logits_to(held_out),
                                             with_small({"run", recipe, "--trace", recipe}),
                                             with_small({"run", recipe, "--trace", tokens}),
                                             {"run", plan, "--trace", plan}}) {
    const Finished refused = RunProgram(Shardc(), arguments);
    EXPECT_EQ(refused.exit_code, 2) << arguments[0] << " " << arguments.back() << "\n" << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(" would replace ")) << arguments[0];
  }
  EXPECT_EQ(ReadText(recipe), SoundRecipe());
  EXPECT_EQ(ReadText(text), "some text");
  EXPECT_EQ(ReadText(plan), plan_before);
  EXPECT_EQ(ReadText(tokens), tokens_before);
  EXPECT_EQ(ReadText(held_out), tokens_before);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  // Another file may be replaced.
  EXPECT_EQ(RunProgram(Shardc(), with_small({"plan", recipe, "-o", plan})).exit_code, 0);
}

TEST(Outputs, GoToNoFifoAndNoDescriptorThatIsClosed) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  const std::string fifo = folder / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  for (const auto& [output, says] : std::map<std::string, std::string>{
           {fifo, "it is a FIFO; name a file, or write to /dev/stdout"},
           {"/dev/fd/99", "this process has no such file open, or one that was removed; name a file"}}) {
    const Finished refused = RunProgram(Shardc(), {"plan", recipe, "-o", output});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_THAT(refused.err, HasSubstr("error: cannot write to " + output + ": " + says));
  }
  // Standard output, which was removed, and a name of which no shell could give back.
  const Finished removed = RunProgram("/bin/sh", {"-c", fmt::format("exec >{0}; rm {0}; {1} plan {2} -o /dev/stdout",
                                                                    folder / "gone", Shardc(), recipe)});
  EXPECT_EQ(removed.exit_code, 2);
  EXPECT_THAT(removed.err, HasSubstr("error: cannot write to /dev/stdout: this process has no such file open"));
  const Finished piped =
      RunProgram("/bin/sh", {"-c", fmt::format("{} plan {} -o /dev/stdout | cat", Shardc(), recipe)});
  EXPECT_EQ(piped.exit_code, 0);
  EXPECT_THAT(piped.out, testing::StartsWith("plan version="));
  const Finished trace = RunProgram(Shardc(), {"run", recipe, "--trace", "/dev/fd/1"});
  EXPECT_EQ(trace.exit_code, 2);
  EXPECT_THAT(trace.err, HasSubstr("--trace /dev/fd/1: each rank writes a file beside it; name a file in a folder"));
}

/// Returns bytes of numbers, one after another.
template <class... T>
auto BytesOf(T... numbers) -> std::string {
  std::string bytes;
  (bytes.append(reinterpret_cast<const char*>(&numbers), sizeof numbers), ...);
  return bytes;
}

TEST(Outputs, ReplaceNoFileOfData) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  // An indexed dataset of Megatron: one sequence of 20 ids, one document.
  const std::string index = std::string("MMIDIDX\0\0", 9) + BytesOf(uint64_t{1}, uint8_t{8}, uint64_t{1}, uint64_t{2},
                                                                    int32_t{20}, int64_t{0}, int64_t{0}, int64_t{1});
  std::map<std::string, std::string> before;
  for (const std::string name : {"tokens", "own", "next"}) {
    before[name + ".bin"] = std::string(40, '\1');
    before[name + ".idx"] = index;
  }
  for (const auto& [name, text] : before) {
    WriteIn(folder, name, text);
  }
  std::filesystem::create_symlink(folder / "tokens.idx", folder / "link.idx");
  const std::vector<std::string> sets{"--set", "model.vocab=65535",
                                      "--set", "data.format=megatron",
                                      "--set", R"(data.targets=["own.bin"])",
                                      "--set", R"(loss.head=[{name = "next", vocab = 257, targets = ["next.bin"]}])"};
  const auto with_sets = [&](std::vector<std::string> arguments, const std::string& output) {
    arguments.insert(arguments.begin() + 1, recipe);
    arguments.insert(arguments.end() - 1, sets.begin(), sets.end());
    arguments.push_back(folder / output);
    return arguments;
  };
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"plan", "-o"}, {"plan", "--emit=recipe", "-o"}, {"plan", "--emit=model", "-o"}, {"run", "--trace"}}) {
    for (const std::string output :
         {"tokens.bin", "tokens.idx", "./own.bin", "own.idx", "next.bin", "next.idx", "link.idx"}) {
      const Finished refused = RunProgram(Shardc(), with_sets(command, output));
      EXPECT_EQ(refused.exit_code, 2) << command[0] << command[1] << " " << output << "\n" << refused.err;
      EXPECT_THAT(refused.err, HasSubstr(" would replace ")) << command[1] << " " << output;
    }
  }
  for (const auto& [name, text] : before) {
    EXPECT_EQ(ReadText(folder / name), text) << name;
  }
  for (const std::string option : {"--emit=recipe", "--emit=model"}) {
    EXPECT_EQ(RunProgram(Shardc(), with_sets({"plan", option, "-o"}, "other.idx")).exit_code, 0);
  }
}

TEST(Outputs, LieOutsideOfRuns) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  const std::string text = WriteIn(folder, "text.txt", "some text");
  ASSERT_EQ(RunProgram(Shardc(), {"tokenize", "--bytes", text, "-o", folder / "tokens.bin"}).exit_code, 0);
  // What runs keep. The last two files lie where the first launch of a run will keep its own.
  const std::vector<std::string> kept{
      "run/metrics.jsonl", "run/attempts/0001/log.txt", "checkpoints/step-00000002/manifest.json",
      "owned/lease.json",  "new_run/metrics.jsonl",     "new_checkpoints/step"};
  for (const std::string& name : kept) {
    std::filesystem::create_directories(std::filesystem::path(folder / name).parent_path());
    WriteIn(folder, name, name);
  }
  std::filesystem::create_symlink(folder / "run/metrics.jsonl", folder / "link");
  std::filesystem::create_directory_symlink(folder / "run", folder / "linked");
  const auto expect_refused = [&](std::vector<std::string> arguments, const std::string& output) {
    arguments.push_back(folder / output);
    const Finished refused = RunProgram(Shardc(), arguments);
    EXPECT_EQ(refused.exit_code, 2) << arguments[0] << " " << output << "\n" << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(", where a run keeps its files; name another folder")) << arguments[0];
  };
  const std::vector<std::string> small{recipe, "--set", "model.seq=2", "--set", "model.vocab=256"};
  const auto with_small = [&](std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), small.begin(), small.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  };
  for (const std::string name : {"run/metrics.jsonl", "run/trace.json", "linked/attempts/0001/new", "link",
                                 "checkpoints/step-00000002/manifest.json", "owned/lease.json"}) {
    expect_refused(with_small({"plan"}, {"-o"}), name);
    expect_refused({"tokenize", "--bytes", text, "-o"}, name);
    expect_refused({"new"}, name);
  }
  expect_refused(with_small({"plan"}, {"--emit=recipe", "-o"}), "run/metrics.jsonl");
  // A seed.
  std::filesystem::create_directory(folder / "model");
  WriteIn(folder, "model/config.json", "{}");
  expect_refused(with_small({"logits"}, {"--set", "start.first={ seed = 'model' }", "--tokens", text, "-o"}),
                 "model/config.json");
  expect_refused(with_small({"plan"}, {"--format", "html", "-o"}), "run/metrics.jsonl");
  for (const std::string name : {"run/metrics.jsonl", "new_run/metrics.jsonl", "new_checkpoints/step"}) {
    expect_refused(with_small({"run"}, {"--set", "checkpoint.dir='" + (folder / "new_checkpoints") + "'", "--run-dir",
                                        folder / "new_run", "--trace"}),
                   name);
  }
  for (const std::string& name : kept) {
    EXPECT_EQ(ReadText(folder / name), name);
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "run/trace.json"));
  EXPECT_EQ(RunProgram(Shardc(), with_small({"plan"}, {"-o", folder / "sound.plan"})).exit_code, 0);
}

TEST(Outputs, AHyphenIsNoStandardOutput) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  const std::string text = WriteIn(folder, "text.txt", "some text");
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"plan", recipe, "-o", "-"}, {"tokenize", "--bytes", text, "-o", "-"}}) {
    const Finished refused = RunProgram(Shardc(), arguments);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("-o - would be a file of that name, not standard output"));
  }
  EXPECT_FALSE(std::filesystem::exists("-"));
}

TEST(Outputs, PipesAreRefused) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  const std::string text = WriteIn(folder, "text.txt", "some text");
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"tokenize", "--bytes", text, "-o", pipe},
                                             {"logits", recipe, "--tokens", text, "-o", pipe},
                                             {"run", recipe, "--run-dir", folder / "run", "--trace", pipe}}) {
    const Finished refused = RunProgram(Shardc(), arguments);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("pipe is a pipe, which takes bytes in their order only; name a file"));
  }
}

TEST(Outputs, KilledCommandLeavesNothing) {
  const TemporaryFolder folder;
  // More than one block, of which the command has written the first when it waits for the rest.
  const std::string text(3 << 20, 'x');
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  const auto status_of = [&](bool is_killed) {
    std::array<int, 2> ends{};
    CHECK(pipe2(ends.data(), O_CLOEXEC) == 0, "errno {}", errno);
    Process command({Shardc(), "tokenize", "--bytes", "/dev/stdin", "-o", folder / "tokens.bin"},
                    {.before_exec = [&] { dup2(ends[0], STDIN_FILENO); }});
    close(ends[0]);
    ssize_t written = 1;
    for (size_t at = 0; at < text.size() && written > 0; at += static_cast<size_t>(written)) {
      written = write(ends[1], text.data() + at, text.size() - at);
    }
    EXPECT_GT(written, 0) << command.err();
    if (is_killed) {
      command.Kill(SIGKILL);
    }
    close(ends[1]);
    return command.Wait().status;
  };
  const auto names = [&] {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      found.insert(entry.path().filename());
    }
    return found;
  };
  EXPECT_EQ(status_of(true), 128 + SIGKILL);
  EXPECT_EQ(names(), (std::set<std::string>{}));
  EXPECT_EQ(status_of(false), 0);
  EXPECT_EQ(names(), (std::set<std::string>{"tokens.bin"}));
  std::signal(SIGPIPE, before);
}

TEST(Outputs, ToAClosedStdoutAreErrors) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"presets"}, {"help", "optimizer.lr"}, {"--version"}, {"completion", "bash"}}) {
    std::vector<std::string> command{Shardc()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Outcome outcome = RunProcess(command, {.before_exec = [] { close(STDOUT_FILENO); }});
    EXPECT_EQ(outcome.status, 6) << arguments[0];
    EXPECT_THAT(outcome.err, HasSubstr("cannot write to stdout: Bad file descriptor")) << arguments[0];
  }
}

TEST(Outputs, OfTheRuntimeToAClosedStdoutAreErrors) {
  const Outcome doctor = RunProcess({Shardc(), "doctor"}, {.before_exec = [] { close(STDOUT_FILENO); }});
  EXPECT_EQ(doctor.status, 6);
  EXPECT_THAT(doctor.err, HasSubstr("cannot write to stdout"));
  const Outcome help =
      RunProcess({SHARDC_BINARY_DIR "/shardc-run", "--help"}, {.before_exec = [] { close(STDOUT_FILENO); }});
  EXPECT_EQ(help.status, 6);
}

// As a variable of a script does that is not set.
TEST(Outputs, OptionsWithAnEmptyValueAreRefused) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  for (const auto& [command, option] :
       {std::pair("plan", "--fit"), std::pair("plan", "--output"), std::pair("plan", "--run-dir"),
        std::pair("run", "--trace"), std::pair("run", "--run-dir"), std::pair("run", "--timeout")}) {
    const Finished refused = RunProgram(Shardc(), {command, recipe, option, ""});
    EXPECT_EQ(refused.exit_code, 2) << option;
    EXPECT_THAT(refused.err, HasSubstr(std::string(option) + ": the value is empty")) << option;
  }
}

TEST(Outputs, OptionsAreToldOfInOurWords) {
  const auto error_of = [](const std::vector<std::string>& arguments) { return RunProgram(Shardc(), arguments).err; };
  EXPECT_THAT(error_of({"plan", "--fit", "h100", "--fit", "h200", "r.toml"}),
              HasSubstr("--fit is given more than once"));
  EXPECT_THAT(error_of({"plan", "r.toml", "--fit"}), HasSubstr("--fit needs MEMORY|MACHINE\n"));
  EXPECT_THAT(error_of({"plan", "--explain=json", "r.toml"}), HasSubstr("--explain takes no value\n"));
}

}  // namespace
}  // namespace shardc
