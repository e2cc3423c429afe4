// A device that does nothing more, or may never come to an end: which op it had, and that what libraries have there is
// left as it is.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/support/counting_device.h"
#include "tests/support/in_process.h"
#include "tests/support/sanitized.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

/// Runs a step on a device that is lost in it or not. Returns true if the kernels were ended with the run.
auto EndsKernels(const Plan& plan, bool is_lost) -> bool {
  std::optional<CountingDevice> device;
  std::weak_ptr<int> in_kernels;
  const InProcessRun run = RunInProcess(plan, 1, [&](RankContext& context) {
    device.emplace(context.device);
    device->is_lost_now = is_lost;
    context.device = &*device;
    const auto held = std::make_shared<int>();
    in_kernels = held;
    context.execution.wrap = [held](SectionKind, size_t, Kernel kernel) -> Kernel {
      return [held, kernel = std::move(kernel)](const Moment& moment) { return kernel(moment); };
    };
  });
  CHECK(run.code == ExitCode::Ok, "{}", run.errors[0]);
  return in_kernels.expired();
}

TEST(LostDevice, TurnIsNamedAsInPlan) {
  const Training training({"mesh.dp=1"});
  const Plan plan = training.Compile();
  std::optional<CountingDevice> device;
  std::string expected;
  std::string named;
  const InProcessRun run = RunInProcess(plan, 1, [&](RankContext& context) {
    device.emplace(context.device);
    context.device = &*device;
    context.execution.wrap = [&](SectionKind section, size_t index, Kernel kernel) -> Kernel {
      return [&, name = fmt::format("op {} {}", index, ToText(plan.section(section).ops[index].kind())),
              kernel = std::move(kernel)](const Moment& moment) {
        expected += name + "\n";
        named += device->last_turn + "\n";
        return kernel(moment);
      };
    };
  });
  EXPECT_EQ(run.code, ExitCode::Ok);
  EXPECT_EQ(named, expected);
  EXPECT_NE(named, "");
}

TEST(LostDevice, KernelsAreLeft) {
  if (IsSanitized) {
    GTEST_SKIP() << "what is left is a leak";
  }
  const Training training({"mesh.dp=1"});
  const Plan plan = training.Compile();
  EXPECT_TRUE(EndsKernels(plan, false));
  EXPECT_FALSE(EndsKernels(plan, true));
}

}  // namespace
}  // namespace shardc
