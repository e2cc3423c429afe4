#include "tests/emulated/feature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "compiler/base/stopwatch.h"
#include "compiler/ops/parts.h"
#include "tests/support/emulated/cuda.h"
#include "tests/support/warp_order.h"

namespace shardc {

SmallTraining::SmallTraining()
    : Training(
          {"mesh.dp=1", "model.seq=16", "batch.global=4", "train.steps=3", "train.eval_every=2", "data.eval_tokens=100",
           "checkpoint.every=0",
           R"--(init.rule=[{match = "*", value = "if num_dims == 1 then normal(1, 0.1) else normal(0, 0.15)"}])--"}) {
  std::vector<uint16_t> targets = EasyTokens(40'000);
  for (size_t i = 0; i < targets.size(); i += 3) {
    targets[i] = 65535;
  }
  WriteBin(*this / "masked.bin", targets);
  WriteBin(*this / "documents.bin", DocumentTokens(40'000, 1));
  WriteBin(*this / "held_out.bin", DocumentTokens(100, 2));
}

auto OnDocuments(Pack pack, const Sets& more_sets) -> Sets {
  Sets sets{"data.tokens=['documents.bin']", "data.documents=split", "data.document_end=0",
            fmt::format("data.pack={}", ToText(pack))};
  if (IsPacked(pack)) {
    sets.insert(sets.end(), {"data.too_long=split", "data.eval_tokens=0", "train.eval_every=0"});
  }
  sets.insert(sets.end(), more_sets.begin(), more_sets.end());
  return sets;
}

auto OnGpu(Sets sets) -> Sets {
  sets.emplace_back("run.device=cuda-sm90");
  return sets;
}

auto TrainInOrder(const Plan& plan, const std::string& run_dir) -> TrainedRun {
  emulated::warp_order = emulated::WarpOrder::Ascending;
  return TrainInProcess(plan, run_dir);
}

auto TrainInOtherOrder(const Plan& plan, const std::string& run_dir) -> TrainedRun {
  emulated::warp_order = emulated::WarpOrder::Descending;
  return TrainInProcess(plan, run_dir, [](RankContext& context) { context.execution.order = 1; });
}

namespace {

/// By line and key.
using Numbers = std::map<std::string, double>;

/// Returns the numbers of metrics.jsonl that neither clocks nor memory change; NaN for null.
auto NumbersOf(const std::string& run_dir) -> Numbers {
  static const std::set<std::string> of_machine{"time",      "step_ms",        "tokens_per_s",
                                                "elapsed_s", "resident_bytes", "arena_bytes"};
  Numbers numbers;
  std::istringstream text(ReadText(run_dir + "/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) {
    const auto json = nlohmann::json::parse(line);
    for (const auto& [key, value] : json.items()) {
      if (of_machine.contains(key)) {
        continue;
      }
      const std::string name = fmt::format("step {} {}", json.at("step").get<int64_t>(), key);
      if (value.is_string()) {
        numbers[name + " " + value.get<std::string>()] = 1;
      } else {
        numbers[name] = value.is_null() ? std::nan("") : value.get<double>();
      }
    }
  }
  return numbers;
}

/// Returns the greatest difference from `expected`, relative, or infinity if one alone has a number.
auto FarthestOf(const Numbers& numbers, const Numbers& expected) -> WholeState::Distance {
  WholeState::Distance farthest;
  for (const auto& [name, number] : expected) {
    const auto found = numbers.find(name);
    double relative = INFINITY;
    if (found != numbers.end() && (found->second == number || (std::isnan(found->second) && std::isnan(number)))) {
      relative = 0;
    } else if (found != numbers.end() && std::isfinite(found->second)) {
      relative = std::abs(found->second / number - 1);
    }
    if (!(relative <= farthest.relative)) {
      farthest = {name, relative};
    }
  }
  return numbers.size() == expected.size() ? farthest : WholeState::Distance{"another number of numbers", INFINITY};
}

auto LogOf(const std::string& run_dir) -> std::string { return ReadText(run_dir + "/attempts/0001/log.txt"); }

/// The numbers and the parameter that differ most.
struct Farthest {
  WholeState::Distance numbers;
  WholeState::Distance parameter;
};
auto ToText(const Farthest& farthest) -> std::string {
  const auto& [numbers, parameter] = farthest;
  return fmt::format("{:.2g} ({}), parameters {:.2g} ({})", numbers.relative, numbers.tensor, parameter.relative,
                     parameter.tensor);
}

/// Expects the numbers and the state of a run within the tolerance of those of another.
auto ExpectClose(const TrainedRun& run, const std::string& run_dir, const TrainedRun& other,
                 const std::string& other_dir, double tolerance) -> Farthest {
  EXPECT_EQ(run.at_begin.DifferenceFrom(other.at_begin), "");
  EXPECT_FALSE(run.at_end.empty());
  EXPECT_EQ(run.at_end.num_missing(), 0);
  EXPECT_EQ(run.at_end.num_different(), 0);
  const Numbers expected = NumbersOf(other_dir);
  EXPECT_FALSE(expected.empty());
  const Farthest farthest{FarthestOf(NumbersOf(run_dir), expected),
                          run.at_end.FarthestFrom(other.at_end, StateRole::Parameter)};
  EXPECT_LE(farthest.numbers.relative, tolerance) << farthest.numbers.tensor;
  EXPECT_LE(farthest.parameter.relative, tolerance) << farthest.parameter.tensor;
  for (const StateRole role : StateRoles) {
    const auto moment = run.at_end.FarthestFrom(other.at_end, role);
    EXPECT_LE(moment.relative, 10 * tolerance) << moment.tensor;
  }
  return farthest;
}

}  // namespace

auto ExpectTrainsAsOnCpu(const Training& training, const Feature& feature) -> void {
  SCOPED_TRACE(feature.name);
  UseEmulatedCuda();
  const auto run_dir = [&](const char* run) { return training / fmt::format("{}, {}", feature.name, run); };
  const std::string cpu = run_dir("cpu");
  const std::string gpu = run_dir("gpu");
  const std::string other = run_dir("gpu in another order");
  const TrainedRun on_cpu = TrainInProcess(training.Compile(feature.sets), cpu);
  ASSERT_EQ(on_cpu.code, feature.code) << on_cpu.error;
  const Plan plan = training.Compile(OnGpu(feature.sets));
  const Stopwatch watch;
  const TrainedRun run = TrainInOrder(plan, gpu);
  const double seconds = watch.Elapsed().value;
  ASSERT_EQ(run.code, feature.code) << run.error;
  EXPECT_THAT(LogOf(cpu), testing::HasSubstr(feature.prints));
  EXPECT_THAT(LogOf(gpu), testing::HasSubstr(feature.prints));

  const Farthest farthest = ExpectClose(run, gpu, on_cpu, cpu, feature.tolerance);

  const TrainedRun again = TrainInOtherOrder(plan, other);
  EXPECT_EQ(again.at_end.DifferenceFrom(run.at_end), "");
  EXPECT_EQ(FarthestOf(NumbersOf(other), NumbersOf(gpu)).relative, 0);
  std::printf("%s: %.2f s; off by at most %s\n", feature.name, seconds, ToText(farthest).c_str());
}

auto ExpectFusedTrainsAsPlain(const Training& training, const Feature& feature) -> void {
  SCOPED_TRACE(feature.name);
  UseEmulatedCuda();
  const auto run_dir = [&](const char* kernels) { return training / fmt::format("{}, {}", feature.name, kernels); };
  const auto compile = [&](const char* kernels) {
    Sets sets = OnGpu(feature.sets);
    sets.push_back(fmt::format("run.kernels={}", kernels));
    return training.Compile(sets);
  };
  const Plan fused = compile("fused");
  const Plan plain = compile("plain");
  EXPECT_TRUE(HasFusedOps(fused));
  EXPECT_FALSE(HasFusedOps(plain));
  const TrainedRun run = TrainInOrder(fused, run_dir("fused"));
  const TrainedRun expected = TrainInOrder(plain, run_dir("plain"));
  ASSERT_EQ(run.code, ExitCode::Ok) << run.error;
  ASSERT_EQ(expected.code, ExitCode::Ok) << expected.error;
  const Farthest farthest = ExpectClose(run, run_dir("fused"), expected, run_dir("plain"), feature.tolerance);
  std::printf("%s: fused off by at most %s\n", feature.name, ToText(farthest).c_str());
}

}  // namespace shardc
