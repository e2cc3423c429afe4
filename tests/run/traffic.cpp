// What ranks send is what the plan says, counted by the communicator: the run compares at its end, and finds a
// communicator, or a plan, that lies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/core/compare_traffic.h"
#include "runtime/core/runner.h"
#include "runtime/launch/launch.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::HasSubstr;

/// Bytes on the wire of one rank in a step, as explain has them.
auto ExplainedBytes(const Training& training, const Sets& sets) -> int64_t {
  std::vector<std::string> arguments{"--explain", "--format", "json"};
  for (const std::string& set : sets) {
    arguments.insert(arguments.end(), {"--set", set});
  }
  const Outcome outcome = RunProcess(training.Command("plan", arguments));
  int64_t bytes = 0;
  const auto report = nlohmann::json::parse(outcome.out);
  for (const auto& row : report.at("communication")) {
    bytes += row.at("wire_bytes").get<int64_t>();
  }
  return bytes;
}

/// Bytes of all rows.
auto WireOf(TrafficTable traffic) -> int64_t {
  int64_t wire = 0;
  for (size_t kind = 0; kind < CountOf<CollectiveKind>(); ++kind) {
    for (uint8_t bits = 0; bits < NumAxisSets; ++bits) {
      wire += traffic.At(static_cast<CollectiveKind>(kind), AxisSet{bits}).wire;
    }
  }
  return wire;
}

/// Trains with ranks as threads; what each ended with, empty where it ended well. `prepare` is given each runner.
auto Train(const Plan& plan, const std::string& run_dir, const std::function<void(RankContext&, RankRunner&)>& prepare,
           const std::function<Status(RankContext&)>& after) -> std::vector<std::string> {
  std::vector<std::string> errors(static_cast<size_t>(plan.mesh.num_ranks()));
  const auto code = LaunchThreads(plan, {.run_dir = run_dir}, [&](RankContext& context) -> ErrorOr<ExitCode> {
    auto runner = RankRunner::Create(context);
    if (!runner) {
      return runner.error();
    }
    prepare(context, **runner);
    auto result = (*runner)->Train();
    if (result) {
      if (const Status status = after(context); !status) {
        result = status.error();
      }
    }
    if (!result) {
      EXPECT_EQ(result.error().code, ExitCode::InternalFault);
      errors[static_cast<size_t>(context.rank)] = result.error().message;
    }
    return result;
  });
  CHECK(code.ok(), "{}", code.error().message);
  return errors;
}

TEST(Traffic, IsAsPlannedOnEveryMesh) {
  const Training training({"data.eval_tokens=0", "train.eval_every=0", "checkpoint.every=0"});
  for (const Sets& sets : std::vector<Sets>{
           {"mesh.dp=1"},
           {},
           {"mesh.dp=3", "batch.global=12", "batch.micro=2"},
           {"mesh.tp=2", "precision.compute=\"bf16\"", "recompute.policy=\"full\""},
           {"mesh.replicate=2", "batch.micro=1"},
           {"mesh.replicate=3", "mesh.dp=1", "batch.micro=2", "batch.reduce=\"last\""},
           {"mesh.dp=4", "shard.reshard_size=2", "batch.micro=3"},
           {"shard.gather_into=\"host\""},
       }) {
    SCOPED_TRACE(testing::PrintToString(sets));
    std::array<int64_t, 2> sent{};
    for (const int64_t steps : {2, 5}) {
      Sets all = sets;
      all.push_back(fmt::format("train.steps={}", steps));
      const std::string run_dir = training / fmt::format("run-{}-{}", steps, ContentsOf(training.path()).size());
      int64_t& bytes = sent[steps == 5 ? 1 : 0];
      const auto errors = Train(
          training.Compile(all), run_dir, [](RankContext&, RankRunner&) {},
          [&bytes](RankContext& context) -> Status {
            bytes += context.rank == 0 ? WireOf(context.comm->traffic()) : 0;
            return Success{};
          });
      EXPECT_THAT(errors, testing::Each(""));
    }
    // Explain has the mean over ranks; slices of a vector that 3 does not divide differ by cache lines, 4 vectors a
    // step.
    const int64_t by_slices = !sets.empty() && sets.front() == "mesh.replicate=3" ? 3 * 4 * 3 * 64 : 0;
    EXPECT_LE(std::abs(sent[1] - sent[0] - 3 * ExplainedBytes(training, sets)), by_slices);
    EXPECT_EQ(sent[1] > 0, sets != Sets{"mesh.dp=1"});
  }
}

TEST(Traffic, IsAsPlannedWithEvaluationsSavesAndARestart) {
  const Training training({"train.eval_every=2", "checkpoint.every=3"});
  for (const char* steps : {"train.steps=4", "train.steps=9"}) {
    const Outcome outcome = training.Run("run", {steps});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_THAT(outcome.err, testing::ContainsRegex("\nrank 0 sent [0-9.]+ [KM]iB in [0-9]+ collectives, as planned "
                                                    "\\(payload [0-9.]+ [KM]iB\\), and [0-9.]+ K?i?B in [0-9]+ "
                                                    "control messages\n"));
  }
}

TEST(Traffic, ACommunicatorThatSendsMoreIsFound) {
  const Training training;
  const Plan plan = training.Compile({"train.steps=3", "train.eval_every=0", "data.eval_tokens=0"});
  int64_t sums = 0;
  const auto errors = Train(
      plan, training / "run",
      [](RankContext& context, RankRunner& runner) {
        runner.after_data() = [&context] {
          double value = 1;
          const CommSpan span{.data = reinterpret_cast<std::byte*>(&value), .bytes = sizeof(value)};
          CHECK(context.comm->AllReduce(context.device->queue(Stream::Dp), AxisSet::Of(Axis::Dp), span, {}, DType::F64)
                    .ok());
        };
      },
      [](RankContext&) -> Status { return Success{}; });
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    sums += op.As<op::AllReduce>() != nullptr ? 1 : 0;
  }
  ASSERT_GT(sums, 0);
  const int64_t planned = 3 * sums;
  for (const std::string& error : errors) {
    EXPECT_EQ(error,
              fmt::format("what was sent is not what the plan says, all_reduce over dp: the communicator "
                          "counted {} calls of {} B, {} B on the wire of all ranks, 0 B of it between hosts; the plan "
                          "has {} calls of {} "
                          "B, {} B on the wire of all ranks, 0 B of it between hosts; this is a bug in shardc",
                          planned + 3, 8 * (planned + 3), 16 * (planned + 3), planned, 8 * planned, 16 * planned));
  }
}

TEST(Traffic, APlanThatSaysLessIsFound) {
  const Training training;
  const Plan plan = training.Compile({"train.steps=3", "train.eval_every=0"});
  SectionRuns fewer{};
  fewer[static_cast<size_t>(SectionKind::Step)] = 2;
  const auto errors = Train(
      plan, training / "run", [](RankContext&, RankRunner&) {},
      [&](RankContext& context) -> Status {
        const auto compared = CompareTraffic(*context.comm, *context.control, PlannedTraffic(plan, fewer));
        return compared ? Status(Success{}) : Status(compared.error());
      });
  for (const std::string& error : errors) {
    EXPECT_THAT(error, HasSubstr("all_gather over dp: the communicator counted"));
  }
}

}  // namespace
}  // namespace shardc
