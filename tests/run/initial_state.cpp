// What a start from scratch puts on record, what it counts, and what it refuses to begin with.
#include "runtime/core/initial_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/plan/init_rule.h"

#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "compiler/base/bfloat16.h"
#include "compiler/expr/moments.h"
#include "runtime/core/runner.h"
#include "runtime/init/initial_values.h"
#include "runtime/launch/launch.h"
#include "tests/support/training.h"
#include "tests/support/vector_of.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

/// What each rank came to, and what it drew.
struct Started {
  std::vector<std::string> errors;
  int64_t drawn = 0;
  /// By all ranks, of each parameter.
  std::map<std::string, int64_t> drawn_of;
};

using Wrap = std::function<Kernel(SectionKind, size_t, Kernel)>;

/// Begins or comes back on threads; `wrap_on` says what goes round the kernels of a rank.
auto Start(const Plan& plan, const std::string& run_dir, const std::function<Wrap(int64_t rank)>& wrap_on = {})
    -> Started {
  // Compiled once for all launches, and not once per launch.
  static const auto kernels = SharedInitKernels();
  Started started;
  started.errors.resize(static_cast<size_t>(plan.mesh.num_ranks()));
  std::mutex mutex;
  const auto start = [&](RankContext& context) -> Status {
    if (wrap_on) {
      context.execution.wrap = wrap_on(context.rank);
    }
    auto runner = RankRunner::Create(context);
    if (!runner) {
      return runner.error();
    }
    const auto begun = (*runner)->Begin();
    const std::lock_guard lock(mutex);
    for (const ParameterId id : plan.parameters.ids()) {
      started.drawn += (*runner)->drawn()[id].count;
      started.drawn_of[plan.parameters[id].name] += (*runner)->drawn()[id].count;
    }
    return begun ? Status(Success{}) : Status(begun.error());
  };
  const auto code = LaunchThreads(plan, {.run_dir = run_dir}, [&](RankContext& context) -> ErrorOr<ExitCode> {
    const Status status = start(context);
    if (!status) {
      started.errors[static_cast<size_t>(context.rank)] = status.error().message;
      return status.error();
    }
    return ExitCode::Ok;
  });
  CHECK(code.ok(), "{}", code.error().message);
  return started;
}

const Sets Meshes[] = {{"mesh.dp=1"}, {"mesh.dp=3"}, {"mesh.dp=2", "mesh.tp=2"}, {"mesh.dp=2", "mesh.replicate=2"}};

TEST(InitialState, EveryElementIsDrawnOncePerCopyAndNoneWhenARunComesBack) {
  for (const Sets& mesh : Meshes) {
    SCOPED_TRACE(mesh.back());
    const Training training(mesh);
    const Plan plan = training.Compile({"train.steps=2", "train.eval_every=0"});
    const Started first = Start(plan, training / "threads");
    EXPECT_THAT(first.errors, Each(""));
    int64_t all = 0;
    for (const Parameter& parameter : plan.parameters) {
      const AxisSet parts = AxesSharing(Shared::State) | CutAxes(parameter.placement);
      const int64_t copies = plan.mesh.size(AxisSet::All().Without(parts));
      EXPECT_EQ(first.drawn_of.at(parameter.name), parameter.num_elements() * copies) << parameter.name;
      all += parameter.num_elements() * copies;
    }

    // The programs say so.
    if (plan.mesh.num_ranks() != 4) {
      continue;
    }
    const Sets steps{"train.steps=2", "train.eval_every=0"};
    EXPECT_THAT(training.Run("run", steps).err, HasSubstr(fmt::format(" s to initialise, {} elements drawn\n", all)));
    EXPECT_THAT(training.Run("run", steps).err, HasSubstr(" s to load, 0 elements drawn\n"));
    const Started again = Start(plan, training / "run");
    EXPECT_THAT(again.errors, Each(""));
    EXPECT_EQ(again.drawn, 0);
  }
}

