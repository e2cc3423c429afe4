#include <gtest/gtest.h>

#include <algorithm>
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

TEST(MetricsWriter, WritesOneObjectALineWithFullPrecision) {
  const TemporaryFolder folder;
  const std::string path = folder / "runs/quick/metrics.jsonl";
  auto writer = MetricsWriter::Open(path, 0);
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  EXPECT_TRUE((*writer)->Write(Metrics(1)).ok());
  EXPECT_TRUE((*writer)->WriteEval(1, 2.5).ok());
  const std::string text = ReadText(path);
  const auto line = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(line.size(), 6U);
  EXPECT_EQ(line["step"].get<int64_t>(), 1);
  EXPECT_EQ(line["loss"].get<double>(), 1.0 / 3);
  EXPECT_EQ(line["lr"].get<double>(), 3e-4);
  EXPECT_EQ(text.substr(text.find('\n') + 1), "{\"step\":1,\"eval_loss\":2.5}\n");
}

// A step may have no target for a head: its mean is null, and its name is there all the same.
TEST(MetricsWriter, TermsOfTheLossStandBehindTheRest) {
  const TemporaryFolder folder;
  auto writer = MetricsWriter::Open(folder / "m.jsonl", 0);
  StepMetrics metrics = Metrics(1);
  metrics.terms = {{"loss_tokens", 2.5}, {"loss_image", std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_TRUE((*writer)->Write(metrics).ok());
  EXPECT_TRUE((*writer)->WriteEval(1, 3, {{"eval_loss_image", 0.5}}).ok());
  const std::string text = ReadText(folder / "m.jsonl");
  const auto line = nlohmann::json::parse(text.substr(0, text.find('\n')));
  EXPECT_EQ(line["loss_tokens"].get<double>(), 2.5);
  EXPECT_TRUE(line["loss_image"].is_null());
  EXPECT_EQ(text.substr(text.find('\n') + 1), "{\"step\":1,\"eval_loss\":3,\"eval_loss_image\":0.5}\n");
}

TEST(MetricsWriter, NumbersThatAreNotFiniteBecomeNull) {
  const TemporaryFolder folder;
  auto writer = MetricsWriter::Open(folder / "m.jsonl", 0);
  EXPECT_TRUE((*writer)->WriteEval(1, std::numeric_limits<double>::quiet_NaN()).ok());
  EXPECT_TRUE((*writer)->WriteEval(2, -std::numeric_limits<double>::infinity()).ok());
  EXPECT_EQ(ReadText(folder / "m.jsonl"), "{\"step\":1,\"eval_loss\":null}\n{\"step\":2,\"eval_loss\":null}\n");
}

TEST(MetricsWriter, RestartCutsBackToTheRestoredStep) {
  const TemporaryFolder folder;
  const std::string path = folder / "m.jsonl";
  {
    auto writer = MetricsWriter::Open(path, 0);
    for (int64_t step = 1; step <= 10; ++step) {
      ASSERT_TRUE((*writer)->Write(Metrics(step)).ok());
      if (step % 5 == 0) {
        ASSERT_TRUE((*writer)->WriteEval(step, 1).ok());
      }
    }
  }
  auto writer = MetricsWriter::Open(path, 5);
  EXPECT_EQ(StepsIn(ReadText(path)), (std::vector<int64_t>{1, 2, 3, 4, 5, 5}));
  EXPECT_TRUE((*writer)->Write(Metrics(6)).ok());
  EXPECT_EQ(StepsIn(ReadText(path)), (std::vector<int64_t>{1, 2, 3, 4, 5, 5, 6}));
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

TEST(MetricsWriter, HalfWrittenLastLineIsDropped) {
  const TemporaryFolder folder;
  const std::string path = folder / "m.jsonl";
  const std::string whole = "{\"step\":1,\"loss\":2}\n";
  for (const std::string half :
       {"{\"step\":2,\"lo", "{", "\n", "{\"step\":2}x", "12", "[1]", "{\"step\":\"2\"}", "\xff\xfe"}) {
    WriteText(path, whole + half);
    ASSERT_TRUE(MetricsWriter::TruncateAfter(path, 100).ok());
    EXPECT_EQ(ReadText(path), whole) << half;
  }
  // Whole but for its line end: it counts.
  WriteText(path, whole + "{\"step\":2}");
  ASSERT_TRUE(MetricsWriter::TruncateAfter(path, 100).ok());
  EXPECT_EQ(ReadText(path), whole + "{\"step\":2}\n");
}

TEST(MetricsWriter, FolderThatCannotBeMadeIsAnError) {
  const TemporaryFolder folder;
  WriteText(folder / "file", "");
  auto writer = MetricsWriter::Open(folder / "file/m.jsonl", 0);
  ASSERT_FALSE(writer.ok());
  EXPECT_EQ(writer.error().code, ExitCode::Environment);
}

auto Printed(bool terminal, int64_t log_every, int64_t steps) -> std::string {
  const TemporaryFolder folder;
  std::FILE* out = std::fopen((folder / "out").c_str(), "w");
  {
    Progress progress(steps, log_every, out, terminal);
    for (int64_t step = 1; step <= steps; ++step) {
      progress.Step(Metrics(step));
    }
    progress.Eval(steps, 1.5);
  }
  std::fclose(out);
  return ReadText(folder / "out");
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

TEST(Progress, Durations) {
  EXPECT_EQ(FormatDuration(41.2), "41s");
  EXPECT_EQ(FormatDuration(723), "12m 03s");
  EXPECT_EQ(FormatDuration(11100), "3h 05m");
  EXPECT_EQ(FormatDuration(-1), "0s");
}

}  // namespace
}  // namespace shardc
