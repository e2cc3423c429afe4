// shardc run --trace: the file is JSON in Chrome's trace format, no two ops of a stream overlap, the times of a step
// add up to its step_ms, and each op is one of the plan that ran.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/ops/op_facts.h"
#include "compiler/plan/op_place.h"
#include "compiler/verify/read_plan.h"
#include "runtime/core/runner.h"
#include "runtime/launch/launch.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using json = nlohmann::json;

struct Lane {
  int64_t rank = 0;
  int64_t lane = 0;
  friend auto operator<=>(const Lane&, const Lane&) = default;
};

/// `shardc run tiny.toml --run-dir run --trace FILE MORE`.
auto RunTraced(const Training& training, const std::vector<std::string>& more, const Sets& sets = {}) -> Outcome {
  std::vector<std::string> command = training.RunCommand("run", sets);
  command.insert(command.end(), {"--trace", training / "trace.json"});
  command.insert(command.end(), more.begin(), more.end());
  return RunProcess(command);
}

TEST(Trace, AddsUpToTheStepsAndNamesOpsOfThePlan) {
  const Training training({"train.steps=7", "train.eval_every=0", "checkpoint.every=0", "recompute.policy=full",
                           "mesh.tp=2", "mesh.dp=1", "batch.accumulate=2"});
  const Outcome outcome = RunTraced(training, {"--trace-steps", "3..5"}, SlowSteps());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("trace of steps 3 to 5: " + (training / "trace.json") + "\n"));
  const auto trace = json::parse(ReadText(training / "trace.json"));
  const std::string plan_path = training / "run/attempts/0001/plan.shardc";
  const auto plan = ReadRunnablePlan(plan_path, ReadText(plan_path));
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_EQ(trace["otherData"]["run_id"], "tiny");

  std::map<Lane, std::string> names;
  std::map<Lane, std::vector<std::pair<double, double>>> spans;
  // By rank and step: the sum of its ops, and its own time.
  std::map<std::pair<int64_t, int64_t>, double> sums;
  std::map<std::pair<int64_t, int64_t>, double> steps;
  std::set<std::pair<std::string, int64_t>> ops_of_rank_0;
  for (const json& event : trace["traceEvents"]) {
    const Lane lane{event["pid"], event.value("tid", int64_t{-1})};
    if (event["ph"] == "M") {
      if (event["name"] == "thread_name") {
        names[lane] = event["args"]["name"];
      }
      continue;
    }
    ASSERT_EQ(event["ph"], "X");
    const json& args = event["args"];
    const std::pair<int64_t, int64_t> at{lane.rank, args["step"]};
    spans[lane].emplace_back(event["ts"], event["ts"].get<double>() + event["dur"].get<double>());
    ASSERT_TRUE(names.contains(lane)) << event;
    if (names[lane] == "step") {
      steps[at] = event["dur"];
      continue;
    }
    sums[at] += event["dur"].get<double>();
    if (names[lane] == "end of step") {
      EXPECT_FALSE(args.contains("op"));
      continue;
    }
    const auto section = FromText<SectionKind>(args["section"].get<std::string>());
    ASSERT_TRUE(section) << event;
    const auto& ops = plan->section(*section).ops;
    ASSERT_LT(args["op"].get<size_t>(), ops.size());
    const Op& op = ops[args["op"].get<size_t>()];
    EXPECT_EQ(event["name"], ToText(op.kind()));
    EXPECT_EQ(names[lane], ToText(op.stream));
    EXPECT_EQ(args.value("layer", -1), op.layer);
    const auto does = FactsOf(op).work;
    const bool moves_alone = op.kind() == OpKind::ResidualAdd;
    EXPECT_TRUE(args["flops"].get<int64_t>() > 0 ? !moves_alone : does == Work::Other);
    EXPECT_TRUE(args["bytes"].get<int64_t>() > 0 || (does == Work::Other && !moves_alone));
    EXPECT_EQ(args.value("recipe", ""), OriginText(*plan, op.origin));
    if (lane.rank == 0) {
      ops_of_rank_0.emplace(args["section"].get<std::string>(), args["op"].get<int64_t>());
    }
  }
  for (auto& [lane, list] : spans) {
    std::sort(list.begin(), list.end());
    for (size_t i = 1; i < list.size(); ++i) {
      // Times are written to the nanosecond.
      EXPECT_GE(list[i].first + 0.002, list[i - 1].second) << names[lane];
    }
  }
  // One lane of a name per rank.
  std::set<std::pair<int64_t, std::string>> lanes;
  for (const auto& [lane, name] : names) {
    EXPECT_TRUE(lanes.emplace(lane.rank, name).second) << name;
  }
  const Metrics metrics = ReadMetrics(training / "run");
  ASSERT_EQ(metrics.steps.size(), 7U);
  ASSERT_EQ(steps.size(), 6U);
  for (const auto& [at, microseconds] : steps) {
    EXPECT_GE(at.second, 3);
    EXPECT_LE(at.second, 5);
    EXPECT_NEAR(sums[at], microseconds, 0.01 * microseconds);
    if (at.first == 0) {
      const double step_us = metrics.steps[static_cast<size_t>(at.second - 1)].step_ms * 1000;
      EXPECT_NEAR(microseconds, step_us, 0.01 * step_us);
      EXPECT_NEAR(sums[at], step_us, 0.01 * step_us);
    }
  }
  // Each op that computes was there.
  for (size_t i = 0; i < plan->section(SectionKind::Step).ops.size(); ++i) {
    const OpKind kind = plan->section(SectionKind::Step).ops[i].kind();
    if (kind == OpKind::Matmul || kind == OpKind::AllGather || kind == OpKind::Adamw) {
      EXPECT_TRUE(ops_of_rank_0.contains({"step", static_cast<int64_t>(i)})) << i;
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(training.path())) {
    EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("trace.json.")));
  }
}

