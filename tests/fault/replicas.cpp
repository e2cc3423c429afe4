// Ranks that are to hold the same and do not: found before the first step, every so many steps and before a save, by
// all ranks alike, which then end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "compiler/plan/local_parameter.h"
#include "runtime/core/runner.h"
#include "runtime/init/initial_values.h"
#include "runtime/launch/launch.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ContainsRegex;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

/// One bit of what one rank holds of a parameter, turned over after the last op of a section.
struct Flip {
  int64_t rank = 0;
  std::string parameter;
  StateRole role = StateRole::Parameter;
  SectionKind section = SectionKind::Init;
};

/// False where the rank owns no element of it.
auto TurnOver(const Flip& flip, const Plan& plan, RankContext& context) -> bool {
  for (const SubVector& sub_vector : plan.sub_vectors) {
    for (const Segment& segment : sub_vector.segments) {
      const Interval owned = OwnedElementsOf(plan, sub_vector, segment, context.rank);
      if (plan.parameters[segment.parameter].name != flip.parameter || owned.empty()) {
        continue;
      }
      const Value& value = plan.values[StateOf(sub_vector, flip.role)];
      const Buffer& buffer = plan.buffers[value.buffer];
      const int64_t slice_begin = OwnedSlice(sub_vector, plan.mesh, context.rank).begin;
      std::byte* const last = context.device->Base(buffer.arena) + buffer.offset + value.offset.base +
                              (owned.end - slice_begin) * SizeOf(value.dtype) - SizeOf(value.dtype);
      // Not the last bit: an update may round it away.
      *last ^= std::byte{4};
      return true;
    }
  }
  return false;
}

auto Inject(const Flip& flip, RankContext& context) -> void {
  if (context.rank != flip.rank) {
    return;
  }
  const Plan& plan = *context.plan;
  const size_t last_op = plan.section(flip.section).ops.size() - 1;
  context.execution.wrap = [=, &plan, &context](SectionKind section, size_t op, Kernel kernel) -> Kernel {
    if (section != flip.section || op != last_op) {
      return kernel;
    }
    return [=, &plan, &context](const Moment& moment) -> Status {
      RETURN_IF_ERROR(kernel(moment));
      CHECK(TurnOver(flip, plan, context), "rank {} owns nothing of {}", context.rank, flip.parameter);
      return Success{};
    };
  };
}

/// What each rank says that begins or comes back.
auto ErrorsOf(const Plan& plan, const std::string& run_dir, const std::optional<Flip>& flip)
    -> std::vector<std::string> {
  // Compiled once for all launches, and not once per launch.
  static const auto kernels = SharedInitKernels();
  std::vector<std::string> errors(static_cast<size_t>(plan.mesh.num_ranks()));
  const auto code = LaunchThreads(plan, {.run_dir = run_dir}, [&](RankContext& context) -> ErrorOr<ExitCode> {
    if (flip) {
      Inject(*flip, context);
    }
    auto runner = RankRunner::Create(context);
    const auto begun = runner ? (*runner)->Begin() : runner.error();
    if (begun) {
      return ExitCode::Ok;
    }
    errors[static_cast<size_t>(context.rank)] = begun.error().message;
    return begun.error();
  });
  CHECK(code.ok(), "{}", code.error().message);
  EXPECT_EQ(*code, errors[0].empty() ? ExitCode::Ok : ExitCode::InternalFault);
  return errors;
}

auto Names(std::string_view what, int64_t a, int64_t b) -> testing::Matcher<const std::string&> {
  return AllOf(HasSubstr(fmt::format("{}: ranks {} and {} hold the same elements with different bits, ", what, a, b)),
               ContainsRegex("digests [0-9a-f]{32} and [0-9a-f]{32}"));
}

constexpr const char* Matrix = "model.layers.1.mlp.down_proj.weight";
// Of two ranks of dp the first one owns this, and the second one the matrix above.
constexpr const char* FirstMatrix = "model.layers.1.self_attn.q_proj.weight";
constexpr const char* Norm = "model.layers.0.input_layernorm.weight";

TEST(Replicas, DifferencesAreFoundBeforeTheFirstStep) {
  const Training training({"mesh.dp=2", "mesh.replicate=2"});
  const Plan plan = training.Compile();
  EXPECT_THAT(ErrorsOf(plan, training / "none", {}), Each(""));
  // Ranks are numbered replicate first: 0 and 2 hold the same, and 1 and 3.
  EXPECT_THAT(ErrorsOf(plan, training / "none", Flip{.rank = 2, .parameter = FirstMatrix}),
              Each(Names(FirstMatrix, 0, 2)));
  EXPECT_THAT(ErrorsOf(plan, training / "none", Flip{.rank = 1, .parameter = Matrix}), Each(Names(Matrix, 1, 3)));
}

