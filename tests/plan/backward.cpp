// The backward of a plan is judged against its forward: every single change of an operand, a flag or a sum in the ops
// that backward and recomputation have is found, in plans whose sizes are all alike, so that shapes tell nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <concepts>

#include "compiler/ops/rewrite.h"
#include "compiler/plan/text.h"
#include "compiler/verify/verify.h"
#include "tests/support/plan_samples.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// One change of an op's body: the n-th of those that are possible, in row order.
class OneChange {
 public:
  OneChange(const Plan* plan, int nth) : plan_(*plan), left_(nth) {}

  auto In(std::string_view, ValueId& id) -> void {
    for (ValueId* other : reads_) {
      const Value& a = plan_.values[*other];
      const Value& b = plan_.values[id];
      if (*other != id && a.dtype == b.dtype && a.shape == b.shape && Now()) {
        std::swap(*other, id);
      }
    }
    reads_.push_back(&id);
  }
  auto Out(std::string_view, ValueId&) -> void {}
  auto Over(std::string_view, ValueId&, ValueId&) -> void {}
  auto Acc(std::string_view, ValueId&, ValueId& onto) -> void {
    if (onto.valid() && Now()) {
      onto = {};
    }
  }
  auto InOut(std::string_view, ValueId&) -> void {}
  auto Scratch(std::string_view, ValueId&) -> void {}
  auto Whole(std::string_view, BufferId&) -> void {}
  template <class T>
  auto Attr(std::string_view, T& value) -> void {
    if constexpr (std::same_as<T, bool>) {
      if (Now()) {
        value = !value;
      }
    }
  }
  auto made() const -> bool { return left_ < 0; }

 private:
  auto Now() -> bool { return left_-- == 0; }

  const Plan& plan_;
  int left_;
  std::vector<ValueId*> reads_;
};

/// Sizes that are all alike.
auto Square(std::vector<std::string> sets) -> Plan {
  sets.insert(sets.begin(), {"model.kv_heads=4", "model.ffn=16", "model.vocab=16", "model.seq=16"});
  return CompileSample(sets);
}

class BackwardOf : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(BackwardOf, IsThatOfTheForward) {
  Plan plan = Square(GetParam());
  ASSERT_THAT(VerifyPlan(plan), IsEmpty());
  int changes = 0;
  int by_backward = 0;
  std::vector<Op>& ops = plan.section(SectionKind::Step).ops;
  for (Op& op : ops) {
    if (op.phase != Phase::Backward && op.phase != Phase::Recompute) {
      continue;
    }
    const OpBody valid = op.body;
    for (int nth = 0;; ++nth) {
      OneChange change(&plan, nth);
      VisitBody(op.body, [&](auto& body) { VisitFields(body, change); });
      if (!change.made()) {
        break;
      }
      const std::vector<std::string> findings = VerifyPlan(plan);
      ++changes;
      EXPECT_FALSE(findings.empty()) << "accepted: " << PrintOp(op, plan);
      by_backward += !findings.empty() && findings[0].ends_with("[backward-differs]") ? 1 : 0;
      op.body = valid;
    }
  }
  RecordProperty("changes", changes);
  RecordProperty("by_backward", by_backward);
  EXPECT_GT(by_backward, 20);
  EXPECT_GT(changes, by_backward);
}

INSTANTIATE_TEST_SUITE_P(
    Plans, BackwardOf,
    testing::Values(std::vector<std::string>{}, std::vector<std::string>{"mesh.dp=1", "batch.global=2"},
                    std::vector<std::string>{"mesh.tp=2", "batch.global=4", "recompute.policy=full"},
                    std::vector<std::string>{"mesh.replicate=2", "batch.global=16", "batch.reduce=last"},
                    std::vector<std::string>{"mesh.dp=4", "batch.global=24", "shard.reshard_after_forward=true",
                                             "shard.reshard_size=2"},
                    std::vector<std::string>{"precision.compute=bf16", "precision.reduce=bf16", "loss.chunks=4"},
                    std::vector<std::string>{"recompute.policy=torchtitan-sac", "model.tied=true",
                                             "init.rule=[{match = \"*\", value = \"normal(0, 0.02)\"}]"}));

TEST(Backward, OfRecomputationIsThatOfTheForward) {
  // The transposition of one operand, in a product that is computed again, and not in the forward's.
  Plan plan = Square({"recompute.policy=full"});
  for (Op& op : plan.section(SectionKind::Step).ops) {
    if (auto* matmul = std::get_if<op::Matmul>(&op.body); matmul != nullptr && op.phase == Phase::Recompute) {
      matmul->transpose_b = false;
      break;
    }
  }
  const auto findings = VerifyPlan(plan);
  ASSERT_EQ(findings.size(), 1);
  EXPECT_THAT(findings[0], HasSubstr("phase=recompute"));
  EXPECT_THAT(findings[0], HasSubstr("transpose_b=true here"));
}

}  // namespace
}  // namespace shardc
