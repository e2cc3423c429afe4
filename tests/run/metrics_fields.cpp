// docs/metrics.md has the fields that runs write, and no others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/repository.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using Fields = std::set<std::string>;

/// The first column of the table under a heading.
auto DocumentedFields(const std::string& heading) -> Fields {
  const std::string page = ReadRepositoryFile("docs/metrics.md");
  const size_t begin = page.find("\n## " + heading + "\n");
  EXPECT_NE(begin, std::string::npos) << heading;
  std::istringstream text(page.substr(begin, page.find("\n## ", begin + 1) - begin));
  Fields fields;
  const std::regex row(R"(\| `([a-zA-Z_]+)` \|.*)");
  for (std::string line; std::getline(text, line);) {
    if (std::smatch match; std::regex_match(line, match, row)) {
      EXPECT_TRUE(fields.insert(match[1]).second) << match[1];
    }
  }
  return fields;
}

/// Of the lines of metrics.jsonl with or without an evaluation; the heads are called NAME.
auto WrittenFields(const std::string& run_dir, bool of_evals) -> Fields {
  Fields fields;
  std::istringstream text(ReadText(run_dir + "/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("eval_loss") != of_evals) {
      continue;
    }
    for (const auto& [name, value] : json.items()) {
      fields.insert(std::regex_replace(name, std::regex("loss_(tokens|next)$"), "loss_NAME"));
    }
  }
  return fields;
}

TEST(Metrics, AreDocumentedFieldForField) {
  const Training training({"train.steps=4", "train.eval_every=2", "checkpoint.every=0", "train.on_nonfinite=skip",
                           "data.documents=split", "data.document_end=32", "run.machine=h100-sxm",
                           "loss.head=[{name = \"next\", vocab = 256, targets = [\"tokens.bin\"], weight = 0.5}]",
                           "init.rule=[{match = \"*\", value = \"normal(0, 0.02)\"}]",
                           // The gradient of step 3 is not finite.
                           R"(optimizer.lr="if step == 1 then 1e38 else 1e-3")"});
  const Outcome outcome = training.Run();
  const Fields steps = WrittenFields(training / "run", false);
  EXPECT_EQ(steps, DocumentedFields("A step")) << outcome.err;
  EXPECT_EQ(WrittenFields(training / "run", true), DocumentedFields("An evaluation")) << outcome.err;
}

TEST(Metrics, CompareWithThePeak) {
  const Training training(
      {"train.steps=3", "train.eval_every=0", "data.eval_tokens=0", "recompute.policy=full", "run.peak_flops=1e12"});
  const Outcome outcome = training.Run();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, testing::ContainsRegex("tokens/s  MFU [0-9.]+ %, HFU [0-9.]+ %  "));
  const Outcome explained = RunProcess(training.Command("plan", {"--explain", "--format", "json"}));
  const auto report = nlohmann::json::parse(explained.out);
  std::istringstream text(ReadText(training / "run/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) {
    const auto json = nlohmann::json::parse(line);
    const double seconds = json["step_ms"].get<double>() / 1000;
    const double model = json["mfu"].get<double>() * seconds * 1e12;
    const double all = json["hfu"].get<double>() * seconds * 1e12;
    EXPECT_NEAR(model, report["flops_per_step_per_rank"].get<double>(), 1e-6 * model);
    EXPECT_NEAR(all, model + report["recompute_flops_per_step"].get<double>() / 2, 1e-6 * all);
    EXPECT_GT(all, model);
    EXPECT_EQ(json["tokens"].get<int64_t>(), json["step"].get<int64_t>() * 12 * 32);
    EXPECT_GT(json["resident_bytes"].get<int64_t>(), json["arena_bytes"].get<int64_t>());
  }
}

}  // namespace
}  // namespace shardc
