// An oracle for the verifier. Random changes of the meaning of seven plans: each is refused, or it trains, evaluates,
// saves and comes back with the bits of the plan as it was compiled, in a random legal order and under the guard, or it
// is of a kind that a person is free to choose.
//
// SHARDC_MUTANTS=N tries N changes instead of 200; what they came to is printed by kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compiler/verify/verify.h"
#include "runtime/init/initial_values.h"
#include "runtime/launch/launch.h"
#include "tests/run/plan_change.h"
#include "tests/support/in_process.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

struct MutatedPlan {
  const char* name;
  Sets sets;
};

/// Sizes that are alike where they can be, so that shapes tell little.
const Sets Common{"model.ffn=32",      "run.guard=true",     "train.steps=3",          "checkpoint.every=2",
                  "checkpoint.keep=0", "train.eval_every=2", "train.on_nonfinite=skip"};
const std::vector<MutatedPlan> Origins{
    {"dp 2", {"mesh.dp=2"}},
    {"dp 2 x tp 2, bf16", {"mesh.dp=2", "mesh.tp=2", "precision.compute=bf16"}},
    {"replicate 2 x dp 2, accumulate 3", {"mesh.replicate=2", "mesh.dp=2", "batch.accumulate=3"}},
    {"dp 4 in groups of 2",
     {"mesh.dp=4", "shard.reshard_size=2", "shard.reshard_after_forward=true", "shard.prefetch_backward=1"}},
    {"dp 2, recomputed, accumulate 2", {"mesh.dp=2", "recompute.policy=full", "batch.accumulate=2"}},
    {"dp 2, SGD",
     {"mesh.dp=2", "optimizer.name=sgd", "optimizer.momentum=0.9", "optimizer.nesterov=true",
      "precision.compute=bf16"}},
    {"dp 2 x tp 2, two heads",
     {"mesh.dp=2", "mesh.tp=2", "init.scheme=normal", "data.targets=[\"targets.bin\"]",
      "loss.head=[{ name = \"image\", vocab = 8, targets = [\"image.bin\"], weight = 0.25 }]"}},
};

/// Writes targets for the heads, beside the tokens.
auto WriteTargets(const Training& training) -> void {
  std::vector<uint16_t> ids = EasyTokens(40'000);
  for (size_t i = 0; i < ids.size(); i += 3) {
    // No target.
    ids[i] = 65535;
  }
  WriteBin(training / "targets.bin", ids);
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = i % 5 == 0 ? 65535 : ids[i] % 8;
  }
  WriteBin(training / "image.bin", ids);
}