TEST(Replicas, WhatEachRankOfTpHasWholeIsCompared) {
  const Training training({"mesh.dp=1", "mesh.tp=2"});
  const Plan plan = training.Compile();
  EXPECT_THAT(ErrorsOf(plan, training / "none", Flip{.rank = 1, .parameter = Norm}), Each(Names(Norm, 0, 1)));
  // What is cut over tp has no other copy.
  EXPECT_THAT(ErrorsOf(plan, training / "none", Flip{.rank = 1, .parameter = Matrix}), Each(""));
  const Plan with_copies = training.Compile({"mesh.replicate=2"});
  EXPECT_THAT(ErrorsOf(with_copies, training / "none", Flip{.rank = 3, .parameter = Norm}), Each(Names(Norm, 0, 3)));
  EXPECT_THAT(ErrorsOf(with_copies, training / "none", Flip{.rank = 3, .parameter = Matrix}),
              Each(Names(Matrix, 1, 3)));
}

/// Runs with either optimizer, and all that they keep of a parameter.
struct KeptState {
  Sets sets;
  std::vector<StateRole> roles;
};
const std::vector<KeptState> KeptStates{
    {{}, {StateRole::Parameter, StateRole::ExpAvg, StateRole::ExpAvgSq}},
    {{"optimizer.name=sgd", "optimizer.momentum=0.9"}, {StateRole::Parameter, StateRole::MomentumBuffer}},
};

TEST(Replicas, DifferencesAreFoundWhenARunComesBack) {
  for (const auto& [sets, roles] : KeptStates) {
    const Training training({"mesh.dp=1", "mesh.replicate=2", "train.steps=2", "train.eval_every=0"});
    ASSERT_EQ(training.Run("run", sets).status, 0);
    const Plan plan = training.Compile(sets);
    EXPECT_THAT(ErrorsOf(plan, training / "run", {}), Each(""));
    for (const StateRole role : roles) {
      EXPECT_THAT(ErrorsOf(plan, training / "run",
                           Flip{.rank = 1, .parameter = Matrix, .role = role, .section = SectionKind::Restore}),
                  Each(Names(StateName(Matrix, role), 0, 1)));
    }
  }
}

