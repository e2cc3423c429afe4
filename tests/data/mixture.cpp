// Which sample is where: each exactly once, in whatever order they are asked for.
#include "runtime/data/mixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "compiler/data/shuffle.h"
#include "compiler/plan/run_samples.h"
#include "tests/data/mixture_case.h"

namespace shardc {
namespace {

auto Make(const MixtureCase& mixture) -> Mixture {
  auto made = Mixture::Create(mixture.data, mixture.samples_per_step, mixture.steps);
  CHECK(made.ok(), "{}", made.error().message);
  return *std::move(made);
}

auto At(Mixture& mixture, int64_t index) -> MixedSample {
  const auto sample = mixture.At(index);
  CHECK(sample.ok(), "{}", sample.error().message);
  return *sample;
}

auto All(const MixtureCase& mixture) -> std::vector<MixedSample> {
  Mixture made = Make(mixture);
  std::vector<MixedSample> all;
  for (int64_t i = 0; i < mixture.samples_per_step * mixture.steps; ++i) {
    all.push_back(At(made, i));
  }
  return all;
}

/// Letters for sources: "abab".
auto Letters(const std::vector<MixedSample>& samples) -> std::string {
  std::string letters;
  for (const MixedSample& sample : samples) {
    letters += static_cast<char>('a' + sample.source);
  }
  return letters;
}

TEST(Mixture, EachSampleOfEachSourceOnce) {
  std::mt19937 random(7);
  for (int i = 0; i < 200; ++i) {
    const MixtureCase mixture = RandomMixture(random);
    SCOPED_TRACE(i);
    const std::vector<MixedSample> all = All(mixture);
    // Those of a step are the next of each source, and as many as its quota.
    auto quotas = SampleQuotas::Create(mixture.data, mixture.samples_per_step, mixture.steps);
    for (int64_t step = 0; step < mixture.steps; ++step) {
      std::vector<std::set<int64_t>> of_step(mixture.data.sources.size());
      for (int64_t b = 0; b < mixture.samples_per_step; ++b) {
        const MixedSample& sample = all[static_cast<size_t>(step * mixture.samples_per_step + b)];
        ASSERT_TRUE(of_step[sample.source].insert(sample.index).second);
      }
      for (size_t s = 0; s < of_step.size(); ++s) {
        ASSERT_EQ(static_cast<int64_t>(of_step[s].size()), quotas->counts()[s]);
        ASSERT_TRUE(of_step[s].empty() || *of_step[s].begin() == quotas->taken()[s]);
        ASSERT_TRUE(of_step[s].empty() || *of_step[s].rbegin() == quotas->taken()[s] + quotas->counts()[s] - 1);
      }
      ASSERT_TRUE(quotas->Next().ok());
    }
    const auto run = CountRunSamples(mixture.data, mixture.samples_per_step, mixture.steps);
    ASSERT_TRUE(run.ok()) << run.error().message;
    EXPECT_TRUE(run->is_exact);
    EXPECT_EQ(run->samples, quotas->taken());
  }
}

TEST(Mixture, LongRunsAreEstimated) {
  const auto run = CountRunSamples(MixtureOf({"0.9 - 0.4 * step / steps", "0.3"}), 10, int64_t{1} << 40);
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_FALSE(run->is_exact);
  // The mean of w / (w + 0.3) for w from 0.9 to 0.5 is 1 - 0.75 ln(1.5).
  EXPECT_NEAR(static_cast<double>(run->samples[0]) / 10 / 0x1p40, 1 - 0.75 * std::log(1.5), 1e-6);
  EXPECT_NEAR(static_cast<double>(run->samples[0] + run->samples[1]), 10 * 0x1p40, 10);
  const auto even = CountRunSamples(MixtureOf({"1", "3"}), 8, int64_t{1} << 40);
  ASSERT_TRUE(even.ok()) << even.error().message;
  EXPECT_EQ(even->samples, (std::vector<int64_t>{int64_t{1} << 41, int64_t{3} << 41}));
}

TEST(Mixture, OrderOfAccessDoesNotMatter) {
  std::mt19937 random(8);
  for (int i = 0; i < 60; ++i) {
    const MixtureCase mixture = RandomMixture(random);
    const std::vector<MixedSample> all = All(mixture);
    // As a rank of several does: a range of the samples of each step, from some step on.
    Mixture strided = Make(mixture);
    for (size_t at = random() % all.size(); at < all.size(); at += 1 + random() % 50) {
      ASSERT_EQ(At(strided, static_cast<int64_t>(at)), all[at]) << i << " " << at;
    }
    Mixture anywhere = Make(mixture);
    for (int n = 0; n < 60; ++n) {
      const size_t at = random() % all.size();
      ASSERT_EQ(At(anywhere, static_cast<int64_t>(at)), all[at]) << i << " " << at;
    }
  }
}

TEST(Mixture, SequentialSlotsAreSpreadEvenly) {
  MixtureCase mixture{.data = MixtureOf({"2", "1"}), .samples_per_step = 6, .steps = 2};
  mixture.data.order = SampleOrder::Sequential;
  const std::vector<MixedSample> all = All(mixture);
  EXPECT_EQ(Letters(all), "abaabaabaaba");
  EXPECT_EQ(all[1], (MixedSample{1, 0}));
  EXPECT_EQ(all[11], (MixedSample{0, 7}));
  mixture.data = MixtureOf({"1", "1", "6"});
  mixture.data.order = SampleOrder::Sequential;
  mixture.samples_per_step = 8;
  mixture.steps = 1;
  EXPECT_EQ(Letters(All(mixture)), "cccabccc");
}

TEST(Mixture, ShuffledSlotsMixEachRangeOfAStep) {
  MixtureCase mixture{.data = MixtureOf({"3", "1"}), .samples_per_step = 64, .steps = 50};
  mixture.data.seed = 5;
  const std::string letters = Letters(All(mixture));
  // Of each quarter of the steps, as four ranks have them, a fourth is of b: 200 of 800, deviation below 13.
  for (size_t quarter = 0; quarter < 4; ++quarter) {
    int64_t num_b = 0;
    for (size_t step = 0; step < 50; ++step) {
      const std::string part = letters.substr(step * 64 + quarter * 16, 16);
      num_b += std::count(part.begin(), part.end(), 'b');
    }
    EXPECT_NEAR(static_cast<double>(num_b), 200, 60) << quarter;
  }
  // Otherwise in each step, and by the seed.
  EXPECT_NE(letters.substr(0, 64), letters.substr(64, 64));
  mixture.data.seed = 6;
  EXPECT_NE(Letters(All(mixture)), letters);
}

TEST(Mixture, NamesHaveSeedsOfTheirOwn) {
  EXPECT_NE(DerivedSeed(1, "web"), DerivedSeed(1, "code"));
  EXPECT_NE(DerivedSeed(1, "web"), DerivedSeed(2, "web"));
  // Runs that were begun depend on it.
  EXPECT_EQ(DerivedSeed(1, "web"), 5022691876440776954U);
}

}  // namespace
}  // namespace shardc