/// Returns the numbers of metrics.jsonl that the plan decides: steps, losses of each head, norms, learning rates,
/// evaluations.
auto NumbersOf(const std::string& run_dir) -> std::vector<double> {
  std::vector<double> numbers;
  std::istringstream text(ReadText(run_dir + "/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) {
    const auto json = nlohmann::json::parse(line);
    for (const auto& [key, value] : json.items()) {
      if (key == "step" || key == "lr" || key == "grad_norm" || key.find("loss") != std::string::npos) {
        numbers.push_back(value.is_null() ? -1 : value.get<double>());
      }
    }
  }
  return numbers;
}

/// What two launches of a plan come to: one from the start to the end, and one from the save before the end.
struct Results {
  std::vector<std::vector<uint32_t>> states;
  std::vector<double> numbers;
  std::string error;
  bool refused_by_guard = false;

  friend auto operator==(const Results&, const Results&) -> bool = default;
};

auto RunOnce(const Plan& plan, const std::string& run_dir, Results& results) -> void {
  std::vector<std::vector<uint32_t>> states(static_cast<size_t>(plan.mesh.num_ranks()));
  const LaunchOptions options{.run_dir = run_dir, .timeout = Seconds{20}, .shuffles = true};
  const auto code = LaunchThreads(plan, options, [&](RankContext& context) -> ErrorOr<ExitCode> {
    context.execution.order = 1;
    auto runner = RankRunner::Create(context);
    if (!runner) {
      return runner.error();
    }
    auto trained = (*runner)->Train();
    states[static_cast<size_t>(context.rank)] = OwnedStateOf(plan, **runner, context.rank);
    return trained;
  });
  results.refused_by_guard = code && *code == ExitCode::RecipeRejected;
  if (!code || *code != ExitCode::Ok) {
    results.error += code ? fmt::format("exit code {}", static_cast<int>(*code)) : code.error().message;
  }
  results.states.insert(results.states.end(), states.begin(), states.end());
}

auto RunTwice(Plan plan, const Training& training) -> Results {
  const std::string run_dir = training / "run";
  std::filesystem::remove_all(run_dir);
  plan.run.run_dir = run_dir;
  plan.run.checkpoint_dir = run_dir + "/checkpoints";
  Results results;
  RunOnce(plan, run_dir, results);
  if (const auto saved = CheckpointsOf(run_dir); results.error.empty() && saved.size() > 1) {
    std::filesystem::remove_all(run_dir + "/checkpoints/" + saved.back());
    std::filesystem::remove(run_dir + "/saves.jsonl");
    RunOnce(plan, run_dir, results);
  }
  results.numbers = NumbersOf(run_dir);
  return results;
}

struct Counts {
  int changes = 0;
  int refused = 0;
  int same = 0;
  int free = 0;
  int wrong = 0;
};

auto NumChanges() -> int {
  const char* asked = std::getenv("SHARDC_MUTANTS");
  return asked != nullptr ? std::atoi(asked) : 200;
}

TEST(Mutants, AreRefusedOrTrainAsThePlanDoes) {
  // Compiled once for all launches, and not once per launch.
  const auto kernels = SharedInitKernels();
  const Training training;
  WriteTargets(training);
  std::vector<Plan> plans;
  std::vector<Results> expected;
  for (const auto& [name, own] : Origins) {
    Sets sets = Common;
    sets.insert(sets.end(), own.begin(), own.end());
    plans.push_back(training.Compile(sets));
    ASSERT_THAT(VerifyRunnable(plans.back()), testing::IsEmpty()) << name;
    expected.push_back(RunTwice(plans.back(), training));
    ASSERT_EQ(expected.back().error, "") << name;
    ASSERT_EQ(expected.back().states.size(), 2 * static_cast<size_t>(plans.back().mesh.num_ranks())) << name;
  }
  std::mt19937_64 random(20261123);
  std::map<ChangeKind, Counts> counts;
  for (int made = 0; made < NumChanges();) {
    const size_t origin = random() % plans.size();
    const auto kind = static_cast<ChangeKind>(made % static_cast<int>(CountOf<ChangeKind>()));
    Plan plan = plans[origin];
    const auto change = ChangeOne(plan, kind, random);
    if (!change || plan == plans[origin]) {
      continue;
    }
    ++made;
    Counts& count = counts[kind];
    ++count.changes;
    if (!VerifyRunnable(plan).empty()) {
      ++count.refused;
      continue;
    }
    if (change->free) {
      ++count.free;
      continue;
    }
    const std::string text = fmt::format("{}: {}: {}", Origins[origin].name, ToText(kind), change->what);
    // Told before it runs: a plan that ends the test program is the last one here.
    std::fprintf(stderr, "accepted: %s\n", text.c_str());
    Results results = RunTwice(plan, training);
    if (results.refused_by_guard) {
      // It asks for bytes round each buffer, as test mode lays plans out: the same without it.
      plan.run.guard = false;
      results = RunTwice(plan, training);
    }
    const bool same = results == expected[origin];
    ++(same ? count.same : count.wrong);
    EXPECT_TRUE(same) << text << (results.error.empty() ? "" : "\n" + results.error);
  }
  for (const auto& [kind, count] : counts) {
    std::printf("%-14s %5d changes: %5d refused, %4d accepted with the same bits, %4d free, %4d wrong\n",
                std::string(ToText(kind)).c_str(), count.changes, count.refused, count.same, count.free, count.wrong);
  }
}

}  // namespace
}  // namespace shardc
