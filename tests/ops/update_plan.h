// What the tests of optimizers have in common: a sub-vector of four parameters in two groups, with gaps of padding,
// over two ranks; one that is all of one parameter; steps of both against LibTorch.
#pragma once

#include <algorithm>

#include "runtime/kernels/owned_segments.h"
#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

constexpr int64_t UpdateSlice = 640;
constexpr int64_t UpdateRanks = 2;

/// Segments (elements of the whole): 0 [0, 100), 1 [128, 733) across the cut at 640, 2 [768, 769), 3 [896, 1200).
inline auto AddUpdatePlan(Plan& plan) -> SubVectorId {
  plan.mesh.sizes = {1, UpdateRanks, 1};
  const GroupId decayed = plan.groups.Add({.name = "default", .weight_decay = 0.1, .lr_scale = 1});
  const GroupId scaled = plan.groups.Add({.name = "scaled", .weight_decay = 0, .lr_scale = 0.5});
  SubVector sub_vector;
  sub_vector.length = UpdateSlice * UpdateRanks;
  const int64_t bounds[][2] = {{0, 100}, {128, 733}, {768, 769}, {896, 1200}};
  for (const auto& [begin, end] : bounds) {
    const bool first_two = begin < 256;
    const ParameterId parameter =
        plan.parameters.Add({.name = "p", .shape = {end - begin}, .group = first_two ? decayed : scaled});
    sub_vector.segments.push_back({begin, end, parameter, true});
  }
  return plan.sub_vectors.Add(sub_vector);
}

constexpr int64_t ManyParameters = 130;
constexpr int64_t ManyParametersLength = ManyParameters * 60;
/// Adds more parameters than one launch of a kernel takes segments: 50 elements each, and 10 of padding, on one rank.
inline auto AddManyParameters(Plan& plan) -> SubVectorId {
  const GroupId group = plan.groups.Add({.name = "default", .weight_decay = 0.1, .lr_scale = 1});
  SubVector sub_vector;
  sub_vector.length = ManyParametersLength;
  for (int64_t i = 0; i < ManyParameters; ++i) {
    const ParameterId parameter = plan.parameters.Add({.name = "p", .shape = {50}, .group = group});
    sub_vector.segments.push_back({60 * i + 1, 60 * i + 51, parameter, true});
  }
  return plan.sub_vectors.Add(sub_vector);
}

/// Returns true for an element of one of them, false for padding.
constexpr auto IsOfManyParameters(int64_t element) -> bool { return element % 60 >= 1 && element % 60 < 51; }

/// One parameter without padding, on one rank.
inline auto AddWholeParameter(Plan& plan) -> SubVectorId {
  const GroupId group = plan.groups.Add({.name = "default", .weight_decay = 0.1, .lr_scale = 1});
  const ParameterId id = plan.parameters.Add({.name = "p", .shape = {UpdateSlice}, .group = group});
  SubVector whole;
  whole.length = UpdateSlice;
  whole.segments = {{0, UpdateSlice, id, true}};
  return plan.sub_vectors.Add(whole);
}

/// Ten steps by random gradients, those of step i about `scale_of(i)` times 1; the gradients.
template <class ScaleOf, class Step>
auto TenSteps(const ScaleOf& scale_of, const Step& step) -> std::vector<Numbers> {
  std::vector<Numbers> gradients;
  for (int64_t i = 0; i < 10; ++i) {
    gradients.push_back(RandomNumbers(UpdateSlice, static_cast<uint64_t>(10 + i), scale_of(i)));
    step(gradients.back());
  }
  return gradients;
}

/// A vector of a rank's slice, and what it held before the first step.
struct UpdatedVector {
  std::string_view name;
  ValueId value;
  Numbers start;
};

/// Each owned segment of `vectors` against what `torch(group, start, gradients)` gives of them for the segment's group,
/// its part of the first vector, and its part of the gradients. Padding is as it was.
template <class Torch>
auto ExpectTorchOfEachSegment(OpKind kind, KernelFixture& fixture, SubVectorId id, int64_t rank,
                              const std::vector<UpdatedVector>& vectors, const std::vector<Numbers>& gradients,
                              const Torch& torch) -> void {
  const Plan& plan = fixture.plan();
  std::vector<bool> covered(UpdateSlice, false);
  for (const Segment& segment : plan.sub_vectors[id].segments) {
    const Interval owned = OwnedElementsOf(plan, plan.sub_vectors[id], segment, rank);
    if (owned.empty()) {
      continue;
    }
    SCOPED_TRACE(fmt::format("rank {}, segment at {}", rank, segment.begin));
    const int64_t begin = owned.begin - rank * UpdateSlice;
    const auto part = [&](const Numbers& whole) {
      return Numbers(whole.begin() + begin, whole.begin() + begin + owned.size());
    };
    std::vector<Numbers> own_gradients;
    for (const Numbers& gradient : gradients) {
      own_gradients.push_back(part(gradient));
    }
    const std::vector<Numbers> expected =
        torch(plan.groups[plan.parameters[segment.parameter].group], part(vectors[0].start), own_gradients);
    ASSERT_EQ(expected.size(), vectors.size());
    for (size_t i = 0; i < vectors.size(); ++i) {
      ExpectClose(
          kind, vectors[i].name,
          fixture.At<float>(vectors[i].value).subspan(static_cast<size_t>(begin), static_cast<size_t>(owned.size())),
          expected[i]);
    }
    std::fill_n(covered.begin() + begin, owned.size(), true);
  }
  for (const UpdatedVector& vector : vectors) {
    for (size_t i = 0; i < covered.size(); ++i) {
      ASSERT_TRUE(covered[i] || fixture.At<float>(vector.value)[i] == static_cast<float>(vector.start[i]))
          << "padding of " << vector.name << " at " << i;
    }
  }
}

struct Clipped {
  ValueId norm;
  ValueId factor;
};
/// Clips a gradient to a norm of 10.
inline auto ClipToTen(KernelFixture& fixture, SubVectorId id, ValueId gradient) -> Clipped {
  const ValueId sum = fixture.Add(DType::F64, {1});
  const ValueId bad = fixture.Add(DType::I64, {1});
  const Clipped clipped{.norm = fixture.Add(DType::F64, {1}), .factor = fixture.Add(DType::F64, {1})};
  fixture.Run(
      op::SumSquares{.gradient = gradient, .sum = sum, .sum_onto = {}, .bad = bad, .bad_onto = {}, .sub_vector = id});
  fixture.Run(op::ClipFactor{.sum = sum, .norm = clipped.norm, .factor = clipped.factor, .max_norm = 10});
  return clipped;
}
/// Of TenSteps: norms of 2.5 to 25.
inline auto AboutTheLimit(int64_t step) -> double { return 0.1 * static_cast<double>(step + 1); }
inline auto AllAlike(int64_t) -> double { return 1; }

/// Expects of `run(fixture, sub_vector, parameter, copy)`, an update of rank 1's slice, that a parameter kept in bf16
/// is the f32 update of the same numbers, rounded. The copy is what was kept, in the other type; its padding is left
/// alone.
template <class Run>
auto ExpectKeepsRounded(const Run& run) -> void {
  ForBackends([&](const Backend& backend) {
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
      run(fixture, id, parameter, copy);
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

}  // namespace shardc
