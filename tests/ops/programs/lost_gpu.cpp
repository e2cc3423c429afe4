// A GPU that meets an error, or does not come to an end: the rank says so, with the ops between which it happened, and
// its process ends. Each test breaks the GPU for its process, so it has one of its own.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "runtime/control/host_control.h"
#include "runtime/core/program.h"

namespace shardc {
namespace {

constexpr int NumFills = 200;
constexpr int WildFill = 150;

/// Returns a plan whose step fills a value of so many bytes again and again.
auto PlanOfFills(int64_t bytes) -> Plan {
  Plan plan;
  plan.device = Device::CudaSm90;
  plan.arena_bytes[static_cast<size_t>(Arena::Transient)] = bytes;
  const BufferId buffer = plan.buffers.Add({.name = "filled", .bytes = Bytes{bytes}, .offset = 0});
  const ValueId value =
      plan.values.Add({.buffer = buffer, .offset = {}, .dtype = DType::F32, .shape = {bytes / SizeOf(DType::F32)}});
  for (int i = 0; i < NumFills; ++i) {
    plan.section(SectionKind::Step).ops.push_back({.body = op::Fill{.out = value, .value = 1}});
  }
  return plan;
}

/// Returns such a plan of which one op writes where there is no memory.
auto WildPlan() -> Plan {
  Plan plan = PlanOfFills(4096);
  const BufferId nowhere = plan.buffers.Add({.name = "nowhere", .bytes = Bytes{4096}, .offset = int64_t{1} << 40U});
  const ValueId value = plan.values.Add({.buffer = nowhere, .offset = {}, .dtype = DType::F32, .shape = {1024}});
  plan.section(SectionKind::Step).ops[WildFill].body = op::Fill{.out = value, .value = 1};
  return plan;
}

/// Runs the step, prints its error and ends the process with the code of it, as a rank does.
[[noreturn]] auto RunToTheEnd(const Plan& plan, Seconds timeout) -> void {
  Status ran = Success{};
  {
    auto block = *ControlBlock::Create({.mesh = plan.mesh, .members = ControlBlock::Members::Threads});
    block->Join(0);
    HostControl control(std::make_shared<HostMember>(*block, 0));
    const auto arenas = *SharedArenas::Create({}, {0, 1});
    const auto device = *MakeDevice(plan, {.arenas = &arenas, .timeout = timeout});
    ScalarTable scalars(0);
    RankServices services;
    services.control = &control;
    services.scalars = &scalars;
    RankBinder binder(&plan, 0, device.get(), &services);
    const Execution execution;
    ran = Program(SectionKind::Step, binder, execution).Run(3);
  }
  std::fputs((ran ? "no error" : ran.error().message).c_str(), stderr);
  _exit(ran ? 0 : static_cast<int>(ran.error().code));
}

class LostGpu : public testing::Test {
 protected:
  LostGpu() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }

  static constexpr int Code = static_cast<int>(ExitCode::Environment);
};

TEST_F(LostGpu, ErrorIsBetweenOps) {
  EXPECT_EXIT(RunToTheEnd(WildPlan(), Seconds{60}), testing::ExitedWithCode(Code),
              "the GPU: an illegal memory access was encountered \\(cudaErrorIllegalAddress, 700\\), between .* and op "
              "[0-9]+ fill of section step, step 3; run.device_checks = true finds the op");
}

TEST_F(LostGpu, CheckOfEachOpFindsError) {
  Plan plan = WildPlan();
  plan.run.device_checks = true;
  EXPECT_EXIT(RunToTheEnd(plan, Seconds{60}), testing::ExitedWithCode(Code),
              "step 3 section step op 150 fill: the GPU: an illegal memory access was encountered "
              "\\(cudaErrorIllegalAddress, 700\\)$");
}

// 64 ops take a seventh of a second at least.
TEST_F(LostGpu, GpuThatGetsNoFurtherIsLeft) {
  EXPECT_EXIT(RunToTheEnd(PlanOfFills(int64_t{8} << 30U), Seconds{0.06}), testing::ExitedWithCode(Code),
              "the GPU did not get beyond the beginning of section step, step 3 in 0.06 s");
}

}  // namespace
}  // namespace shardc
