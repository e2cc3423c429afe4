// What a run on a GPU tells of it: its memory, its utilisation, and limits of its clocks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/emulated/feature.h"
#include "tests/support/emulated/cuda.h"
#include "tests/support/nvml_double.h"

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

TEST(EmulatedRun, TellsLimitsOfClocksOnce) {
  UseEmulatedCuda();
  const SmallTraining training;
  const Plan plan = training.Compile(OnGpu({"mesh.dp=2", "train.log_every=1"}));
  NvmlDouble nvml({PlayedGpu{.clock_reasons = NvmlApi::SwPowerCap | NvmlApi::HwThermalSlowdown}});
  const TrainedRun run = TrainInOrder(plan, training / "run");
  ASSERT_EQ(run.code, ExitCode::Ok) << run.error;
  const std::string log = LogOfRun(training / "run");
  const auto count = [&](std::string_view text) {
    int64_t found = 0;
    for (size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("the GPU of rank 0 lowers its clocks: it is at its power limit (700 W)\n"), 1);
  EXPECT_EQ(count("at its power limit"), 1);
  EXPECT_EQ(count("warning: the GPU of rank 0 lowers its clocks: it is too hot\n"), 1);
  EXPECT_EQ(count("warning: the GPU of rank 1 lowers its clocks: it is too hot\n"), 1);
  EXPECT_EQ(count("lowers its clocks"), 3);
}

}  // namespace
}  // namespace shardc
