// Gradients of ops, whether a family uses them or not: the backward ops that EmitBackward makes of a small forward, run
// and compared with differences of its loss.
#include <gtest/gtest.h>

#include <functional>

#include "compiler/ops/backward.h"
#include "compiler/ops/op_facts.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {
namespace {

constexpr int64_t Rows = 3;
constexpr int64_t Hidden = 6;
constexpr int64_t HeadDim = 3;

/// What a forward has two of, one after the other, with the same weight and bias.
enum class Layer : uint8_t { LayerNorm, BiasAdd, HeadNorm, Gelu, GeluInTanhForm, DocumentAttention };

struct LayerRow {
  Layer layer;
  const char* name;
  int64_t weights = Hidden;
};
constexpr LayerRow Layers[] = {
    {Layer::LayerNorm, "layer norm"},
    {Layer::BiasAdd, "bias after a norm"},
    {Layer::HeadNorm, "bias after a norm of heads", HeadDim},
    {Layer::Gelu, "gelu of a bias after a norm"},
    {Layer::GeluInTanhForm, "gelu in its tanh form"},
    {Layer::DocumentAttention, "norm of attention over documents, by queries of a norm"},
};

/// loss = mean cross-entropy of x + layer(layer(x)): each gradient is a sum of contributions.
class TwoLayers {
 public:
  TwoLayers(const Backend& backend, const LayerRow& row, const std::vector<bool>& trainable)
      : layer_(row.layer), fixture_(backend) {
    // A norm's weight of 1 and a bias of 0 would hide exchanged operands.
    operands_ = {fixture_.F32(Shape, RandomNumbers(Rows * Hidden, 1)),
                 fixture_.F32({row.weights}, RandomNumbers(row.weights, 2)),
                 fixture_.F32({Hidden}, RandomNumbers(Hidden, 3))};
    Plan& plan = fixture_.mutable_plan();
    for (size_t i = 0; i < operands_.size(); ++i) {
      const ParameterId id =
          plan.parameters.Add({.name = Names[i], .shape = plan.values[operands_[i]].shape, .trainable = trainable[i]});
      plan.values[operands_[i]].role = ValueRole::Of(id);
    }
    const ValueId once = AddLayer(operands_[0]);
    const ValueId twice = AddLayer(once);
    const ValueId sum = fixture_.Over(twice);
    Add(op::Add{.a = operands_[0], .b = twice, .y = sum});
    loss_ = fixture_.Add(DType::F64, {1});
    Add(op::CrossEntropy{.logits = sum,
                         .targets = fixture_.I32({Rows, 1}, {0, 3, 1}),
                         .loss = loss_,
                         .loss_onto = {},
                         .lse = fixture_.Add(DType::F32, {Rows, 1}),
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

  /// By x, weight and bias. That of what is not trainable is nothing of use.
  auto Gradients() -> std::vector<std::vector<double>> {
    std::vector<Op> ops;
    const auto refusal = EmitBackward(&fixture_.mutable_plan(), forward_, &ops);
    EXPECT_FALSE(refusal.has_value()) << *refusal;
    fixture_.AllocateNewBuffers();
    // What the last op with such a result wrote.
    std::vector<std::vector<double>> gradients(std::size(Names));
    for (const Op& op : ops) {
      fixture_.Run(op.body);
      for (size_t i = 0; i < std::size(Names); ++i) {
        if (const ValueId gradient = ValueIn(op.body, fmt::format("d{}", Names[i])); gradient.valid()) {
          gradients[i] = fixture_.Numbers(gradient);
        }
      }
    }
    return gradients;
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
  static inline const Dims Shape{Rows, 1, Hidden};

  auto Add(OpBody body, Phase phase = Phase::Forward) -> void {
    forward_.emplace_back();
    forward_.back().body = std::move(body);
    forward_.back().phase = phase;
  }
  auto AddLayer(ValueId x) -> ValueId {
    const ValueId y = fixture_.Add(DType::F32, Shape);
    if (layer_ == Layer::LayerNorm) {
      Add(op::LayerNorm{.x = x,
                        .weight = operands_[1],
                        .bias = operands_[2],
                        .y = y,
                        .mean = fixture_.Add(DType::F32, {Rows, 1}),
                        .rstd = fixture_.Add(DType::F32, {Rows, 1}),
                        .eps = Eps});
      return y;
    }
    if (layer_ == Layer::HeadNorm) {
      const ValueId rstd = fixture_.Add(DType::F32, {Rows, 1, Hidden / HeadDim});
      Add(op::HeadNorm{.x = x, .weight = operands_[1], .y = y, .rstd = rstd, .eps = Eps});
    } else {
      const ValueId rstd = fixture_.Add(DType::F32, {Rows, 1});
      Add(op::RmsNorm{.x = x, .weight = operands_[1], .y = y, .rstd = rstd, .eps = Eps});
    }
    const ValueId biased = fixture_.Over(y);
    Add(op::BiasAdd{.x = y, .bias = operands_[2], .y = biased});
    if (layer_ == Layer::BiasAdd || layer_ == Layer::HeadNorm) {
      return biased;
    }
    const ValueId result = fixture_.Add(DType::F32, Shape);
    if (layer_ == Layer::DocumentAttention) {
      // Its gradient reads its result, over which no other op writes.
      const ValueId attended = fixture_.Add(DType::F32, Shape);
      Add(op::Attention{.q = biased,
                        .k = fixture_.F32(Shape, RandomNumbers(Rows * Hidden, 4)),
                        .v = fixture_.F32(Shape, RandomNumbers(Rows * Hidden, 5)),
                        .starts = fixture_.I32({Rows, 1}, {0, 1, 1}),
                        .y = attended,
                        .lse = fixture_.Add(DType::F32, {1, Hidden / HeadDim, Rows}),
                        .scratch = {},
                        .head_dim = HeadDim});
      Add(op::RmsNorm{
          .x = attended, .weight = operands_[1], .y = result, .rstd = fixture_.Add(DType::F32, {Rows, 1}), .eps = Eps});
      return result;
    }
    Add(op::Gelu{.x = biased, .y = result, .tanh_form = layer_ == Layer::GeluInTanhForm});
    return result;
  }

  static constexpr double Eps = 0.1;

  Layer layer_;
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

TEST(Gradients, AreDifferencesOfTheLoss) {
  ForBackends([](const Backend& backend) {
    for (const LayerRow& row : Layers) {
      for (const auto& trainable : std::vector<std::vector<bool>>{
               {true, true, true}, {true, false, true}, {true, true, false}, {false, true, true}}) {
        SCOPED_TRACE(fmt::format("{}: x {}, weight {}, bias {}", row.name, trainable[0], trainable[1], trainable[2]));
        TwoLayers layers(backend, row, trainable);
        const std::vector<std::vector<double>> gradients = layers.Gradients();
        for (size_t i = 0; i < gradients.size(); ++i) {
          if (trainable[i]) {
            SCOPED_TRACE(fmt::format("operand {}", i));
            // f32 results make a loss uncertain by 3e-7, and H^4 is 1e-6.
            ExpectNear(gradients[i], layers.Differences(i), 1e-4);
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace shardc
