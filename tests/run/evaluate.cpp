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
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(*code, ExitCode::Ok);
  EXPECT_THAT(num_read, testing::Each(0));
}

}  // namespace
}  // namespace shardc
