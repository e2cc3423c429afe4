// Counts of samples by source: what sample_quotas.h promises, on random weights, against a plain list of every sample
// with its first and its due step.
#include "compiler/plan/sample_quotas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>

#include "compiler/expr/expr.h"
#include "tests/data/mixture_case.h"

namespace shardc {
namespace {

using Counts = std::vector<std::vector<int64_t>>;

/// The counts of each step; empty, with a failure, where there is a fault.
auto CountsOf(const DataSource& data, int64_t samples_per_step, int64_t steps) -> Counts {
  Counts counts;
  auto quotas = SampleQuotas::Create(data, samples_per_step, steps);
  EXPECT_TRUE(quotas.ok()) << quotas.error().message;
  while (quotas.ok() && static_cast<int64_t>(counts.size()) < steps) {
    counts.push_back(quotas->counts());
    const Status status = quotas->Next();
    EXPECT_TRUE(status.ok()) << status.error().message;
    if (!status.ok()) {
      return {};
    }
  }
  return counts;
}

/// Weights of each step, by the evaluator itself.
auto WeightsOf(const DataSource& data, int64_t steps) -> std::vector<std::vector<double>> {
  std::vector<std::vector<double>> weights;
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<double>& of_step = weights.emplace_back();
    for (const TokenSource& source : data.sources) {
      const auto expr = ParseExpr(source.weight, ExprKind::Schedule);
      const auto value =
          EvaluateNumber(expr.value, {{"step", static_cast<double>(step)}, {"steps", static_cast<double>(steps)}});
      EXPECT_TRUE(value.ok()) << source.weight;
      of_step.push_back(value.value);
    }
  }
  return weights;
}

/// Targets after each step in units, by the definition.
auto TargetsOf(const DataSource& data, int64_t samples_per_step, int64_t steps) -> Counts {
  Counts targets;
  std::vector<int64_t> target(data.sources.size(), 0);
  for (const std::vector<double>& weights : WeightsOf(data, steps)) {
    const double largest = *std::max_element(weights.begin(), weights.end());
    double sum = 0;
    for (const double weight : weights) {
      sum += weight / largest;
    }
    const auto all = static_cast<double>(samples_per_step) * 0x1p32;
    int64_t missing = samples_per_step << 32;
    std::vector<int64_t> shares;
    for (const double weight : weights) {
      shares.push_back(static_cast<int64_t>(weight / largest / sum * all));
      missing -= shares.back();
    }
    shares[static_cast<size_t>(std::max_element(shares.begin(), shares.end()) - shares.begin())] += missing;
    for (size_t s = 0; s < target.size(); ++s) {
      target[s] += shares[s];
    }
    targets.push_back(target);
  }
  return targets;
}

/// Counts by looking at all samples that are released and not taken, sorted in each step by when they are due.
auto PlainCounts(const DataSource& data, int64_t samples_per_step, int64_t steps) -> Counts {
  const Counts targets = TargetsOf(data, samples_per_step, steps);
  const size_t last = targets.size() - 1;
  const auto due_step = [&](size_t source, int64_t sample) {
    const int64_t units = sample << 32;
    for (size_t t = 0; t < targets.size(); ++t) {
      if (targets[t][source] >= units) {
        return static_cast<int64_t>(t);
      }
    }
    const int64_t share = targets[last][source] - (last == 0 ? 0 : targets[last - 1][source]);
    const int64_t to_go = units - targets[last][source];
    return share == 0 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(last) + (to_go + share - 1) / share;
  };
  Counts counts;
  std::vector<int64_t> taken(data.sources.size(), 0);
  for (const std::vector<int64_t>& target : targets) {
    // Due step, units that the target is above the samples before it, source.
    std::vector<std::tuple<int64_t, int64_t, size_t>> open;
    for (size_t s = 0; s < taken.size(); ++s) {
      for (int64_t sample = taken[s] + 1; (sample - 1) << 32 < target[s]; ++sample) {
        open.emplace_back(due_step(s, sample), ((sample - 1) << 32) - target[s], s);
      }
    }
    std::sort(open.begin(), open.end());
    std::vector<int64_t>& of_step = counts.emplace_back(taken.size(), 0);
    for (size_t i = 0; i < static_cast<size_t>(samples_per_step) && i < open.size(); ++i) {
      ++of_step[std::get<2>(open[i])];
      ++taken[std::get<2>(open[i])];
    }
  }
  return counts;
}

TEST(SampleQuotas, KeepWhatTheyPromise) {
  std::mt19937 random(20261122);
  int64_t num_steps = 0;
  for (int i = 0; i < 1500; ++i) {
    const MixtureCase mixture = RandomMixture(random);
    const auto& [data, samples_per_step, steps] = mixture;
    std::string weights;
    for (const TokenSource& source : data.sources) {
      weights += source.weight + "; ";
    }
    SCOPED_TRACE(fmt::format("case {}: {} samples per step, {} steps, {}", i, samples_per_step, steps, weights));
    const Counts counts = CountsOf(data, samples_per_step, steps);
    ASSERT_EQ(counts.size(), static_cast<size_t>(steps));
    const Counts targets = TargetsOf(data, samples_per_step, steps);
    const auto plain_weights = WeightsOf(data, steps);
    std::vector<int64_t> taken(data.sources.size(), 0);
    std::vector<long double> exact(data.sources.size(), 0);
    for (size_t t = 0; t < counts.size(); ++t) {
      ASSERT_EQ(std::accumulate(counts[t].begin(), counts[t].end(), int64_t{0}), samples_per_step) << "step " << t;
      const long double sum = std::accumulate(plain_weights[t].begin(), plain_weights[t].end(), 0.0L);
      for (size_t s = 0; s < taken.size(); ++s) {
        ASSERT_GE(counts[t][s], 0) << "step " << t << ", source " << s;
        taken[s] += counts[t][s];
        const int64_t off = (taken[s] << 32) - targets[t][s];
        ASSERT_LT(std::abs(off), SampleUnit) << "step " << t << ", source " << s;
        // Of the shares before they are rounded to units, not more than a unit a source and step.
        exact[s] += samples_per_step * (plain_weights[t][s] / sum);
        ASSERT_LT(std::abs(taken[s] - exact[s]), 1 + 1e-6L) << "step " << t << ", source " << s;
      }
      ++num_steps;
    }
    ASSERT_EQ(counts, PlainCounts(data, samples_per_step, steps));
  }
  EXPECT_GT(num_steps, 50'000);
}

// After step 2 the targets are 1/4, 7/12 and twice 13/12: two samples are due, one more was taken before. Whoever
// knows no later weights takes one that is not due first, whichever of the four sources that will be.
TEST(SampleQuotas, LookAhead) {
  const std::string silent[] = {"if step < 1 then 1 else 0", "if step < 2 then 1 else 0"};
  for (size_t first = 0; first < 4; ++first) {
    for (size_t second = 0; second < 4; ++second) {
      if (first == second) {
        continue;
      }
      std::vector<std::string> weights(4, "1");
      weights[first] = silent[0];
      weights[second] = silent[1];
      const Counts counts = CountsOf(MixtureOf(weights), 1, 3);
      for (size_t s = 0; s < 4; ++s) {
        if (s != first && s != second) {
          EXPECT_GE(counts[0][s] + counts[1][s] + counts[2][s], 1) << first << " " << second << " " << s;
        }
      }
    }
  }
}

TEST(SampleQuotas, ConstantWeightsAreWellKnownSequences) {
  EXPECT_EQ(CountsOf(MixtureOf({"1", "1"}), 1, 4), (Counts{{1, 0}, {0, 1}, {1, 0}, {0, 1}}));
  EXPECT_EQ(CountsOf(MixtureOf({"0.5", "0.25", "0.25"}), 1, 4), (Counts{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 0}}));
  EXPECT_EQ(CountsOf(MixtureOf({"3", "1"}), 8, 3), (Counts{{6, 2}, {6, 2}, {6, 2}}));
  EXPECT_EQ(CountsOf(MixtureOf({"1", "0.5"}), 4, 3), (Counts{{3, 1}, {2, 2}, {3, 1}}));
  EXPECT_EQ(CountsOf(MixtureOf({"7"}), 5, 2), (Counts{{5}, {5}}));
}

TEST(SampleQuotas, WeightsBeyondAllSumsAreShares) {
  EXPECT_EQ(CountsOf(MixtureOf({"1.5e308", "1.5e308", "1e-300"}), 4, 2), (Counts{{2, 2, 0}, {2, 2, 0}}));
  EXPECT_EQ(CountsOf(MixtureOf({"5e-324", "5e-324"}), 4, 1), (Counts{{2, 2}}));
  EXPECT_EQ(CountsOf(MixtureOf({"1", "1", "1"}), MostMixedSamples, 3),
            (Counts{{357'913'942, 357'913'941, 357'913'941},
                    {357'913'941, 357'913'942, 357'913'941},
                    {357'913'941, 357'913'941, 357'913'942}}));
}

TEST(SampleQuotas, RewindBeginsAgain) {
  const DataSource data = MixtureOf({"1 + step", "2", "if step < 7 then 0 else 5"});
  const Counts counts = CountsOf(data, 5, 200);
  auto quotas = SampleQuotas::Create(data, 5, 200);
  for (const int64_t steps : {int64_t{0}, int64_t{3}, int64_t{150}}) {
    for (int64_t step = 0; step < steps; ++step) {
      ASSERT_TRUE(quotas->Next().ok());
    }
    ASSERT_TRUE(quotas->Rewind().ok());
    EXPECT_EQ(quotas->step(), 0);
    EXPECT_EQ(quotas->taken(), (std::vector<int64_t>{0, 0, 0}));
    EXPECT_EQ(quotas->counts(), counts[0]);
  }
}

TEST(SampleQuotas, FaultsNameSourceStepAndValue) {
  struct Row {
    std::vector<std::string> weights;
    std::string says;
  };
  const std::array rows{
      Row{{"1", "3 - step"}, "the weight of s1 at step 4 is -1; weights are 0 or more"},
      Row{{"1 / (5 - step)", "1"}, "the weight of s0 at step 5: division by zero: `(5 - step)` is 0"},
      Row{{"if step == 6 then 0 else 1", "max(0, 6 - step)"}, "at step 6 the weights of all sources are 0"},
      Row{{"1", "1 +"}, "the weight of s1, 1 +, does not read: "},
      Row{{"1", "step > 1"}, "the weight of s1, step > 1, does not read: "},
  };
  for (const Row& row : rows) {
    auto quotas = SampleQuotas::Create(MixtureOf(row.weights), 3, 10);
    Status status = quotas ? Status(Success{}) : Status(quotas.error());
    for (int step = 1; status.ok() && step < 10; ++step) {
      status = quotas->Next();
    }
    ASSERT_FALSE(status.ok()) << row.says;
    EXPECT_EQ(status.error().code, ExitCode::RecipeRejected);
    EXPECT_NE(status.error().message.find(row.says), std::string::npos) << status.error().message;
  }
}

TEST(SampleQuotas, RunsOfOtherLengthsDifferWhereTheirWeightsDo) {
  const auto first_other = [](const std::vector<std::string>& weights, int64_t num_steps, int64_t steps,
                              int64_t other) {
    const DataSource data = MixtureOf(weights);
    const auto step = FirstOtherStep({data, steps}, {data, other}, 8, num_steps);
    EXPECT_TRUE(step.ok()) << step.error().message;
    return step ? *step : -2;
  };
  EXPECT_EQ(first_other({"2", "1", "1 / 7"}, 100, 100, 400), -1);
  EXPECT_EQ(first_other({"if step < 50 then 1 else 0.2", "0.5"}, 60, 100, 400), -1);
  // 8 * 0.9 / 1.2 is 6 at step 0; shares of the longer run fall more slowly.
  EXPECT_EQ(first_other({"0.9 - 0.4 * step / steps", "0.3"}, 1, 100, 400), -1);
  const int64_t other = first_other({"0.9 - 0.4 * step / steps", "0.3"}, 100, 100, 400);
  EXPECT_GT(other, 0);
  EXPECT_LT(other, 40);
}

}  // namespace
}  // namespace shardc
