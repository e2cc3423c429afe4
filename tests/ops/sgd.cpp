#include <gtest/gtest.h>

#include "runtime/kernels/cpu/owned_segments.h"
#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/ops/update_plan.h"

namespace shardc {
namespace {

constexpr int64_t SgdSteps = 10;
constexpr double SgdLr = 0.01;

struct SgdCase {
  const char* name;
  double momentum;
  bool nesterov;
};
constexpr SgdCase SgdCases[] = {{"plain", 0, false}, {"momentum", 0.9, false}, {"Nesterov", 0.9, true}};

auto OwnPart(const Numbers& whole, int64_t begin, int64_t size) -> Numbers {
  return {whole.begin() + begin, whole.begin() + begin + size};
}

/// Clears a buffer if there is momentum.
auto MakeMomentumBuffer(KernelFixture& fixture, const SgdCase& test) -> ValueId {
  return test.momentum == 0 ? ValueId{} : fixture.F32({UpdateSlice}, Numbers(UpdateSlice, 0.0));
}

// Ten steps of one rank's slice against torch::optim::SGD of each owned segment, with the segment's group and factor 1.
TEST(Sgd, EqualsLibTorchInF64) {
  ForBackends([](const Backend& backend) {
    for (const SgdCase& test : SgdCases) {
      for (int64_t rank = 0; rank < UpdateRanks; ++rank) {
        KernelFixture fixture(backend, rank);
        const SubVectorId id = AddUpdatePlan(fixture.mutable_plan());
        const ScalarId lr = fixture.AddScalar(ScalarKind::Schedule, SgdLr);
        const Numbers start = RandomNumbers(UpdateSlice, 1);
        const ValueId parameter = fixture.F32({UpdateSlice}, start);
        const ValueId buffer = MakeMomentumBuffer(fixture, test);
        std::vector<Numbers> gradients;
        for (int64_t step = 0; step < SgdSteps; ++step) {
          gradients.push_back(RandomNumbers(UpdateSlice, static_cast<uint64_t>(10 + step)));
          fixture.Run(op::Sgd{.gradient = fixture.F32({UpdateSlice}, gradients.back()),
                              .factor = fixture.F64({1}),
                              .parameter = parameter,
                              .momentum_buffer = buffer,
                              .sub_vector = id,
                              .lr = lr,
                              .momentum = test.momentum,
                              .nesterov = test.nesterov});
        }
        const Plan& plan = fixture.plan();
        std::vector<bool> covered(UpdateSlice, false);
        for (const Segment& segment : plan.sub_vectors[id].segments) {
          const Interval owned = OwnedElementsOf(plan, plan.sub_vectors[id], segment, rank);
          if (owned.empty()) {
            continue;
          }
          SCOPED_TRACE(fmt::format("{}, rank {}, segment at {}", test.name, rank, segment.begin));
          const OptimizerGroup& group = plan.groups[plan.parameters[segment.parameter].group];
          const int64_t begin = owned.begin - rank * UpdateSlice;
          std::vector<Numbers> own_gradients;
          for (const Numbers& gradient : gradients) {
            own_gradients.push_back(OwnPart(gradient, begin, owned.size()));
          }
          const SgdResult expected = TorchSgd({.lr = SgdLr * group.lr_scale,
                                               .momentum = test.momentum,
                                               .nesterov = test.nesterov,
                                               .weight_decay = group.weight_decay},
                                              OwnPart(start, begin, owned.size()), own_gradients);
          const auto close = [&](std::string_view what, ValueId value, const Numbers& numbers) {
            ExpectClose(OpKind::Sgd, what,
                        fixture.At<float>(value).subspan(static_cast<size_t>(begin), static_cast<size_t>(owned.size())),
                        numbers);
          };
          close("parameter", parameter, expected.parameter);
          if (buffer.valid()) {
            close("momentum_buffer", buffer, expected.momentum_buffer);
          }
          std::fill_n(covered.begin() + begin, owned.size(), true);
        }
        for (size_t i = 0; i < covered.size(); ++i) {
          if (!covered[i]) {
            ASSERT_EQ(fixture.At<float>(parameter)[i], static_cast<float>(start[i])) << "padding at " << i;
            ASSERT_TRUE(!buffer.valid() || fixture.At<float>(buffer)[i] == 0.0F) << "padding at " << i;
          }
        }
      }
    }
  });
}

// Norm, factor and update together, against clip_grad_norm_ followed by SGD: weight decay is not clipped.
TEST(Sgd, ClippedStepsEqualLibTorch) {
  ForBackends([](const Backend& backend) {
    for (const SgdCase& test : SgdCases) {
      KernelFixture fixture(backend);
      Plan& plan = fixture.mutable_plan();
      const GroupId group = plan.groups.Add({.name = "default", .weight_decay = 0.1, .lr_scale = 1});
      const ParameterId id = plan.parameters.Add({.name = "p", .shape = {UpdateSlice}, .group = group});
      SubVector whole;
      whole.length = UpdateSlice;
      whole.segments = {{0, UpdateSlice, id, true}};
      const SubVectorId sub_vector = plan.sub_vectors.Add(whole);
      const ScalarId lr = fixture.AddScalar(ScalarKind::Schedule, SgdLr);
      const Numbers start = RandomNumbers(UpdateSlice, 1);
      const ValueId parameter = fixture.F32({UpdateSlice}, start);
      const ValueId buffer = MakeMomentumBuffer(fixture, test);
      std::vector<Numbers> gradients;
      for (int64_t step = 0; step < SgdSteps; ++step) {
        // Norms of 2.5 to 25 about a limit of 10.
        gradients.push_back(
            RandomNumbers(UpdateSlice, static_cast<uint64_t>(10 + step), 0.1 * static_cast<double>(step + 1)));
        const ValueId gradient = fixture.F32({UpdateSlice}, gradients.back());
        const ValueId sum = fixture.Add(DType::F64, {1});
        const ValueId bad = fixture.Add(DType::I64, {1});
        const ValueId norm = fixture.Add(DType::F64, {1});
        const ValueId factor = fixture.Add(DType::F64, {1});
        fixture.Run(op::SumSquares{
            .gradient = gradient, .sum = sum, .sum_onto = {}, .bad = bad, .bad_onto = {}, .sub_vector = sub_vector});
        fixture.Run(op::ClipFactor{.sum = sum, .norm = norm, .factor = factor, .max_norm = 10});
        fixture.Run(op::Sgd{.gradient = gradient,
                            .factor = factor,
                            .parameter = parameter,
                            .momentum_buffer = buffer,
                            .sub_vector = sub_vector,
                            .lr = lr,
                            .momentum = test.momentum,
                            .nesterov = test.nesterov});
      }
      const SgdResult expected = TorchSgd(
          {.lr = SgdLr, .momentum = test.momentum, .nesterov = test.nesterov, .weight_decay = 0.1, .max_norm = 10},
          start, gradients);
      SCOPED_TRACE(test.name);
      ExpectClose(OpKind::Sgd, "parameter", fixture.At<float>(parameter), expected.parameter);
      if (buffer.valid()) {
        ExpectClose(OpKind::Sgd, "momentum_buffer", fixture.At<float>(buffer), expected.momentum_buffer);
      }
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

// Kept in bf16: the f32 update of the same numbers, rounded. The copy is what was kept, in the other type; padding of
// the copy is left alone.
TEST(Sgd, KeepsAndCopiesTheRoundedUpdate) {
  ForBackends([](const Backend& backend) {
    const auto start = RoundedTo(DType::BF16, RandomNumbers(UpdateSlice, 1));
    std::vector<double> in_f32;
    for (const DType dtype : {DType::F32, DType::BF16}) {
      KernelFixture fixture(backend, 1);
      const SubVectorId id = AddUpdatePlan(fixture.mutable_plan());
      for (Parameter& parameter : fixture.mutable_plan().parameters) {
        parameter.dtype = dtype;
      }
      const ValueId parameter = fixture.Floats(dtype, {UpdateSlice}, start);
      const ValueId copy = fixture.Floats(dtype == DType::F32 ? DType::BF16 : DType::F32, {UpdateSlice}, start);
      RunSgd(fixture, id, parameter, copy);
      const auto kept = fixture.Numbers(parameter);
      EXPECT_NE(kept, start);
      EXPECT_EQ(fixture.Numbers(copy), RoundedTo(DType::BF16, kept));
      if (dtype == DType::F32) {
        in_f32 = kept;
      } else {
        EXPECT_EQ(kept, RoundedTo(DType::BF16, in_f32));
      }
    }
  });
}

}  // namespace
}  // namespace shardc
