// State that is not finite, in the memory of an emulated GPU: the device looks, and the host names the element.
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/core/check_state.h"
#include "runtime/core/runner.h"
#include "runtime/launch/launch.h"
#include "tests/support/emulated/cuda.h"
#include "tests/support/training.h"

namespace shardc {

TEST(EmulatedGpu, FindsStateThatIsNotFinite) {
  UseEmulatedCuda();
  const Training training({"mesh.dp=1"});
  const Plan plan = training.Compile({"run.device=\"cuda-sm90\"", "precision.compute=\"bf16\""});
  const auto code = LaunchThreads(plan, {}, [&](RankContext& context) -> ErrorOr<ExitCode> {
    auto runner = RankRunner::Create(context);
    if (!runner) {
      return runner.error();
    }
    RETURN_IF_ERROR((*runner)->RunSection(SectionKind::Init));
    Binder& binder = (*runner)->binder();
    const SubVector& sub_vector = plan.sub_vectors[SubVectorId{1}];
    for (const ValueId vector : {sub_vector.shard, sub_vector.compute_copy}) {
      const auto before = FindBadState(binder, StateRoles);
      EXPECT_TRUE(before.ok() && !before->has_value());
      const View view = binder.ViewOf(vector);
      const int64_t size = SizeOf(view.dtype);
      std::byte* const last = view.base + (sub_vector.segments.front().end - 1) * size;
      HostScratch scratch;
      Queue& queue = binder.device().queue(Stream::Compute);
      for (const auto bits : {std::byte{0xFF}, std::byte{0}}) {
        std::fill_n(queue.BeginWrite(last, size, scratch), size, bits);
        RETURN_IF_ERROR(queue.EndWrite(last, size, scratch));
        const auto bad = FindBadState(binder, StateRoles);
        EXPECT_EQ(bad->has_value(), bits == std::byte{0xFF});
        EXPECT_TRUE(!bad->has_value() || (*bad)->is_copy == (vector == sub_vector.compute_copy));
      }
    }
    return ExitCode::Ok;
  });
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(*code, ExitCode::Ok);
}

}  // namespace shardc
