// shardc run --trace on an emulated GPU: lanes of streams have the times of its clock, beside those of the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/emulated/feature.h"
#include "tests/support/emulated/cuda.h"
#include "tests/support/warp_order.h"

namespace shardc {
namespace {

using json = nlohmann::json;

TEST(EmulatedTrace, HasTimesOfTheDevice) {
  UseEmulatedCuda();
  emulated::warp_order = emulated::WarpOrder::Ascending;
  const SmallTraining training;
  const Plan plan = training.Compile(OnGpu({"mesh.dp=2", "batch.accumulate=2", "batch.micro=1"}));
  const TrainedRun run = TrainInProcess(plan, training / "run", [&](RankContext& context) {
    context.options.trace = training / "trace.json";
    context.options.trace_steps = {2, 3};
  });
  ASSERT_EQ(run.code, ExitCode::Ok) << run.error;
  const json trace = json::parse(ReadText(training / "trace.json"));
  std::map<int64_t, std::string> names;
  // Section, op, repeat and step of the ops of rank 0, as the host enqueued and as the device ran them.
  std::multiset<std::string> enqueued;
  std::multiset<std::string> ran;
  std::set<std::string> streams;
  // By step: when it begins and how long it is, how long the host took, and when the device began.
  std::map<int64_t, double> begins;
  std::map<int64_t, double> steps;
  std::map<int64_t, double> sums;
  std::map<int64_t, double> device;
  for (const json& event : trace["traceEvents"]) {
    if (event["pid"] != 0) {
      continue;
    }
    if (event["ph"] == "M") {
      if (event["name"] == "thread_name") {
        names[event["tid"]] = event["args"]["name"];
      }
      continue;
    }
    const std::string& lane = names.at(event["tid"]);
    const json& args = event["args"];
    const int64_t step = args["step"];
    if (lane == "step") {
      begins[step] = event["ts"];
      steps[step] = event["dur"];
      continue;
    }
    if (lane == "end of step" || lane == "enqueue") {
      sums[step] += event["dur"].get<double>();
    }
    if (lane == "end of step") {
      continue;
    }
    (lane == "enqueue" ? enqueued : ran).insert(args.dump());
    if (lane != "enqueue") {
      streams.insert(lane);
      // From the mark before the op to that after it.
      EXPECT_NEAR(event["dur"], 1, 0.01);
      device.emplace(step, event["ts"]);
    }
  }
  EXPECT_FALSE(ran.empty());
  EXPECT_EQ(ran, enqueued);
  EXPECT_THAT(streams, testing::IsSupersetOf({"compute", "dp"}));
  ASSERT_EQ(steps.size(), 2U);
  for (const auto& [step, microseconds] : steps) {
    EXPECT_NEAR(sums[step], microseconds, 0.01 * microseconds);
    // On the host's time line, by the clock that started with the step.
    EXPECT_NEAR(device.at(step), begins[step], 1e6) << step;
  }
  EXPECT_LT(device.at(2), begins[3]);
}

TEST(EmulatedTrace, LeavesOutWaitsOfTheHost) {
  UseEmulatedCuda();
  const SmallTraining training;
  const Plan plan = training.Compile(OnGpu({"run.device_checks=true"}));
  const TrainedRun run = TrainInProcess(plan, training / "run", [&](RankContext& context) {
    context.options.trace = training / "trace.json";
    context.options.trace_steps = {2, 2};
  });
  ASSERT_EQ(run.code, ExitCode::Ok) << run.error;
  int64_t num_ops = 0;
  const json trace = json::parse(ReadText(training / "trace.json"));
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X" && event["tid"] < NumStreams) {
      ++num_ops;
      EXPECT_NEAR(event["dur"], 1, 0.01) << event;
    }
  }
  EXPECT_GT(num_ops, 0);
}

TEST(EmulatedTrace, ChangesNoBit) {
  UseEmulatedCuda();
  const SmallTraining training;
  const Plan plan = training.Compile(OnGpu({}));
  ASSERT_EQ(TrainInOtherOrder(plan, training / "plain").code, ExitCode::Ok);
  const TrainedRun run = TrainInProcess(plan, training / "traced", [&](RankContext& context) {
    context.execution.order = 1;
    context.options.trace = training / "trace.json";
    context.options.trace_steps = {1, 3};
  });
  ASSERT_EQ(run.code, ExitCode::Ok) << run.error;
  ExpectSameRun(training / "plain", training / "traced");
}

}  // namespace
}  // namespace shardc
