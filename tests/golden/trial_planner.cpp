// Figures from plans of few blocks, against whole plans.
#include "compiler/driver/trial_planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "compiler/driver/fit.h"
#include "compiler/fit/fit_search.h"
#include "compiler/fit/in_parallel.h"
#include "tests/golden/all_combinations.h"
#include "tests/golden/golden_case.h"

namespace shardc {
namespace {

/// A recipe of many blocks, and its plan.
struct DeepRecipe {
  RecipeOptions options;
  std::string text = ReadRecipeFile(options.path);
  Plan plan;
  FitUse fit;

  DeepRecipe(const std::string& path, const TrialPlanner::Sets& sets) : options{.path = path, .sets = sets} {
    auto compiled = CompileText(path, text, sets);
    CHECK(compiled.ok(), "{}: {}", path, compiled.error().message);
    plan = *std::move(compiled);
    fit = {.budget = {.bytes = Bytes{int64_t{1} << 50}}, .now = FiguresOf(plan), .device = plan.device};
  }
};

const TrialPlanner::Sets Deep{"run.device=cuda", "model.layers=40", "mesh.dp=4", "mesh.hosts=1"};

TEST(TrialPlanner, EstimatesAreThoseOfWholePlans) {
  const DeepRecipe deep("recipes/published/llama3_8b.toml", Deep);
  TrialPlanner planner(deep.options, deep.text, deep.plan, deep.fit);
  size_t compared = 0;
  for (const Knob& knob : KnobsOf(deep.plan, 8)) {
    const Trial estimate = planner.Estimate(knob.sets);
    const Trial whole = planner.Whole(knob.sets);
    EXPECT_EQ(estimate.refused, whole.refused) << SetsText(knob);
    if (!whole.refused.empty()) {
      continue;
    }
    const auto share = [](auto now, auto before) {
      return static_cast<double>(now.value) / static_cast<double>(before.value);
    };
    EXPECT_EQ(estimate.figures.flops.all(), whole.figures.flops.all()) << SetsText(knob);
    EXPECT_EQ(estimate.figures.wire, whole.figures.wire) << SetsText(knob);
    EXPECT_NEAR(share(estimate.figures.reserved, whole.figures.reserved), 1, 0.01) << SetsText(knob);
    EXPECT_NEAR(share(estimate.least.reserved, whole.least.reserved), 1, 0.01) << SetsText(knob);
    EXPECT_NEAR(estimate.figures.time->step().value / whole.figures.time->step().value, 1, 0.03) << SetsText(knob);
    compared += estimate.figures == whole.figures ? 0 : 1;
  }
  EXPECT_GT(compared, 0U) << "some figures come from few blocks";
}

// Blocks that differ lie on no line.
TEST(TrialPlanner, PlansWholeWhereTheLineIsWrong) {
  const DeepRecipe deep("recipes/published/llama3_8b.toml",
                        {"run.device=cuda", "model.layers=40", "mesh.dp=4", "mesh.hosts=1",
                         "shard.reshard_after_forward=\"layer < 20\""});
  TrialPlanner planner(deep.options, deep.text, deep.plan, deep.fit);
  for (const Knob& knob : KnobsOf(deep.plan, 8)) {
    const Trial estimate = planner.Estimate(knob.sets);
    EXPECT_EQ(estimate.figures, planner.Whole(knob.sets).figures) << SetsText(knob);
  }
}

/// The descent takes one subject after another, and may miss a combination that is faster by less than this.
constexpr double LeastToTell = 0.01;

/// Returns the offers of some subjects; all others are as they are.
auto SomeOf(AllOffers offers, const std::set<Subject>& some) -> AllOffers {
  for (size_t i = 0; i < NumSubjects; ++i) {
    if (!some.contains(static_cast<Subject>(i))) {
      offers[i] = {.offers = {Offer{}}, .as_is = 0, .least = {0}};
    }
  }
  return offers;
}

/// Answers of the searches that ask for estimates, against whole plans of all combinations.
class AnswersOfDeep : public testing::TestWithParam<std::pair<const char*, TrialPlanner::Sets>> {};

TEST_P(AnswersOfDeep, AreTheBestOfAll) {
  DeepRecipe deep(GetParam().first, GetParam().second);
  const AllOffers offers = SomeOf(OffersOf(deep.plan, LayoutNow(deep.plan), 8),
                                  {Subject::Layout, Subject::Policy, Subject::Units, Subject::Chunks});
  TrialPlanner planner(deep.options, deep.text, deep.plan, deep.fit);
  const Combinations all = AllCombinations(offers);
  std::vector<Trial> trials(all.size());
  InParallel(all.size(), [&](size_t i) { trials[i] = planner.Whole(KnobOf(offers, all[i]).sets); });
  std::vector<int64_t> amounts;
  for (const Trial& trial : trials) {
    if (trial.refused.empty()) {
      amounts.push_back((trial.figures.reserved + deep.fit.outside(trial.figures)).value);
    }
  }
  std::ranges::sort(amounts);
  size_t whole = 0;
  for (size_t i = 0; i < amounts.size(); i += amounts.size() / 8) {
    deep.fit.budget.bytes = Bytes{amounts[i]};
    TrialPlanner asked(deep.options, deep.text, deep.plan, deep.fit);
    const TrialOptions options{.plan = [&](const TrialPlanner::Sets& sets) { return asked.Estimate(sets); },
                               .tell = [](size_t) {}};
    using Cost = std::tuple<int64_t, int64_t, size_t>;
    std::optional<Cost> least;
    double fastest = std::numeric_limits<double>::infinity();
    std::string fastest_sets;
    for (size_t k = 0; k < all.size(); ++k) {
      const PlanFigures& figures = trials[k].figures;
      if (trials[k].refused.empty() && deep.fit.fits(figures)) {
        const Cost cost{figures.flops.all().value, figures.wire.value, KnobOf(offers, all[k]).sets.size()};
        least = std::min(least.value_or(cost), cost);
        if (figures.time && figures.time->step().value < fastest) {
          fastest = figures.time->step().value;
          fastest_sets = SetsText(KnobOf(offers, all[k]));
        }
      }
    }
    ASSERT_TRUE(least);
    const auto cheapest = asked.Answer([&] { return CheapestThatFits(deep.fit, offers, options); });
    ASSERT_TRUE(cheapest) << amounts[i];
    const PlanFigures& figures = *cheapest->row.figures;
    EXPECT_EQ(Cost(figures.flops.all().value, figures.wire.value, cheapest->row.knob.sets.size()), *least)
        << amounts[i] << SetsText(cheapest->row.knob);
    if (deep.fit.now.time) {
      const auto found = asked.Answer([&] { return FastestThatFits({}, deep.fit, offers, options); });
      ASSERT_TRUE(found) << amounts[i];
      EXPECT_LE(found->row.figures->time->step().value, fastest * (1 + LeastToTell))
          << amounts[i] << ": found " << SetsText(found->row.knob) << ", best " << fastest_sets;
    }
    whole = std::max(whole, asked.num_whole());
  }
  fmt::print("{} of {} planned whole at most\n", whole, all.size());
  EXPECT_LT(whole, all.size() / 2);
}
INSTANTIATE_TEST_SUITE_P(TrialPlanner, AnswersOfDeep,
                         testing::Values(std::pair("recipes/published/llama3_8b.toml", Deep),
                                         std::pair("recipes/quickstart.toml",
                                                   TrialPlanner::Sets{"model.layers=24", "batch.micro=4"})));

// Ranks of two hosts may have copies of the model, and groups that gather again on a host.
TEST(TrialPlanner, FastestOfHostsIsTheBestOfAll) {
  DeepRecipe deep("recipes/published/llama3_8b.toml",
                  {"run.device=cuda", "model.layers=16", "mesh.dp=16", "mesh.hosts=2", "recompute.policy=full"});
  const AllOffers offers = SomeOf(OffersOfFastest(deep.plan, 8), {Subject::Layout, Subject::Policy, Subject::Reshard});
  TrialPlanner planner(deep.options, deep.text, deep.plan, deep.fit);
  const Combinations all = AllCombinations(offers);
  std::vector<Trial> trials(all.size());
  InParallel(all.size(), [&](size_t i) { trials[i] = planner.Whole(KnobOf(offers, all[i]).sets); });
  const TrialOptions options{.plan = [&](const TrialPlanner::Sets& sets) { return planner.Whole(sets); },
                             .tell = [](size_t) {}};
  std::vector<int64_t> amounts;
  for (const Trial& trial : trials) {
    if (trial.refused.empty()) {
      amounts.push_back((trial.figures.reserved + deep.fit.outside(trial.figures)).value);
    }
  }
  std::ranges::sort(amounts);
  std::set<std::string> answers;
  for (size_t at = 0; at < amounts.size(); at += amounts.size() / 12) {
    deep.fit.budget.bytes = Bytes{amounts[at]};
    double fastest = std::numeric_limits<double>::infinity();
    std::string fastest_sets;
    for (size_t i = 0; i < all.size(); ++i) {
      const auto& time = trials[i].figures.time;
      if (trials[i].refused.empty() && deep.fit.fits(trials[i].figures) && time->step().value < fastest) {
        fastest = time->step().value;
        fastest_sets = SetsText(KnobOf(offers, all[i]));
      }
    }
    ASSERT_FALSE(fastest_sets.empty()) << amounts[at];
    const auto found = FastestThatFits({}, deep.fit, offers, options);
    ASSERT_TRUE(found) << amounts[at];
    EXPECT_LE(found->row.figures->time->step().value, fastest * (1 + LeastToTell))
        << amounts[at] << ": found " << SetsText(found->row.knob) << ", best " << fastest_sets;
    answers.insert(SetsText(found->row.knob));
  }
  const auto of_copies = std::ranges::count_if(all, [&](const Combination& one) {
    const Trial trial = planner.Whole(KnobOf(offers, one).sets);
    return SetsText(KnobOf(offers, one)).starts_with("mesh.replicate=2 mesh.dp=8") && trial.refused.empty();
  });
  EXPECT_GT(of_copies, 5);
  EXPECT_THAT(answers, testing::Contains(testing::HasSubstr("shard.reshard_size=")));
}

}  // namespace
}  // namespace shardc
