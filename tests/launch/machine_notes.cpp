#include "runtime/launch/machine_notes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/base/processor.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// Returns a plan of a billion steps, each of which saves a checkpoint of 4 MiB.
auto PlanThatSaves() -> Plan {
  Plan plan;
  plan.run.steps = 1'000'000'000;
  const ParameterId parameter = plan.parameters.Add({.name = "weight", .shape = {1 << 20}, .dtype = DType::F32});
  plan.sub_vectors.Add({.trainable = false, .segments = {{.parameter = parameter}}});
  plan.triggers = {{SectionKind::Save, TriggerKind::EverySteps, 1}, {SectionKind::Save, TriggerKind::End, 0}};
  return plan;
}

TEST(MachineNotes, RanksShareCores) {
  const TemporaryFolder folder;
  EXPECT_EQ(MachineNotes(Plan(), NumCores(), folder / "run"), "");
  EXPECT_THAT(MachineNotes(Plan(), NumCores() + 62, folder / "run"),
              StartsWith(fmt::format("note: {} ranks share {} core", NumCores() + 62, NumCores())));
}

TEST(MachineNotes, CheckpointsNeedSpace) {
  const TemporaryFolder folder;
  Plan plan = PlanThatSaves();
  const auto notes = [&] { return MachineNotes(plan, 1, folder / "run"); };
  plan.run.checkpoint_keep = 2;
  EXPECT_EQ(notes(), "");
  plan.run.keep_every = 2;
  EXPECT_THAT(notes(), StartsWith("note: the run will keep 500,000,002 checkpoints of 4.00 MiB, and "));
  plan.run.checkpoint_keep = 0;
  EXPECT_THAT(notes(), StartsWith("note: the run will keep 1,000,000,000 checkpoints of 4.00 MiB, and "));
  EXPECT_THAT(notes(), HasSubstr(" free; set checkpoint.keep or checkpoint.dir\n"));
  plan.triggers.erase(plan.triggers.begin());
  EXPECT_EQ(notes(), "");
}

}  // namespace
}  // namespace shardc
