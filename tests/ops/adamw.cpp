#include <gtest/gtest.h>

#include "tests/ops/update_plan.h"

namespace shardc {

constexpr double Lr = 0.01;

/// Of each step; eps and the decay of the first moment are the same in all tests.
struct AdamwCase {
  double beta2 = 0.95;
  double max_norm = 0;
};

/// The vectors of ten steps: parameters and moments of zeros.
static auto MakeAdamwVectors(KernelFixture& fixture) -> std::vector<UpdatedVector> {
  const Numbers start = RandomNumbers(UpdateSlice, 1);
  const Numbers zeros(UpdateSlice, 0.0);
  return {{"parameter", fixture.F32({UpdateSlice}, start), start},
          {"exp_avg", fixture.F32({UpdateSlice}, zeros), zeros},
          {"exp_avg_sq", fixture.F32({UpdateSlice}, zeros), zeros}};
}

static auto AdamwOf(const AdamwCase& test, const std::vector<UpdatedVector>& vectors, SubVectorId id,
                    KernelFixture& fixture) -> op::Adamw {
  return {.parameter = vectors[0].value,
          .exp_avg = vectors[1].value,
          .exp_avg_sq = vectors[2].value,
          .sub_vector = id,
          .lr = fixture.AddScalar(ScalarKind::Schedule, Lr),
          .updates = fixture.AddScalar(ScalarKind::State, 0),
          .beta1 = 0.9,
          .beta2 = test.beta2,
          .eps = 1e-8};
}

static auto TorchOf(const AdamwCase& test, const OptimizerGroup& group, const Numbers& start,
                    const std::vector<Numbers>& gradients) -> AdamwResult {
  return TorchAdamw({.lr = Lr * group.lr_scale,
                     .beta1 = 0.9,
                     .beta2 = test.beta2,
                     .eps = 1e-8,
                     .weight_decay = group.weight_decay,
                     .max_norm = test.max_norm},
                    start, gradients);
}

// Ten steps of one rank's slice against torch::optim::AdamW of each owned segment, with the segment's group and
// factor 1.
TEST(Adamw, EqualsLibTorchInF64) {
  ForBackends([](const Backend& backend) {
    const AdamwCase test;
    for (int64_t rank = 0; rank < UpdateRanks; ++rank) {
      KernelFixture fixture(backend, rank);
      const SubVectorId id = AddUpdatePlan(fixture.mutable_plan());
      const std::vector<UpdatedVector> vectors = MakeAdamwVectors(fixture);
      op::Adamw update = AdamwOf(test, vectors, id, fixture);
      const auto gradients = TenSteps(AllAlike, [&](const Numbers& gradient) {
        update.gradient = fixture.F32({UpdateSlice}, gradient);
        update.factor = fixture.F64({1});
        fixture.Run(update);
        fixture.Run(op::Increment{.scalar = update.updates});
      });
      ExpectTorchOfEachSegment(
          OpKind::Adamw, fixture, id, rank, vectors, gradients,
          [&](const OptimizerGroup& group, const Numbers& start, const std::vector<Numbers>& own_gradients) {
            const AdamwResult result = TorchOf(test, group, start, own_gradients);
            return std::vector<Numbers>{result.parameter, result.exp_avg, result.exp_avg_sq};
          });
    }
  });
}

// Norm, factor and update together, against clip_grad_norm_ followed by AdamW.
TEST(Adamw, ClippedStepsEqualLibTorch) {
  ForBackends([](const Backend& backend) {
    const AdamwCase test{.beta2 = 0.999, .max_norm = 10};
    KernelFixture fixture(backend);
    const SubVectorId id = AddWholeParameter(fixture.mutable_plan());
    const std::vector<UpdatedVector> vectors = MakeAdamwVectors(fixture);
    op::Adamw update = AdamwOf(test, vectors, id, fixture);
    Numbers norms;
    const auto gradients = TenSteps(AboutTheLimit, [&](const Numbers& gradient) {
      update.gradient = fixture.F32({UpdateSlice}, gradient);
      const Clipped clipped = ClipToTen(fixture, id, update.gradient);
      update.factor = clipped.factor;
      fixture.Run(update);
      fixture.Run(op::Increment{.scalar = update.updates});
      norms.push_back(fixture.At<double>(clipped.norm)[0]);
    });
    ExpectTorchOfEachSegment(
        OpKind::Adamw, fixture, id, 0, vectors, gradients,
        [&](const OptimizerGroup& group, const Numbers& start, const std::vector<Numbers>& own_gradients) {
          const AdamwResult expected = TorchOf(test, group, start, own_gradients);
          for (size_t i = 0; i < norms.size(); ++i) {
            EXPECT_NEAR(norms[i], expected.norms[i], 1e-12 * expected.norms[i]);
          }
          return std::vector<Numbers>{expected.parameter, expected.exp_avg, expected.exp_avg_sq};
        });
  });
}

/// The sixth update of rank 1's slice, gradients and moments being random numbers, the factor one half.
static auto RunSixthUpdate(KernelFixture& fixture, SubVectorId id, ValueId parameter, ValueId copy) -> void {
  fixture.Run(op::Adamw{.gradient = fixture.F32({UpdateSlice}, RandomNumbers(UpdateSlice, 2)),
                        .factor = fixture.F64({0.5}),
                        .parameter = parameter,
                        .exp_avg = fixture.F32({UpdateSlice}, RandomNumbers(UpdateSlice, 3)),
                        .exp_avg_sq = fixture.F32({UpdateSlice}, std::vector<double>(UpdateSlice, 0.25)),
                        .copy = copy,
                        .sub_vector = id,
                        .lr = fixture.AddScalar(ScalarKind::Schedule, Lr),
                        .updates = fixture.AddScalar(ScalarKind::State, 5),
                        .beta1 = 0.9,
                        .beta2 = 0.95,
                        .eps = 1e-8});
}

// The copy is what a cast of the new parameters would give, where there are parameters; its padding is left alone.
TEST(Adamw, TheCopyIsTheRoundedParameter) {
  ForBackends([](const Backend& backend) {
    std::vector<double> without_copy;
    for (const bool copies : {false, true}) {
      KernelFixture fixture(backend, 1);
      const SubVectorId id = AddUpdatePlan(fixture.mutable_plan());
      const ValueId parameter = fixture.F32({UpdateSlice}, RandomNumbers(UpdateSlice, 1));
      const ValueId copy = fixture.BF16({UpdateSlice}, std::vector<double>(UpdateSlice, 77.0));
      RunSixthUpdate(fixture, id, parameter, copies ? copy : ValueId{});
      const auto updated = fixture.Numbers(parameter);
      if (!copies) {
        without_copy = updated;
        EXPECT_EQ(fixture.Numbers(copy), std::vector<double>(UpdateSlice, 77.0));
        continue;
      }
      EXPECT_EQ(updated, without_copy);
      std::vector<double> expected(UpdateSlice, 77.0);
      const auto rounded = RoundedTo(DType::BF16, updated);
      for (const OwnedSegment& segment : OwnedSegments(fixture.plan(), id, 1)) {
        for (int64_t i = segment.in_slice.begin; i < segment.in_slice.end; ++i) {
          expected[static_cast<size_t>(i)] = rounded[static_cast<size_t>(i)];
        }
      }
      EXPECT_EQ(fixture.Numbers(copy), expected);
    }
  });
}

TEST(Adamw, KeepsAndCopiesTheRoundedUpdate) { ExpectKeepsRounded(RunSixthUpdate); }

// Each element by itself has the update that one parameter of all elements has, and padding stays.
TEST(Adamw, UpdatesManySegments) {
  ForBackends([](const Backend& backend) {
    std::vector<double> of_one;
    for (const bool many : {false, true}) {
      KernelFixture fixture(backend);
      Plan& plan = fixture.mutable_plan();
      const SubVectorId id = AddManyParameters(plan);
      if (!many) {
        plan.parameters[ParameterId{0}].shape = {ManyParametersLength};
        plan.sub_vectors[id].segments = {{0, ManyParametersLength, ParameterId{0}, true}};
      }
      const std::vector<double> start = RandomNumbers(ManyParametersLength, 1);
      const ValueId parameter = fixture.F32({ManyParametersLength}, start);
      fixture.Run(
          op::Adamw{.gradient = fixture.F32({ManyParametersLength}, RandomNumbers(ManyParametersLength, 2)),
                    .factor = fixture.F64({0.5}),
                    .parameter = parameter,
                    .exp_avg = fixture.F32({ManyParametersLength}, RandomNumbers(ManyParametersLength, 3)),
                    .exp_avg_sq = fixture.F32({ManyParametersLength}, std::vector<double>(ManyParametersLength, 0.25)),
                    .copy = {},
                    .sub_vector = id,
                    .lr = fixture.AddScalar(ScalarKind::Schedule, Lr),
                    .updates = fixture.AddScalar(ScalarKind::State, 5),
                    .beta1 = 0.9,
                    .beta2 = 0.95,
                    .eps = 1e-8});
      if (!many) {
        of_one = fixture.Numbers(parameter);
        continue;
      }
      std::vector<double> expected = start;
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] = IsOfManyParameters(static_cast<int64_t>(i)) ? of_one[i] : expected[i];
      }
      ExpectClose(OpKind::Adamw, "parameter", fixture, parameter, expected);
    }
  });
}

}  // namespace shardc
