// A bit that turns in one replica on emulated GPUs is found at the next comparison, by digests that the GPUs take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/emulated/feature.h"
#include "tests/support/emulated/cuda.h"

namespace shardc {
namespace {

using testing::HasSubstr;

/// Turns one bit of the first element that this rank owns of a state, in the queue in which it is called.
auto TurnBit(RankContext& context, ValueId state) -> Status {
  const Value& value = context.plan->values[state];
  const Buffer& buffer = context.plan->buffers[value.buffer];
  std::byte* const first = context.device->Base(buffer.arena) + buffer.offset + value.offset.base;
  Queue& queue = context.device->queue(Stream::Compute);
  HostScratch scratch;
  const auto read = queue.Read(first, 4, scratch);
  if (!read) {
    return read.error();
  }
  std::vector<std::byte> element(*read, *read + 4);
  element[2] ^= std::byte{1};
  std::copy(element.begin(), element.end(), queue.BeginWrite(first, 4, scratch));
  return queue.EndWrite(first, 4, scratch);
}

TEST(EmulatedReplicas, ABitThatTurnsIsFound) {
  UseEmulatedCuda();
  const SmallTraining training;
  const Plan plan = training.Compile(OnGpu({"mesh.replicate=2", "mesh.dp=2", "train.steps=5", "run.compare_every=2",
                                            "train.eval_every=0", "checkpoint.every=0"}));
  EXPECT_EQ(TrainInOrder(plan, training / "whole").code, ExitCode::Ok);

  const SubVector& sub_vector = plan.sub_vectors[SubVectorId{1}];
  const ValueId state = StateOf(sub_vector, StateRole::Parameter);
  const int64_t first = OwnedSlice(sub_vector, plan.mesh, 3).begin;
  const auto segment = std::ranges::find_if(sub_vector.segments, [&](const Segment& held) { return first < held.end; });
  const std::string turned = StateName(plan.parameters[segment->parameter].name, StateRole::Parameter);
  const size_t last_op = plan.section(SectionKind::Step).ops.size() - 1;
  int64_t num_steps = 0;
  const TrainedRun run = TrainInProcess(plan, training / "turned", [&](RankContext& context) {
    if (context.rank != 3) {
      return;
    }
    context.execution.wrap = [&, &context = context](SectionKind section, size_t op, Kernel kernel) -> Kernel {
      return section != SectionKind::Step || op != last_op
                 ? kernel
                 : [&, kernel, &context = context](const Moment& moment) -> Status {
        RETURN_IF_ERROR(kernel(moment));
        return ++num_steps == 4 ? TurnBit(context, state) : Status(Success{});
      };
    };
  });
  EXPECT_EQ(run.code, ExitCode::InternalFault);
  EXPECT_THAT(run.error, HasSubstr(turned + ": ranks 1 and 3 hold the same elements with different bits, digests "));
  // The comparison after step 4 finds it, before a step spreads it.
  EXPECT_EQ(num_steps, 4);
}

}  // namespace
}  // namespace shardc
