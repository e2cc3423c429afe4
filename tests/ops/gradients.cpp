// Gradients of ops that no family uses yet: the backward ops that EmitBackward makes of a small forward, run and
// compared with differences of its loss.
#include <gtest/gtest.h>

#include <functional>

#include "compiler/ops/backward.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {
namespace {

constexpr int64_t Rows = 3;
constexpr int64_t Hidden = 5;

/// loss = mean cross-entropy of x + norm(norm(x)), both norms with one weight and one bias: each gradient is a sum of
/// contributions.
class TwoNorms {
 public:
  TwoNorms(const Backend& backend, const std::vector<bool>& trainable) : fixture_(backend) {
    // A layer norm's weight of 1 and bias of 0 would hide exchanged operands.
    operands_ = {fixture_.F32({Rows, Hidden}, RandomNumbers(Rows * Hidden, 1)),
                 fixture_.F32({Hidden}, RandomNumbers(Hidden, 2)), fixture_.F32({Hidden}, RandomNumbers(Hidden, 3))};
    Plan& plan = fixture_.mutable_plan();
    for (size_t i = 0; i < operands_.size(); ++i) {
      const ParameterId id =
          plan.parameters.Add({.name = Names[i], .shape = plan.values[operands_[i]].shape, .trainable = trainable[i]});
      plan.values[operands_[i]].role = ValueRole::Of(id);
    }
    const ValueId once = AddNorm(operands_[0]);
    const ValueId twice = AddNorm(once);
    const ValueId sum = fixture_.Over(twice);
    Add(op::Add{.a = operands_[0], .b = twice, .y = sum});
    loss_ = fixture_.Add(DType::F64, {1});
    Add(op::CrossEntropy{.logits = sum,
                         .targets = fixture_.I32({Rows}, {0, 3, 1}),
                         .loss = loss_,
                         .loss_onto = {},
                         .lse = fixture_.Add(DType::F32, {Rows}),
                         .head = {}});
    mean_ = fixture_.Add(DType::F64, {1});
    Add(op::Divide{.a = loss_, .b = fixture_.F64({static_cast<double>(Rows)}), .y = mean_, .y_onto = {}}, Phase::None);
  }

  auto Loss() -> double {
    for (const Op& op : forward_) {
      fixture_.Run(op.body);
    }
    return fixture_.At<double>(mean_)[0];
  }

  /// By x, weight and bias; left out what is not trainable.
  auto Gradients() -> std::vector<std::vector<double>> {
    std::vector<Op> ops;
    const auto refusal = EmitBackward(&fixture_.mutable_plan(), forward_, &ops);
    EXPECT_FALSE(refusal.has_value()) << *refusal;
    fixture_.AllocateNewBuffers();
    op::LayerNormBackward last;
    for (const Op& op : ops) {
      fixture_.Run(op.body);
      if (const auto* body = op.As<op::LayerNormBackward>()) {
        last = *body;
      }
    }
    return {fixture_.Numbers(last.dx), fixture_.Numbers(last.dweight), fixture_.Numbers(last.dbias)};
  }

  /// Of the loss by each element of an operand. Source: Abramowitz, Stegun 1964, 25.3.6, whose error is of h^4.
  auto Differences(size_t operand) -> std::vector<double> {
    constexpr double H = 0x1p-5;
    std::vector<double> differences;
    for (float& element : fixture_.At<float>(operands_[operand])) {
      const float kept = element;
      const auto loss_at = [&](double step) {
        element = static_cast<float>(static_cast<double>(kept) + step);
        return Loss();
      };
      differences.push_back((8 * (loss_at(H) - loss_at(-H)) - (loss_at(2 * H) - loss_at(-2 * H))) / (12 * H));
      element = kept;
    }
    return differences;
  }

 private:
  static constexpr const char* Names[] = {"x", "weight", "bias"};

  auto Add(OpBody body, Phase phase = Phase::Forward) -> void {
    forward_.emplace_back();
    forward_.back().body = std::move(body);
    forward_.back().phase = phase;
  }
  auto AddNorm(ValueId x) -> ValueId {
    const ValueId y = fixture_.Add(DType::F32, {Rows, Hidden});
    Add(op::LayerNorm{.x = x,
                      .weight = operands_[1],
                      .bias = operands_[2],
                      .y = y,
                      .mean = fixture_.Add(DType::F32, {Rows}),
                      .rstd = fixture_.Add(DType::F32, {Rows}),
                      .eps = 0.1});
    return y;
  }

  KernelFixture fixture_;
  std::vector<ValueId> operands_;
  std::vector<Op> forward_;
  ValueId loss_;
  ValueId mean_;
};

auto ExpectNear(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance) -> void {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
  }
}

TEST(Gradients, OfLayerNormsAreDifferencesOfTheLoss) {
  ForBackends([](const Backend& backend) {
    for (const auto& trainable : std::vector<std::vector<bool>>{
             {true, true, true}, {true, false, true}, {true, true, false}, {false, true, true}}) {
      SCOPED_TRACE(fmt::format("x {}, weight {}, bias {}", trainable[0], trainable[1], trainable[2]));
      TwoNorms norms(backend, trainable);
      const std::vector<std::vector<double>> gradients = norms.Gradients();
      for (size_t i = 0; i < gradients.size(); ++i) {
        if (trainable[i]) {
          SCOPED_TRACE(fmt::format("operand {}", i));
          // f32 results make a loss uncertain by 3e-7, and H^4 is 1e-6.
          ExpectNear(gradients[i], norms.Differences(i), 1e-4);
        }
      }
    }
  });
}

}  // namespace
}  // namespace shardc
