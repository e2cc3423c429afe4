#include <gtest/gtest.h>

#include "tests/ops/update_plan.h"

namespace shardc {
namespace {

constexpr double SgdLr = 0.01;

struct SgdCase {
  const char* name;
  double momentum;
  bool nesterov;
};
constexpr SgdCase SgdCases[] = {{"plain", 0, false}, {"momentum", 0.9, false}, {"Nesterov", 0.9, true}};

/// The vectors of ten steps: the parameter, and a momentum buffer of zeros where there is momentum.
auto MakeVectors(KernelFixture& fixture, const SgdCase& test) -> std::vector<UpdatedVector> {
  const Numbers start = RandomNumbers(UpdateSlice, 1);
  const Numbers zeros(UpdateSlice, 0.0);
  std::vector<UpdatedVector> vectors{{"parameter", fixture.F32({UpdateSlice}, start), start}};
  if (test.momentum != 0) {
    vectors.push_back({"momentum_buffer", fixture.F32({UpdateSlice}, zeros), zeros});
  }
  return vectors;
}

auto SgdOf(const SgdCase& test, const std::vector<UpdatedVector>& vectors, SubVectorId id, ScalarId lr) -> op::Sgd {
  return {.parameter = vectors[0].value,
          .momentum_buffer = vectors.size() > 1 ? vectors[1].value : ValueId{},
          .sub_vector = id,
          .lr = lr,
          .momentum = test.momentum,
          .nesterov = test.nesterov};
}

/// In the order of MakeVectors.
auto TorchVectors(const SgdCase& test, const OptimizerGroup& group, double max_norm, const Numbers& start,
                  const std::vector<Numbers>& gradients) -> std::vector<Numbers> {
  const SgdResult result = TorchSgd({.lr = SgdLr * group.lr_scale,
                                     .momentum = test.momentum,
                                     .nesterov = test.nesterov,
                                     .weight_decay = group.weight_decay,
                                     .max_norm = max_norm},
                                    start, gradients);
  return test.momentum == 0 ? std::vector<Numbers>{result.parameter}
                            : std::vector<Numbers>{result.parameter, result.momentum_buffer};
}

// Ten steps of one rank's slice against torch::optim::SGD of each owned segment, with the segment's group and factor 1.
TEST(Sgd, EqualsLibTorchInF64) {
  ForBackends([](const Backend& backend) {
    for (const SgdCase& test : SgdCases) {
      for (int64_t rank = 0; rank < UpdateRanks; ++rank) {
        SCOPED_TRACE(test.name);
        KernelFixture fixture(backend, rank);
        const SubVectorId id = AddUpdatePlan(fixture.mutable_plan());
        const std::vector<UpdatedVector> vectors = MakeVectors(fixture, test);
        op::Sgd update = SgdOf(test, vectors, id, fixture.AddScalar(ScalarKind::Schedule, SgdLr));
        const auto gradients = TenSteps(AllAlike, [&](const Numbers& gradient) {
          update.gradient = fixture.F32({UpdateSlice}, gradient);
          update.factor = fixture.F64({1});
          fixture.Run(update);
        });
        ExpectTorchOfEachSegment(
            OpKind::Sgd, fixture, id, rank, vectors, gradients,
            [&](const OptimizerGroup& group, const Numbers& start, const std::vector<Numbers>& own_gradients) {
              return TorchVectors(test, group, 0, start, own_gradients);
            });
      }
    }
  });
}

// Norm, factor and update together, against clip_grad_norm_ followed by SGD: weight decay is not clipped.
TEST(Sgd, ClippedStepsEqualLibTorch) {
  ForBackends([](const Backend& backend) {
    for (const SgdCase& test : SgdCases) {
      SCOPED_TRACE(test.name);
      KernelFixture fixture(backend);
      const SubVectorId id = AddWholeParameter(fixture.mutable_plan());
      const std::vector<UpdatedVector> vectors = MakeVectors(fixture, test);
      op::Sgd update = SgdOf(test, vectors, id, fixture.AddScalar(ScalarKind::Schedule, SgdLr));
      const auto gradients = TenSteps(AboutTheLimit, [&](const Numbers& gradient) {
        update.gradient = fixture.F32({UpdateSlice}, gradient);
        update.factor = ClipToTen(fixture, id, update.gradient).factor;
        fixture.Run(update);
      });
      ExpectTorchOfEachSegment(
          OpKind::Sgd, fixture, id, 0, vectors, gradients,
          [&](const OptimizerGroup& group, const Numbers& start, const std::vector<Numbers>& own_gradients) {
            return TorchVectors(test, group, 10, start, own_gradients);
          });
    }
  });
}

/// An update of rank 1's slice, gradients and buffer being random numbers, the factor one half.
auto RunSgd(KernelFixture& fixture, SubVectorId id, ValueId parameter, ValueId copy) -> void {
  fixture.Run(op::Sgd{.gradient = fixture.F32({UpdateSlice}, RandomNumbers(UpdateSlice, 2)),
                      .factor = fixture.F64({0.5}),
                      .parameter = parameter,
                      .momentum_buffer = fixture.F32({UpdateSlice}, RandomNumbers(UpdateSlice, 3)),
                      .copy = copy,
                      .sub_vector = id,
                      .lr = fixture.AddScalar(ScalarKind::Schedule, SgdLr),
                      .momentum = 0.9,
                      .nesterov = true});
}

TEST(Sgd, KeepsAndCopiesTheRoundedUpdate) { ExpectKeepsRounded(RunSgd); }

}  // namespace
}  // namespace shardc
