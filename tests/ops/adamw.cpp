#include <gtest/gtest.h>

#include <cmath>

#include "runtime/kernels/cpu/owned_segments.h"
#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/ops/update_plan.h"

namespace shardc {

constexpr int64_t NumSteps = 10;
constexpr double Lr = 0.01;

static auto IntervalOf(std::span<const float> whole, int64_t begin, int64_t size) -> std::span<const float> {
  return whole.subspan(static_cast<size_t>(begin), static_cast<size_t>(size));
}
static auto IntervalOf(const Numbers& whole, int64_t begin, int64_t size) -> Numbers {
  return {whole.begin() + begin, whole.begin() + begin + size};
}

// Ten steps of one rank's slice against torch::optim::AdamW of each owned segment, with the segment's group and
// factor 1.
TEST(Adamw, EqualsLibTorchInF64) {
  ForBackends([](const Backend& backend) {
    for (int64_t rank = 0; rank < UpdateRanks; ++rank) {
      KernelFixture fixture(backend, rank);
      const SubVectorId id = AddUpdatePlan(fixture.mutable_plan());
      const ScalarId lr = fixture.AddScalar(ScalarKind::Schedule, Lr);
      const ScalarId updates = fixture.AddScalar(ScalarKind::State, 0);
      const auto start = RandomNumbers(UpdateSlice, 1);
      const ValueId parameter = fixture.F32({UpdateSlice}, start);
      const ValueId exp_avg = fixture.F32({UpdateSlice}, Numbers(UpdateSlice, 0.0));
      const ValueId exp_avg_sq = fixture.F32({UpdateSlice}, Numbers(UpdateSlice, 0.0));
      std::vector<Numbers> gradients;
      for (int64_t step = 0; step < NumSteps; ++step) {
        gradients.push_back(RandomNumbers(UpdateSlice, static_cast<uint64_t>(10 + step)));
        fixture.Run(op::Adamw{.gradient = fixture.F32({UpdateSlice}, gradients.back()),
                              .factor = fixture.F64({1}),
                              .parameter = parameter,
                              .exp_avg = exp_avg,
                              .exp_avg_sq = exp_avg_sq,
                              .sub_vector = id,
                              .lr = lr,
                              .updates = updates,
                              .beta1 = 0.9,
                              .beta2 = 0.95,
                              .eps = 1e-8});
        fixture.Run(op::Increment{.scalar = updates});
      }
      const Plan& plan = fixture.plan();
      std::vector<bool> covered(UpdateSlice, false);
      for (const Segment& segment : plan.sub_vectors[id].segments) {
        const Interval owned = OwnedElementsOf(plan, plan.sub_vectors[id], segment, rank);
        if (owned.empty()) {
          continue;
        }
        SCOPED_TRACE(fmt::format("rank {} segment at {}", rank, segment.begin));
        const OptimizerGroup& group = plan.groups[plan.parameters[segment.parameter].group];
        const int64_t begin = owned.begin - rank * UpdateSlice;
        std::vector<Numbers> own_gradients;
        for (const Numbers& gradient : gradients) {
          own_gradients.push_back(IntervalOf(gradient, begin, owned.size()));
        }
        const AdamwResult expected = TorchAdamw(
            {.lr = Lr * group.lr_scale, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = group.weight_decay},
            IntervalOf(start, begin, owned.size()), own_gradients);
        const auto close = [&](std::string_view what, ValueId value, const Numbers& numbers) {
          ExpectClose(OpKind::Adamw, what, IntervalOf(fixture.At<float>(value), begin, owned.size()), numbers);
        };
        close("parameter", parameter, expected.parameter);
        close("exp_avg", exp_avg, expected.exp_avg);
        close("exp_avg_sq", exp_avg_sq, expected.exp_avg_sq);
        for (int64_t i = begin; i < begin + owned.size(); ++i) {
          covered[static_cast<size_t>(i)] = true;
        }
      }
      for (size_t i = 0; i < covered.size(); ++i) {
        if (!covered[i]) {
          ASSERT_EQ(fixture.At<float>(parameter)[i], static_cast<float>(start[i])) << "padding at " << i;
          ASSERT_EQ(fixture.At<float>(exp_avg_sq)[i], 0.0F) << "padding at " << i;
        }
      }
    }
  });
}

// Norm, factor and update together, against clip_grad_norm_ followed by AdamW.
TEST(Adamw, ClippedStepsEqualLibTorch) {
  ForBackends([](const Backend& backend) {
    KernelFixture fixture(backend);
    Plan& plan = fixture.mutable_plan();
    const GroupId group = plan.groups.Add({.name = "default", .weight_decay = 0.1, .lr_scale = 1});
    const ParameterId id = plan.parameters.Add({.name = "p", .shape = {UpdateSlice}, .group = group});
    SubVector whole;
    whole.length = UpdateSlice;
    whole.segments = {{0, UpdateSlice, id, true}};
    const SubVectorId sub_vector = plan.sub_vectors.Add(whole);
    const ScalarId lr = fixture.AddScalar(ScalarKind::Schedule, Lr);
    const ScalarId updates = fixture.AddScalar(ScalarKind::State, 0);
    const auto start = RandomNumbers(UpdateSlice, 1);
    const ValueId parameter = fixture.F32({UpdateSlice}, start);
    const ValueId exp_avg = fixture.F32({UpdateSlice}, Numbers(UpdateSlice, 0.0));
    const ValueId exp_avg_sq = fixture.F32({UpdateSlice}, Numbers(UpdateSlice, 0.0));
    std::vector<Numbers> gradients;
    Numbers norms;
    for (int64_t step = 0; step < NumSteps; ++step) {
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
      fixture.Run(op::Adamw{.gradient = gradient,
                            .factor = factor,
                            .parameter = parameter,
                            .exp_avg = exp_avg,
                            .exp_avg_sq = exp_avg_sq,
                            .sub_vector = sub_vector,
                            .lr = lr,
                            .updates = updates,
                            .beta1 = 0.9,
                            .beta2 = 0.999,
                            .eps = 1e-8});
      fixture.Run(op::Increment{.scalar = updates});
      norms.push_back(fixture.At<double>(norm)[0]);
    }
    const AdamwResult expected = TorchAdamw(
        {.lr = Lr, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .weight_decay = 0.1, .max_norm = 10}, start, gradients);
    for (size_t i = 0; i < norms.size(); ++i) {
      EXPECT_NEAR(norms[i], expected.norms[i], 1e-12 * expected.norms[i]);
    }
    ExpectClose(OpKind::Adamw, "parameter", fixture.At<float>(parameter), expected.parameter);
    ExpectClose(OpKind::Adamw, "exp_avg", fixture.At<float>(exp_avg), expected.exp_avg);
    ExpectClose(OpKind::Adamw, "exp_avg_sq", fixture.At<float>(exp_avg_sq), expected.exp_avg_sq);
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

// Kept in bf16: the f32 update of the same numbers, rounded, and the copy is what was kept.
TEST(Adamw, KeepsTheRoundedUpdate) {
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
      RunSixthUpdate(fixture, id, parameter, copy);
      if (dtype == DType::F32) {
        in_f32 = fixture.Numbers(parameter);
      } else {
        EXPECT_EQ(fixture.Numbers(parameter), RoundedTo(DType::BF16, in_f32));
        EXPECT_EQ(fixture.Numbers(copy), fixture.Numbers(parameter));
        EXPECT_NE(fixture.Numbers(parameter), start);
      }
    }
  });
}

}  // namespace shardc
