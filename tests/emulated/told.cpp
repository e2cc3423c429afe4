// What a run on a GPU tells of it: its memory, its utilisation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/emulated/feature.h"
#include "tests/support/emulated/cuda.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using json = nlohmann::json;

auto LogOfRun(const std::string& run_dir) -> std::string { return ReadText(run_dir + "/attempts/0001/log.txt"); }

TEST(EmulatedRun, TellsItsMemoryAndUtilisation) {
  UseEmulatedCuda();
  EmulatedVersions() = {{"card", "NVIDIA H100 80GB HBM3"}};
  const SmallTraining training;
  const Plan plan = training.Compile(OnGpu({"recompute.policy=full"}));
  const int64_t arenas = ReservedBytes(plan).value;
  EmulatedMemory() = DeviceMemory{.total = Bytes{int64_t{80} << 30}, .taken = Bytes{arenas + (int64_t{1} << 30)}};
  const TrainedRun run = TrainInOrder(plan, training / "run");
  EmulatedMemory().reset();
  EmulatedVersions().clear();
  ASSERT_EQ(run.code, ExitCode::Ok) << run.error;
  EXPECT_THAT(
      LogOfRun(training / "run"),
      HasSubstr(fmt::format("memory of the GPU: {} of arenas, as planned; its driver counts {} as taken, of which "
                            "1.00 GiB lie outside of the arenas (952 MiB reckoned with)\n",
                            FormatMemory(Bytes{arenas}), FormatMemory(Bytes{arenas + (int64_t{1} << 30)}))));
  const json memory = json::parse(ReadText(training / "run/attempts/0001/attempt.json"))["gpu_memory"];
  EXPECT_EQ(memory["arenas"], arenas);
  EXPECT_EQ(memory["outside_arenas"], int64_t{1} << 30);
  EXPECT_NEAR(memory["planned_outside_arenas"], 0.93 * (1 << 30), 1);
  std::istringstream lines(ReadText(training / "run/metrics.jsonl"));
  for (std::string text; std::getline(lines, text);) {
    if (const json line = json::parse(text); line.contains("loss")) {
      EXPECT_GT(line["mfu"], 0);
      EXPECT_GT(line["hfu"], line["mfu"]);
    }
  }
}

}  // namespace
}  // namespace shardc