/// Of each parameter, from the elements that one rank begins with.
auto MomentsOfState(const Plan& plan) -> std::map<std::string, Moments> {
  CHECK(plan.mesh.num_ranks() == 1);
  std::map<std::string, Moments> moments;
  const auto code = LaunchThreads(plan, {}, [&](RankContext& context) -> ErrorOr<ExitCode> {
    auto runner = RankRunner::Create(context);
    if (!runner) {
      return runner.error();
    }
    RETURN_IF_ERROR((*runner)->RunSection(SectionKind::Init));
    for (const SubVector& sub_vector : plan.sub_vectors) {
      const View shard = (*runner)->ViewOf(sub_vector.shard);
      for (const Segment& segment : sub_vector.segments) {
        const Parameter& parameter = plan.parameters[segment.parameter];
        const auto element = [&](int64_t i) {
          return static_cast<double>(shard.dtype == DType::BF16 ? Load(shard.At<BFloat16>({})[segment.begin + i])
                                                                : shard.At<float>({})[segment.begin + i]);
        };
        const auto n = static_cast<double>(parameter.num_elements());
        Moments& of_parameter = moments[parameter.name];
        for (int64_t i = 0; i < parameter.num_elements(); ++i) {
          of_parameter.mean += element(i) / n;
        }
        for (int64_t i = 0; i < parameter.num_elements(); ++i) {
          of_parameter.std += std::pow(element(i) - of_parameter.mean, 2) / n;
        }
        of_parameter.std = std::sqrt(of_parameter.std);
      }
    }
    return ExitCode::Ok;
  });
  CHECK(code.ok() && *code == ExitCode::Ok);
  return moments;
}

TEST(InitialState, RealisedMomentsAreThoseOfTheElementsOnAnyMesh) {
  const Training training({"train.steps=1", "train.eval_every=0", "data.eval_tokens=0"});
  std::set<std::string> rotary_tables;
  const auto expect_moments = [&](const std::string& run, const Sets& sets) {
    Sets on_one_rank = sets;
    on_one_rank.insert(on_one_rank.end(), {"mesh.dp=1", "mesh.tp=1", "mesh.replicate=1"});
    const auto expected = MomentsOfState(training.Compile(on_one_rank));
    ASSERT_EQ(training.Run(run, sets).status, 0);
    const auto record = ParseInitRecord(ReadText(training / (run + "/attempts/0001/init.json")));
    ASSERT_TRUE(record.ok()) << record.error().message;
    EXPECT_EQ(DifferenceFrom(*record, training.Compile(sets)), "");
    // The ranks have compared theirs.
    EXPECT_THAT(record->rotary_table, testing::MatchesRegex("[0-9a-f]{32}"));
    rotary_tables.insert(record->rotary_table);
    ASSERT_EQ(record->parameters.size(), expected.size());
    for (const RealisedParameter& parameter : record->parameters) {
      const Moments& moments = expected.at(parameter.name);
      EXPECT_NEAR(parameter.mean, moments.mean, 1e-13) << parameter.name;
      EXPECT_NEAR(parameter.std, moments.std, 1e-13) << parameter.name;
    }
  };
  int number = 0;
  for (const Sets& mesh : Meshes) {
    SCOPED_TRACE(mesh.back());
    expect_moments(fmt::format("run{}", ++number), mesh);
  }
  EXPECT_EQ(rotary_tables.size(), 1U) << "they differ by mesh";
  expect_moments("other", {"mesh.dp=2", "model.rope_theta=20000"});
  EXPECT_EQ(rotary_tables.size(), 2U);
  expect_moments("again", Meshes[3]);
  EXPECT_EQ(ReadText(training / "again/attempts/0001/init.json"), ReadText(training / "run4/attempts/0001/init.json"));
  // As they are kept.
  expect_moments("bf16", {"mesh.dp=3", "precision.master=bf16"});
  EXPECT_NE(ReadText(training / "bf16/attempts/0001/init.json"), ReadText(training / "run2/attempts/0001/init.json"));
}

TEST(InitialState, EachStartFromScratchHasARecordOfItsOwn) {
  const Training training({"train.steps=2", "train.eval_every=0"});
  ASSERT_EQ(training.Run().status, 0);
  const std::string record = ReadText(training / "run/attempts/0001/init.json");
  // Comes back with other rules, which count for nothing then.
  ASSERT_EQ(training.Run("run", {"init.seed=9", "train.steps=4"}).status, 0);
  EXPECT_FALSE(std::filesystem::exists(training / "run/attempts/0002/init.json"));
  std::filesystem::remove_all(training / "run/checkpoints");
  ASSERT_EQ(training.Run("run", {"init.seed=9", "start.run_id=other"}).status, 0);
  EXPECT_THAT(ReadText(training / "run/attempts/0003/init.json"), HasSubstr("\"seed\": 9,"));
  EXPECT_EQ(ReadText(training / "run/attempts/0001/init.json"), record);
}

/// What is drawn, scaled about the mean and moved by so much of the deviation.
struct Fault {
  double scale = 1;
  double move = 0;
};

