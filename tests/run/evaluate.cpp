// An evaluation loads parameters alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/core/runner.h"
#include "runtime/launch/launch.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

const Sets Short{"train.steps=3", "train.eval_every=0"};

auto LossOf(const Outcome& eval) -> std::string {
  EXPECT_EQ(eval.status, 0) << eval.err;
  return eval.out;
}

// Of what was frozen in training the checkpoint has no moments.
TEST(Evaluate, NeedsNoMoments) {
  const Training frozen({Short[0], Short[1], "optimizer.frozen=[\"model.layers.0.*\"]"});
  ASSERT_EQ(frozen.Run().status, 0);
  const std::string checkpoint = frozen / "run/checkpoints/step-00000003";
  const std::string expected = LossOf(frozen.Eval(checkpoint));
  const Training trained(Short);
  EXPECT_EQ(LossOf(trained.Eval(checkpoint)), expected);
}

TEST(Evaluate, TrainedTokensAreTold) {
  const Training training(Short);
  WriteBin(training / "other.bin", EasyTokens(999));
  ASSERT_EQ(training.Run().status, 0);
  const std::string checkpoint = training / "run/checkpoints/step-00000003";
  struct Row {
    std::string set;
    std::string says;
  };
  for (const Row& row : std::vector<Row>{
           {"data.eval_tokens=1000", ""},
           {"data.eval_tokens=900", ""},
           {"data.eval_tokens=1500",
            "note: data.eval_tokens is 1500, and the run held out 1000: it may have trained "
            "on the other 500, so that the loss may be too low; set data.eval to files that "
            "it did not read\n"},
           {"data.eval=['other.bin']", ""},
           {"data.eval=['other.bin', 'tokens.bin']", "note: data.eval names token files that the run trained on"},
       }) {
    const bool has_files = row.set.starts_with("data.eval=");
    const Outcome eval = RunProcess(training.Command("eval", {"--checkpoint", checkpoint, "--set", row.set, "--set",
                                                              has_files ? "data.eval_tokens=0" : "data.scan=0"}));
    EXPECT_EQ(eval.status, 0) << eval.err;
    EXPECT_THAT(eval.err, row.says.empty() ? testing::Not(testing::HasSubstr("note:"))
                                           : testing::Matcher<const std::string&>(testing::HasSubstr(row.says)));
  }
}

TEST(Evaluate, LeavesMomentsAlone) {
  const Training training(Short);
  ASSERT_EQ(training.Run().status, 0);
  const Plan plan = training.Compile();
  std::vector<int64_t> num_read(2);
  const auto code = LaunchThreads(plan, {}, [&](RankContext& context) -> ErrorOr<ExitCode> {
    auto runner = RankRunner::Create(context);
    const auto loss = runner ? (*runner)->Evaluate(training / "run/checkpoints/step-00000003") : runner.error();
    if (!loss) {
      return loss.error();
    }
    for (const SubVector& sub_vector : plan.sub_vectors) {
      const auto nonzeros = [&](ValueId id) {
        const View view = (*runner)->ViewOf(id);
        const auto* values = view.At<const float>({});
        return std::count_if(values, values + view.num_elements(), [](float value) { return value != 0; });
      };
      EXPECT_GT(nonzeros(sub_vector.shard), 0);
      num_read[static_cast<size_t>(context.rank)] +=
          nonzeros(StateOf(sub_vector, StateRole::ExpAvg)) + nonzeros(StateOf(sub_vector, StateRole::ExpAvgSq));
    }
    return ExitCode::Ok;
  });
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(*code, ExitCode::Ok);
  EXPECT_THAT(num_read, testing::Each(0));
}

}  // namespace
}  // namespace shardc
