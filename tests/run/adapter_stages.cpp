// Runs of adapters that go on from one another: what an export knows of the stages before, and starts from a checkpoint
// whose adapters have another rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/published_files.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class AdapterStages : public testing::Test {
 protected:
  AdapterStages()
      : training_({"train.eval_every=0", "checkpoint.every=0", "train.steps=2", "model.seq=32", "run.threads=1",
                   "adapter.alpha=8", "optimizer.lr=0.01"}) {
    PublishedFiles::Make("llama", "F32").Write(training_ / "model");
    std::filesystem::remove(training_ / "tiny.toml");
    EXPECT_EQ(RunProcess({SHARDC_BINARY_DIR "/shardc", "new", training_ / "tiny.toml", "--from", training_ / "model",
                          "--adapter"})
                  .status,
              0);
  }

  auto Train(const std::string& run, const std::string& first, Sets more) const -> Outcome {
    more.insert(more.begin(), {"adapter.rank=4", "start.run_id=" + run, "start.first={ " + first + " }"});
    return training_.Run(run, more);
  }
  auto ExportOf(const std::string& run) const -> Outcome {
    return RunProcess(
        {SHARDC_BINARY_DIR "/shardc", "export", training_ / run, "-o", training_ / (run + ".adapter"), "--adapter"});
  }

  Training training_;
};

TEST_F(AdapterStages, ExportLooksThroughAllStages) {
  const Outcome first = Train("first", "seed = \"model\"", {R"(adapter.train_also=["*norm.weight"])"});
  ASSERT_EQ(first.status, 0) << first.err;
  ASSERT_EQ(Train("second", "continue = \"first\"", {}).status, 0);
  const Outcome third = Train("third", "continue = \"second\"", {});
  ASSERT_EQ(third.status, 0) << third.err;
  const Outcome refused = ExportOf("third");
  EXPECT_EQ(refused.status, static_cast<int>(ExitCode::Usage));
  EXPECT_THAT(refused.err, HasSubstr("adapter.train_also = [\"*norm.weight\"]"));

  std::filesystem::rename(training_ / "second", training_ / "elsewhere");
  const Outcome lost = ExportOf("third");
  EXPECT_EQ(lost.status, static_cast<int>(ExitCode::Usage));
  EXPECT_THAT(lost.err, AllOf(HasSubstr("the run before second has no record"), HasSubstr("by --merge")));
}

TEST_F(AdapterStages, ExportNamesBase) {
  ASSERT_EQ(Train("first", "seed = \"model\"", {}).status, 0);
  ASSERT_EQ(Train("second", "continue = \"first\"", {}).status, 0);
  for (const char* run : {"first", "second"}) {
    const Outcome exported = ExportOf(run);
    ASSERT_EQ(exported.status, 0) << exported.err;
    const json config = json::parse(ReadText(training_ / (std::string(run) + ".adapter/adapter_config.json")));
    EXPECT_EQ(config.at("base_model_name_or_path"), "model") << run;
  }
}

TEST_F(AdapterStages, HelpOnOtherRankIsAccepted) {
  ASSERT_EQ(Train("first", "seed = \"model\"", {}).status, 0);
  const Outcome refused = Train("second", "seed = \"first/checkpoints/step-00000002\"", {"adapter.rank=2"});
  EXPECT_EQ(refused.status, static_cast<int>(ExitCode::RecipeRejected));
  const std::string lists =
      "missing = [\"*.lora_A.weight\", \"*.lora_B.weight\"], unused = [\"*.lora_A.weight\", "
      "\"*.lora_B.weight\"]";
  EXPECT_THAT(refused.err, AllOf(HasSubstr("[seed-adapter]"), HasSubstr("write into [adapter]: rank = 4, alpha = 8"),
                                 HasSubstr(lists)));
  const Outcome begun = Train("second", "seed = \"first/checkpoints/step-00000002\", " + lists, {"adapter.rank=2"});
  EXPECT_EQ(begun.status, 0) << begun.err;
  const Outcome gone_on =
      Train("third", "seed = \"first/checkpoints/step-00000002\"", {"adapter.rank=4", "adapter.alpha=8"});
  EXPECT_EQ(gone_on.status, 0) << gone_on.err;
}

}  // namespace
}  // namespace shardc