/// What is said of n elements of a rule with a fault; empty where they pass.
auto Verdict(const std::string& rule, int64_t n, uint64_t seed, const Fault& fault = {}) -> std::string {
  // Compiled once for all elements, and not once per verdict.
  static const auto kernels = SharedInitKernels();
  Plan plan;
  plan.parameters.Add({.name = "w", .shape = {n}, .init = rule});
  const Moments moments = MomentsOf(InitDistribution(plan.parameters[ParameterId{0}]).value());
  std::vector<float> values(static_cast<size_t>(n));
  CHECK(InitialValues(VectorOf(rule, seed, "w"), NoOthers).Fill({0, n}, values.data()).ok(), "{}", rule);
  Drawn drawn{.count = n};
  for (const float value : values) {
    const double off = fault.scale * (value - moments.mean) + fault.move * moments.std;
    drawn.sum += off;
    drawn.squares += off * off;
  }
  DrawnByAll all;
  all.parameters.Add(drawn);
  const auto record = RealisedInit(plan, all);
  return record ? "" : record.error().message;
}

constexpr const char* Rules[] = {"normal(0, 0.02)",
                                 "normal(1, 0.5)",
                                 "uniform(-1, 3)",
                                 "trunc_normal(0, 0.02, -0.04, 0.04)",
                                 "trunc_normal(0, 1, -0.3, 9)",
                                 "trunc_normal(0, 1, 3, 20)",
                                 "0.1"};

TEST(InitialState, WhatChanceDoesIsAllowed) {
  for (const char* rule : Rules) {
    for (const int64_t n : {1, 2, 3, 10, 100, 1000}) {
      for (uint64_t seed = 1; seed <= 300; ++seed) {
        ASSERT_EQ(Verdict(rule, n, seed), "") << rule << ", " << n << " elements, seed " << seed;
      }
    }
    EXPECT_EQ(Verdict(rule, 1'000'000, 1), "") << rule;
  }
}

TEST(InitialState, WhatChanceDoesNotIsAnError) {
  constexpr int64_t N = 1'000'000;
  for (const char* rule : Rules) {
    const bool is_constant = std::string_view(rule) == "0.1";
    if (!is_constant) {
      // 8 standard errors of the mean are 0.8 % of the deviation; of the deviation, 0.4 to 1.2 %.
      EXPECT_THAT(Verdict(rule, N, 1, {.move = 0.01}), HasSubstr("w: the mean of its 1000000 elements is ")) << rule;
      EXPECT_THAT(Verdict(rule, N, 1, {.move = -0.01}), HasSubstr("w: the mean of its ")) << rule;
      EXPECT_THAT(Verdict(rule, N, 1, {.scale = 1.015}),
                  HasSubstr("w: the standard deviation of its 1000000 elements is "))
          << rule;
      EXPECT_THAT(Verdict(rule, N, 1, {.scale = 0.985}), HasSubstr("w: the standard deviation of its ")) << rule;
      EXPECT_THAT(Verdict(rule, N, 1, {.scale = std::nan("")}), HasSubstr("w: the mean of its ")) << rule;
    }
  }
  EXPECT_THAT(Verdict("normal(0, 0.02)", 10, 1, {.move = 10}),
              HasSubstr("of normal(0, 0.02) it is 0, and chance leaves it within ["));
  EXPECT_THAT(Verdict("normal(0, 0.02)", 1000, 1, {.scale = 0}), HasSubstr("w: the standard deviation of its "));
}

/// The init op of a parameter.
auto InitOpOf(const Plan& plan, std::string_view name) -> size_t {
  const std::vector<Op>& ops = plan.section(SectionKind::Init).ops;
  const auto op = std::ranges::find_if(ops, [&](const Op& candidate) {
    const auto* initialize = candidate.As<op::Initialize>();
    return initialize != nullptr && plan.parameters[initialize->parameter].name == name;
  });
  CHECK(op != ops.end(), "{}", name);
  return static_cast<size_t>(op - ops.begin());
}

TEST(InitialState, EachElementIsDrawnOnceOrTheRunDoesNotBegin) {
  const Training training;
  const Plan plan = training.Compile();
  const size_t bad = InitOpOf(plan, "model.norm.weight");
  for (const int times : {0, 2}) {
    const auto wrap_on = [&](int64_t) -> Wrap {
      return [&](SectionKind section, size_t op, Kernel kernel) -> Kernel {
        if (section != SectionKind::Init || op != bad) {
          return kernel;
        }
        return [times, kernel](const Moment& moment) -> Status {
          for (int i = 0; i < times; ++i) {
            RETURN_IF_ERROR(kernel(moment));
          }
          return Success{};
        };
      };
    };
    EXPECT_THAT(Start(plan, training / "run", wrap_on).errors,
                Each(HasSubstr(fmt::format("model.norm.weight: {} elements were drawn, and it has 32", 32 * times))));
  }
}

}  // namespace
}  // namespace shardc