TEST(Trace, ChangesNoBit) {
  const Training training({"train.steps=8"});
  ASSERT_EQ(training.Run("plain").status, 0);
  ASSERT_EQ(RunTraced(training, {"--trace-steps", "2..3"}).status, 0);
  ExpectSameRun(training / "plain", training / "run");
}

TEST(Trace, OfStepsThatDoNotRunIsAWarning) {
  const Training training({"train.steps=4", "train.eval_every=0"});
  const Outcome outcome = RunTraced(training, {});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("warning: no trace: none of the steps 5 to 8 ran in this launch\n"));
  EXPECT_FALSE(std::filesystem::exists(training / "trace.json"));
  // The run is complete: no step runs at all.
  const Outcome again = RunTraced(training, {"--trace-steps", "1..4"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, testing::AllOf(HasSubstr("complete, 4 of 4 steps"),
                                        HasSubstr("warning: no trace: none of the steps 1 to 4 ran in this launch\n")));
  EXPECT_FALSE(std::filesystem::exists(training / "trace.json"));
}

TEST(Trace, TellsTheStepsThatRan) {
  const Training training({"train.steps=4", "train.eval_every=0"});
  const Outcome outcome = RunTraced(training, {"--trace-steps", "3..9"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("trace of steps 3 to 4, which ran of the steps 3 to 9: "));
  EXPECT_EQ(json::parse(ReadText(training / "trace.json"))["otherData"]["steps"], "3..4");
}

/// The traced events of rank 0, and what was told of the trace.
struct ShortTrace {
  std::vector<json> events;
  json steps;
  std::string told;
};

/// Of the steps 1 to 4, in this process.
auto TraceOfAtMost(size_t most_events) -> ShortTrace {
  const Training training({"train.steps=4", "train.eval_every=0", "checkpoint.every=0"});
  const LaunchOptions options{.run_dir = training / "run",
                              .trace = training / "trace.json",
                              .trace_steps = {1, 4},
                              .most_trace_events = most_events};
  testing::internal::CaptureStderr();
  const auto code = LaunchThreads(training.Compile(), options, RunRank);
  ShortTrace trace{.events = {}, .steps = {}, .told = testing::internal::GetCapturedStderr()};
  EXPECT_TRUE(code.ok() && *code == ExitCode::Ok) << trace.told;
  const auto all = json::parse(ReadText(training / "trace.json"));
  std::ranges::copy_if(all["traceEvents"], std::back_inserter(trace.events),
                       [](const json& event) { return event["ph"] == "X" && event["pid"] == 0; });
  trace.steps = all["otherData"]["steps"];
  return trace;
}

TEST(Trace, ThatIsTooLongIsCutAndSaysSo) {
  const ShortTrace whole = TraceOfAtMost(size_t{1} << 22);
  const size_t num_events = whole.events.size();
  ASSERT_GT(num_events, 40U);
  EXPECT_EQ(whole.steps, "1..4");
  const size_t half = num_events / 2 + 3;
  const ShortTrace cut = TraceOfAtMost(half);
  EXPECT_EQ(cut.events.size(), half);
  EXPECT_EQ(cut.steps, "1..2");
  EXPECT_THAT(cut.told,
              HasSubstr(fmt::format("trace of steps 1 to 2 of 1 to 4, cut after {} events per rank: ", half)));
  const ShortTrace part = TraceOfAtMost(10);
  EXPECT_EQ(part.events.size(), 10U);
  EXPECT_EQ(part.steps, "none");
  EXPECT_THAT(part.told, HasSubstr("trace of a part of step 1, cut after 10 events per rank: "));
}

TEST(Trace, AsksForStepsAndAFolder) {
  const Training training;
  for (const std::string steps : {"0..3", "5..4", "x", "5..", "..", "1..2..3"}) {
    const Outcome outcome = RunTraced(training, {"--trace-steps", steps});
    EXPECT_EQ(outcome.status, 2) << steps;
    EXPECT_THAT(outcome.err,
                HasSubstr("--trace-steps: `" + steps + "` stands where steps from 1 on belong, such as 5..8"));
  }
  std::vector<std::string> command = training.RunCommand();
  command.insert(command.end(), {"--trace-steps", "1..2"});
  EXPECT_THAT(RunProcess(command).err, HasSubstr("and there is no --trace FILE"));
  command = training.RunCommand();
  command.insert(command.end(), {"--trace", training / "no/trace.json"});
  const Outcome outcome = RunProcess(command);
  EXPECT_EQ(outcome.status, 6);
  EXPECT_THAT(outcome.err, HasSubstr("/no does not exist"));
}

}  // namespace
}  // namespace shardc