// As processes: each ends, the error is told once, and nothing is put on record.
TEST(Replicas, EveryProcessEnds) {
  const Training training({"mesh.dp=2", "mesh.replicate=2"});
  const Plan plan = training.Compile();
  testing::internal::CaptureStderr();
  const auto code = LaunchLocal(plan, {.run_dir = training / "run"}, [](RankContext& context) {
    Inject({.rank = 3, .parameter = Matrix}, context);
    return RunRank(context);
  });
  const std::string err = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(*code, ExitCode::InternalFault);
  EXPECT_THAT(err, AllOf(Names(Matrix, 1, 3), Not(HasSubstr("was killed")), Not(HasSubstr("has not ended"))));
  EXPECT_EQ(err.find("different bits"), err.rfind("different bits")) << err;
  EXPECT_FALSE(std::filesystem::exists(training / "run/metrics.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(training / "run/attempts/0001/init.json"));
}

/// Turns a bit over on rank `flip.rank` after the last op of the step that ends as number `step`.
auto InjectAtStep(const Flip& flip, int64_t step, RankContext& context) -> void {
  if (context.rank != flip.rank) {
    return;
  }
  const Plan& plan = *context.plan;
  const size_t last_op = plan.section(SectionKind::Step).ops.size() - 1;
  context.execution.wrap = [=, &plan, &context](SectionKind section, size_t op, Kernel kernel) -> Kernel {
    if (section != SectionKind::Step || op != last_op) {
      return kernel;
    }
    return [=, &plan, &context](const Moment& moment) -> Status {
      RETURN_IF_ERROR(kernel(moment));
      CHECK(moment.step != step - 1 || TurnOver(flip, plan, context), "rank {} owns nothing", context.rank);
      return Success{};
    };
  };
}

struct Found {
  std::string err;
  std::vector<std::string> checkpoints;
  int64_t last_step = 0;
};

/// What comes of a run in which a bit is turned over at the end of step 3.
auto RunWithFlip(const Training& training, const Flip& flip, const std::string& run, const Sets& sets) -> Found {
  // Compiled once for all launches, and not once per launch.
  static const auto kernels = SharedInitKernels();
  const Plan plan = training.Compile(sets);
  testing::internal::CaptureStderr();
  const auto code = LaunchLocal(plan, {.run_dir = training / run}, [&](RankContext& context) {
    InjectAtStep(flip, 3, context);
    return RunRank(context);
  });
  Found found{.err = testing::internal::GetCapturedStderr(),
              .checkpoints = CheckpointsOf(training / run),
              .last_step = ReadMetrics(training / run).last_step()};
  EXPECT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(code ? *code : ExitCode::Ok,
            found.err.find("different bits") == std::string::npos ? ExitCode::Ok : ExitCode::InternalFault)
      << found.err;
  return found;
}

TEST(Replicas, ABitThatTurnsInTrainingIsFoundAtTheNextComparison) {
  const Training training({"mesh.dp=1", "mesh.replicate=2", "train.steps=8", "train.eval_every=0"});
  for (const auto& [sets, roles] : KeptStates) {
    Sets all = sets;
    all.insert(all.end(), {"run.compare_every=5", "checkpoint.every=2"});
    for (const StateRole role : roles) {
      const Flip flip{.rank = 1, .parameter = Matrix, .role = role};
      const std::string run = fmt::format("{}{}", sets.empty() ? "adamw" : "sgd", static_cast<int>(role));
      const Found found = RunWithFlip(training, flip, run, all);
      // (A save of step 4 comes before the comparison of step 5, and is preceded by one of its own.)
      // The update of step 4 may have taken what differs in the state to the parameter, which is compared first.
      EXPECT_THAT(found.err, AllOf(AnyOf(Names(StateName(Matrix, role), 0, 1), Names(Matrix, 0, 1)),
                                   HasSubstr("after step 4: "), Not(HasSubstr("was killed"))));
      EXPECT_THAT(found.err, HasSubstr("the run continues from " + (training / (run + "/checkpoints/step-00000002"))));
      EXPECT_THAT(found.checkpoints, testing::ElementsAre("step-00000002"));
    }
  }
  const Flip flip{.rank = 1, .parameter = Matrix};
  const Found every = RunWithFlip(training, flip, "alone", {"run.compare_every=5", "checkpoint.every=0"});
  EXPECT_THAT(every.err, AllOf(Names(Matrix, 0, 1), HasSubstr("after step 5: "),
                               HasSubstr("the run continues from its beginning, as it has no checkpoint")));
  EXPECT_EQ(every.last_step, 5);
  EXPECT_THAT(every.checkpoints, testing::IsEmpty());
}

TEST(Replicas, ASaveIsComparedFirst) {
  const Training training({"mesh.dp=1", "mesh.tp=2", "train.steps=6", "train.eval_every=0"});
  // The save at the end is the first; comparisons of their own would come later.
  const Found found = RunWithFlip(training, Flip{.rank = 1, .parameter = Norm}, "save",
                                  {"run.compare_every=1000", "checkpoint.every=0"});
  EXPECT_THAT(found.err, AllOf(Names(Norm, 0, 1), HasSubstr("after step 6: ")));
  EXPECT_THAT(found.checkpoints, testing::IsEmpty());
  // Without comparisons the run continues and saves what the first copy holds.
  const Found none =
      RunWithFlip(training, Flip{.rank = 1, .parameter = Norm}, "none", {"run.compare_every=0", "checkpoint.every=0"});
  EXPECT_THAT(none.err, Not(HasSubstr("different bits")));
  EXPECT_THAT(none.checkpoints, testing::ElementsAre("step-00000006"));
}

/// Turns over a bit of the rotary table of one rank.
TEST(Replicas, RotaryTablesAreCompared) {
  const Training training({"mesh.dp=2"});
  const Plan plan = training.Compile();
  const auto& ops = plan.section(SectionKind::Constants).ops;
  const auto rope = std::ranges::find_if(ops, [](const Op& op) { return op.As<op::RopeTable>() != nullptr; });
  ASSERT_NE(rope, ops.end());
  const ValueId table = rope->As<op::RopeTable>()->table;
  const auto index = static_cast<size_t>(rope - ops.begin());
  testing::internal::CaptureStderr();
  const auto code = LaunchLocal(plan, {.run_dir = training / "run"}, [&](RankContext& context) {
    if (context.rank == 1) {
      context.execution.wrap = [&, index](SectionKind section, size_t op, Kernel kernel) -> Kernel {
        if (section != SectionKind::Constants || op != index) {
          return kernel;
        }
        return [&, kernel](const Moment& moment) -> Status {
          RETURN_IF_ERROR(kernel(moment));
          const Value& value = plan.values[table];
          const Buffer& buffer = plan.buffers[value.buffer];
          context.device->Base(buffer.arena)[buffer.offset + value.offset.base] ^= std::byte{1};
          return Success{};
        };
      };
    }
    return RunRank(context);
  });
  const std::string err = testing::internal::GetCapturedStderr();
  EXPECT_EQ(code ? *code : ExitCode::Ok, ExitCode::InternalFault);
  EXPECT_THAT(err, ContainsRegex("ranks 0 and 1 have different rotary tables, XXH3-128 [0-9a-f]{32} and [0-9a-f]{32}"));
  EXPECT_FALSE(std::filesystem::exists(training / "run/attempts/0001/init.json"));
}

TEST(Replicas, RealRunsAgree) {
  const Training training({"mesh.dp=2", "mesh.replicate=2", "train.steps=2", "train.eval_every=0"});
  const Outcome first = training.Run();
  EXPECT_EQ(first.status, 0) << first.err;
  const Outcome again = training.Run("run", {"train.steps=4"});
  EXPECT_EQ(again.status, 0) << again.err;
  const Outcome eval = training.Eval(training / "run/checkpoints/step-00000004");
  EXPECT_EQ(eval.status, 0) << eval.err;
}

}  // namespace
}  // namespace shardc
