#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/metrics/metrics_writer.h"
#include "runtime/metrics/progress.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

auto Metrics(int64_t step) -> StepMetrics {
  return {.step = step, .loss = 1.0 / 3, .grad_norm = 0.1, .lr = 3e-4, .step_ms = 12.5, .tokens_per_s = 1e6};
}

auto StepsIn(const std::string& text) -> std::vector<int64_t> {
  std::vector<int64_t> steps;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    steps.push_back(nlohmann::json::parse(line)["step"].get<int64_t>());
  }
  return steps;
}

/// A run directory, and the folder of an attempt for what is taken out.
class RunFolder {
 public:
  RunFolder() {
    std::filesystem::create_directories(folder_ / "run/attempts/0001");
    run_ = *OpenDirectory(PosixFs(), folder_ / "run");
    attempt_ = *OpenDirectory(PosixFs(), folder_ / "run/attempts/0001");
  }
  auto Open(int64_t restored_step) const -> ErrorOr<std::unique_ptr<MetricsWriter>> {
    return MetricsWriter::Open(run_, restored_step, attempt_);
  }
  auto run() const -> const Descriptor& { return run_; }
  auto outside(const std::string& name) const -> std::string { return folder_ / name; }
  auto path() const -> std::string { return folder_ / "run/metrics.jsonl"; }
  auto dropped() const -> std::string { return folder_ / "run/attempts/0001/metrics_dropped.jsonl"; }
  /// Anything under a temporary name?
  auto IsClean() const -> bool {
    return !std::filesystem::exists(path() + ".tmp") && !std::filesystem::exists(dropped() + ".tmp");
  }

 private:
  TemporaryFolder folder_;
  Descriptor run_;
  Descriptor attempt_;
};

TEST(MetricsWriter, WritesOneObjectALineWithFullPrecision) {
  const RunFolder folder;
  auto writer = folder.Open(0);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  EXPECT_TRUE((*writer)->Write(Metrics(1)).ok());
  EXPECT_TRUE((*writer)->WriteEval(1, 2.5).ok());
  const std::string text = ReadText(folder.path());
  const auto line = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(line.size(), 11U);
  EXPECT_EQ(line["step"].get<int64_t>(), 1);
  EXPECT_EQ(line["loss"].get<double>(), 1.0 / 3);
  EXPECT_EQ(line["lr"].get<double>(), 3e-4);
  EXPECT_EQ(text.substr(text.find('\n') + 1), "{\"step\":1,\"eval_loss\":2.5}\n");
}

TEST(MetricsWriter, EachLineIsJsonWhateverNamesAndNumbersAre) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const RunFolder folder;
  auto writer = folder.Open(0);
  StepMetrics metrics{.step = 1, .loss = std::nan(""), .grad_norm = infinity, .lr = -infinity};
  metrics.terms = {{"loss_\"\\\n\x01", infinity}, {"loss_\xff", 1}};
  EXPECT_TRUE((*writer)->Write(metrics).ok());
  EXPECT_TRUE((*writer)->WriteEval(1, std::nan(""), metrics.terms).ok());
  std::istringstream lines(ReadText(folder.path()));
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  const auto step = nlohmann::json::parse(line);
  EXPECT_TRUE(step["loss"].is_null() && step["grad_norm"].is_null() && step["lr"].is_null()) << line;
  EXPECT_TRUE(step["loss_\"\\\n\x01"].is_null()) << line;
  EXPECT_EQ(step["loss_\xef\xbf\xbd"], 1);
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_TRUE(nlohmann::json::parse(line)["eval_loss"].is_null()) << line;
  EXPECT_EQ(line, EvalLine(1, infinity, metrics.terms));
}

// A step may have no target for a head: its mean is null, and its name is there all the same.
TEST(MetricsWriter, TermsOfTheLossStandBehindTheRest) {
  const RunFolder folder;
  auto writer = folder.Open(0);
  StepMetrics metrics = Metrics(1);
  metrics.terms = {{"loss_tokens", 2.5}, {"loss_image", std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_TRUE((*writer)->Write(metrics).ok());
  EXPECT_TRUE((*writer)->WriteEval(1, 3, {{"eval_loss_image", 0.5}}).ok());
  const std::string text = ReadText(folder.path());
  const auto line = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(line["loss_tokens"].get<double>(), 2.5);
  EXPECT_TRUE(line["loss_image"].is_null());
  EXPECT_EQ(text.substr(text.find('\n') + 1), "{\"step\":1,\"eval_loss\":3,\"eval_loss_image\":0.5}\n");
}

TEST(MetricsWriter, NumbersThatAreNotFiniteBecomeNull) {
  const RunFolder folder;
  auto writer = folder.Open(0);
  EXPECT_TRUE((*writer)->WriteEval(1, std::numeric_limits<double>::quiet_NaN()).ok());
  EXPECT_TRUE((*writer)->WriteEval(2, -std::numeric_limits<double>::infinity()).ok());
  EXPECT_EQ(ReadText(folder.path()), "{\"step\":1,\"eval_loss\":null}\n{\"step\":2,\"eval_loss\":null}\n");
}

TEST(MetricsWriter, RestartTakesOutWhatIsBehindTheRestoredStepAndKeepsIt) {
  const RunFolder folder;
  {
    auto writer = folder.Open(0);
    for (int64_t step = 1; step <= 10; ++step) {
      ASSERT_TRUE((*writer)->Write(Metrics(step)).ok());
      if (step % 5 == 0) {
        ASSERT_TRUE((*writer)->WriteEval(step, 1).ok());
      }
    }
  }
  const std::string before = ReadText(folder.path());
  auto writer = folder.Open(5);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  EXPECT_EQ(StepsIn(ReadText(folder.path())), (std::vector<int64_t>{1, 2, 3, 4, 5, 5}));
  EXPECT_EQ(ReadText(folder.path()) + ReadText(folder.dropped()), before);
  EXPECT_TRUE((*writer)->Write(Metrics(6)).ok());
  EXPECT_EQ(StepsIn(ReadText(folder.path())), (std::vector<int64_t>{1, 2, 3, 4, 5, 5, 6}));
  EXPECT_TRUE(folder.IsClean());
}

TEST(MetricsWriter, AFileThatIsGoneIsNoticedAtTheNextLine) {
  for (const bool is_replaced : {false, true}) {
    const RunFolder folder;
    auto writer = folder.Open(0);
    ASSERT_TRUE((*writer)->Write(Metrics(1)).ok());
    std::filesystem::rename(folder.path(), folder.path() + ".aside");
    if (is_replaced) {
      WriteText(folder.path(), "");
    }
    const Status written = (*writer)->Write(Metrics(2));
    ASSERT_FALSE(written.ok());
    EXPECT_NE(written.error().message.find(is_replaced ? "was replaced" : "was removed"), std::string::npos)
        << written.error().message;
  }
}

// A run that begins from scratch begins a new curve, and what was there is not lost.
TEST(MetricsWriter, FirstStartKeepsWhatWasThere) {
  const RunFolder folder;
  const std::string before = "{\"step\":1,\"loss\":2}\n{\"step\":2,\"loss\":1}\n";
  WriteText(folder.path(), before);
  ASSERT_TRUE(folder.Open(0).ok());
  EXPECT_EQ(ReadText(folder.path()), "");
  EXPECT_EQ(ReadText(folder.dropped()), before);
}

TEST(MetricsWriter, NothingIsTakenOutWhereNothingIsTooMuch) {
  const RunFolder folder;
  WriteText(folder.path(), "{\"step\":1,\"loss\":2}\n");
  const auto inode = StatusAt(folder.run(), "metrics.jsonl")->inode;
  ASSERT_TRUE(folder.Open(1).ok());
  EXPECT_EQ(StatusAt(folder.run(), "metrics.jsonl")->inode, inode);
  EXPECT_FALSE(std::filesystem::exists(folder.dropped()));
}

TEST(MetricsWriter, HalfWrittenLastLineIsTakenOut) {
  const std::string whole = "{\"step\":1,\"loss\":2}\n";
  for (const std::string half :
       {"{\"step\":2,\"lo", "{", "{\"step\":2}x", "12", "[1]", "{\"step\":\"2\"}", "\xff\xfe"}) {
    const RunFolder folder;
    WriteText(folder.path(), whole + half);
    ASSERT_TRUE(folder.Open(100).ok());
    EXPECT_EQ(ReadText(folder.path()), whole) << half;
    EXPECT_EQ(ReadText(folder.dropped()), half + "\n");
  }
  const RunFolder folder;
  // An empty line holds nothing.
  WriteText(folder.path(), whole + "\n");
  ASSERT_TRUE(folder.Open(100).ok());
  EXPECT_EQ(ReadText(folder.path()), whole);
  EXPECT_FALSE(std::filesystem::exists(folder.dropped()));
  // Whole but for its line end: it counts.
  WriteText(folder.path(), whole + "{\"step\":2}");
  ASSERT_TRUE(folder.Open(100).ok());
  EXPECT_EQ(ReadText(folder.path()), whole + "{\"step\":2}\n");
}

// What is no file of this directory's own is neither read, nor waited for, nor written.
TEST(MetricsWriter, LinksPipesAndFoldersAreErrors) {
  for (const std::string name : {"metrics.jsonl", "attempts/0001/metrics_dropped.jsonl"}) {
    for (const std::string kind : {"link", "dangling link", "pipe", "folder"}) {
      SCOPED_TRACE(name + " is a " + kind);
      const RunFolder folder;
      const std::string victim = folder.outside("victim");
      WriteText(victim, "{\"step\":7}\n");
      if (name != "metrics.jsonl") {
        WriteText(folder.path(), "{\"step\":9}\n");
      }
      const std::string path = folder.outside("run/" + name);
      if (kind == "link") {
        std::filesystem::create_symlink(victim, path);
      } else if (kind == "dangling link") {
        std::filesystem::create_symlink(folder.outside("new"), path);
      } else if (kind == "pipe") {
        ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
      } else {
        std::filesystem::create_directory(path);
      }
      const auto writer = folder.Open(5);
      ASSERT_FALSE(writer.ok());
      EXPECT_EQ(writer.error().code, ExitCode::Environment);
      EXPECT_NE(writer.error().message.find(path), std::string::npos) << writer.error().message;
      EXPECT_EQ(ReadText(victim), "{\"step\":7}\n");
      EXPECT_FALSE(std::filesystem::exists(folder.outside("new")));
      if (name != "metrics.jsonl") {
        EXPECT_EQ(ReadText(folder.path()), "{\"step\":9}\n");
      }
    }
  }
}

TEST(MetricsWriter, TemporaryNamesAreNotWrittenThrough) {
  const RunFolder folder;
  const std::string victim = folder.outside("victim");
  WriteText(victim, "untouched");
  std::filesystem::create_symlink(victim, folder.path() + ".tmp");
  std::filesystem::create_hard_link(victim, folder.dropped() + ".tmp");
  WriteText(folder.path(), "{\"step\":9}\n");
  ASSERT_TRUE(folder.Open(5).ok());
  EXPECT_EQ(ReadText(victim), "untouched");
  EXPECT_EQ(ReadText(folder.dropped()), "{\"step\":9}\n");
  EXPECT_FALSE(std::filesystem::is_symlink(folder.path()));
}

// A backup made of hard links keeps what it has.
TEST(MetricsWriter, AnotherNameOfTheFileKeepsItsContent) {
  const RunFolder folder;
  const std::string before = "{\"step\":1,\"loss\":2}\n";
  WriteText(folder.path(), before);
  std::filesystem::create_hard_link(folder.path(), folder.outside("backup"));
  {
    auto writer = folder.Open(1);
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    ASSERT_TRUE((*writer)->WriteEval(2, 1).ok());
  }
  EXPECT_EQ(ReadText(folder.outside("backup")), before);
  EXPECT_EQ(StepsIn(ReadText(folder.path())), (std::vector<int64_t>{1, 2}));
}

/// What goes to `out`, and what is kept in the log.
auto PrintedAndKept(bool terminal, int64_t log_every, int64_t steps) -> std::pair<std::string, std::string> {
  const TemporaryFolder folder;
  const RunLog log(*OpenForAppendAt(*OpenDirectory(PosixFs(), folder.path()), "log.txt"));
  std::FILE* out = std::fopen((folder / "out").c_str(), "w");
  {
    Progress progress(steps, log_every, log, out, terminal);
    for (int64_t step = 1; step <= steps; ++step) {
      progress.Step(Metrics(step));
    }
    progress.Eval(steps, 1.5);
  }
  std::fclose(out);
  return {ReadText(folder / "out"), ReadText(folder / "log.txt")};
}

auto Printed(bool terminal, int64_t log_every, int64_t steps) -> std::string {
  return PrintedAndKept(terminal, log_every, steps).first;
}

TEST(Progress, PlainLinesEveryLogEvery) {
  EXPECT_EQ(Printed(false, 2, 5),
            "step 2/5  loss 0.3333  gradient norm 0.100  1000000 tokens/s  0s left\n"
            "step 4/5  loss 0.3333  gradient norm 0.100  1000000 tokens/s  0s left\n"
            "step 5/5  loss 0.3333  gradient norm 0.100  1000000 tokens/s  0s left\n"
            "step 5/5  validation loss 1.5000\n");
}

TEST(Progress, OneMovingLineOnATerminal) {
  const std::string text = Printed(true, 100, 3);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
  EXPECT_TRUE(text.ends_with("\r\x1b[Kstep 3/3  validation loss 1.5000\n")) << text;
}

/// Returns what `print` prints.
auto PrintedBy(bool terminal, const std::function<void(Progress& progress)>& print) -> std::string {
  const TemporaryFolder folder;
  const RunLog log;
  std::FILE* out = std::fopen((folder / "out").c_str(), "w");
  {
    Progress progress(5, 1, log, out, terminal);
    print(progress);
  }
  std::fclose(out);
  return ReadText(folder / "out");
}

TEST(Progress, TimeLeftHasWhatIsDue) {
  const std::string text = PrintedBy(false, [](Progress& progress) { progress.Step(Metrics(4), Seconds{125}); });
  EXPECT_TRUE(text.ends_with(" tokens/s  2m 05s left\n")) << text;
}

TEST(Progress, EvaluationMovesOnATerminal) {
  const auto print = [](Progress& progress) {
    progress.Evaluating(512, 1562);
    progress.Evaluating(1024, 1562);
    progress.Eval(5, 1.5);
  };
  EXPECT_EQ(PrintedBy(false, print), "step 5/5  validation loss 1.5000\n");
  EXPECT_EQ(PrintedBy(true, print),
            "evaluating 512 of 1,562 samples\r\x1b[Kevaluating 1,024 of 1,562 samples\r\x1b[K"
            "step 5/5  validation loss 1.5000\n");
}

// Whoever reads the log later has no terminal.
TEST(Progress, LogHasThePlainLines) {
  const auto [printed, kept] = PrintedAndKept(true, 2, 5);
  EXPECT_EQ(kept, Printed(false, 2, 5));
  EXPECT_NE(printed, kept);
}

TEST(Progress, Durations) {
  EXPECT_EQ(FormatDuration(41.2), "41s");
  EXPECT_EQ(FormatDuration(723), "12m 03s");
  EXPECT_EQ(FormatDuration(11100), "3h 05m");
  EXPECT_EQ(FormatDuration(-1), "0s");
}

}  // namespace
}  // namespace shardc
