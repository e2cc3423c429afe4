// The search of --fit against plans of all combinations.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <span>

#include "compiler/driver/fit.h"
#include "compiler/driver/trial_planner.h"
#include "compiler/fit/fit_search.h"
#include "compiler/fit/in_parallel.h"
#include "tests/golden/all_combinations.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/shipped_recipes.h"
#include "tests/support/nightly.h"

namespace shardc {
namespace {

/// Plans need no pass after that of memory where no time is estimated.
auto WithoutTime(FitUse fit) -> FitUse {
  fit.now.time.reset();
  return fit;
}

/// All combinations of what is offered for a recipe, planned.
class AllTrials {
 public:
  AllTrials(const std::string& path, const SetTexts& sets) : recipe_{.path = path, .sets = sets} {
    text_ = ReadRecipeFile(path);
    auto plan = CompileText(path, text_, sets);
    CHECK(plan.ok(), "{}: {}", path, plan.error().message);
    plan_ = *std::move(plan);
    offers_ = OffersOf(plan_);
    const std::vector<SetTexts> all = AllSetsOf(offers_);
    std::vector<Trial> trials(all.size());
    const FitUse fit = WithoutTime(FitWith({}));
    TrialPlanner planner(recipe_, text_, plan_, fit);
    InParallel(all.size(), [&](size_t i) { trials[i] = planner.Whole(all[i]); });
    for (size_t i = 0; i < all.size(); ++i) {
      trials_[all[i]] = std::move(trials[i]);
    }
  }

  auto plan() const -> const Plan& { return plan_; }
  auto offers() const -> const AllOffers& { return offers_; }
  auto trials() const -> const std::map<SetTexts, Trial>& { return trials_; }
  auto FitWith(Bytes budget) const -> FitUse {
    return {.budget = {.bytes = budget}, .now = FiguresOf(plan_), .device = plan_.device};
  }
  /// Answers the search from what was planned.
  auto Options(std::set<SetTexts>& asked) const -> TrialOptions {
    return {.plan =
                [this, &asked](const SetTexts& sets) {
                  static std::mutex mutex;
                  const std::lock_guard lock(mutex);
                  asked.insert(sets);
                  return trials_.at(sets);
                },
            .tell = [](size_t) {}};
  }

 private:
  RecipeOptions recipe_;
  std::string text_;
  Plan plan_;
  AllOffers offers_;
  std::map<SetTexts, Trial> trials_;
};

/// FLOPs, bytes on the wire, keys.
using Cost = std::tuple<int64_t, int64_t, size_t>;

auto CostOf(const PlanFigures& figures, size_t keys) -> Cost {
  return {figures.flops.all().value, figures.wire.value, keys};
}

auto LeastCost(const AllTrials& all, const FitUse& fit) -> std::optional<Cost> {
  std::optional<Cost> least;
  for (const auto& [sets, trial] : all.trials()) {
    if (trial.refused.empty() && fit.fits(trial.figures)) {
      const Cost cost = CostOf(trial.figures, sets.size());
      least = std::min(least.value_or(cost), cost);
    }
  }
  return least;
}

struct Case {
  std::string recipe;
  SetTexts sets;
};

const std::vector<Case> Cases{
    {"recipes/published/llama3_8b_4x2.toml", {"model.layers=5", "mesh.dp=2", "loss.chunks=4"}},
    {"recipes/quickstart.toml", {}},
    {"recipes/quickstart.toml", {"mesh.dp=1", "mesh.replicate=2", "batch.micro=2"}},
    {"recipes/quickstart.toml", {"model.layers=1", "recompute.policy=full", "shard.reshard_after_forward=true"}},
    {"recipes/quickstart.toml",
     {"mesh.dp=1", "mesh.tp=2", "loss.chunks=2", "recompute.policy=full", "shard.prefetch_backward=1"}},
    {"recipes/published/llama3_8b.toml", {"model.layers=2", "mesh.dp=2", "run.device=cuda"}},
    {"recipes/published/llama3_8b.toml", {"model.layers=3", "mesh.dp=4", "run.device=cuda"}},
    {"recipes/published/llama3_8b.toml",
     {"model.layers=2", "mesh.dp=2", "batch.micro=2", "batch.accumulate=2", "run.device=cuda"}},
    {"recipes/published/qwen3_8b.toml", {"model.layers=2", "shard.gather_ring=4", "shard.prefetch_forward=3"}},
};

TEST(FitSearch, FastestIsBestOfEachSubject) {
  auto plan = CompileRecipeFile("recipes/published/llama3_8b.toml", {"model.layers=2", "mesh.dp=2", "run.device=cuda"});
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const AllOffers offers = OffersOf(*plan);
  // Each text that is set saves time of its own, and some take memory.
  const auto gain = [](const SetTexts& sets) {
    double sum = 0;
    for (const std::string& set : sets) {
      sum += static_cast<double>(set.size() % 7) - 2;
    }
    return sum;
  };
  const auto trial = [&](const SetTexts& sets) {
    const bool is_large = std::ranges::find(sets, "recompute.policy=none") != sets.end();
    return Trial{
        .figures = {.reserved = Bytes{is_large ? 200 : 50}, .time = StepTime{.products = Seconds{100 - gain(sets)}}},
        .refused = sets.size() > 1 && sets.front() == "mesh.dp=1" ? "too few ranks" : ""};
  };
  const FitUse fit{
      .budget = {.bytes = Bytes{100} + FitUse{.device = Device::Cuda}.outside({})}, .now = {}, .device = Device::Cuda};
  const Offer& layout = offers[0].offers[offers[0].as_is];
  double best = 0;
  for (size_t subject = 0; subject < NumSubjects; ++subject) {
    if (!Applies(static_cast<Subject>(subject), layout)) {
      continue;
    }
    double most = 0;
    for (const Offer& offer : offers[subject].offers) {
      const Trial alone = trial(offer.sets);
      most = alone.refused.empty() && fit.fits(alone.figures) ? std::max(most, gain(offer.sets)) : most;
    }
    best += most;
  }
  ASSERT_GT(best, 5);
  const auto found = FastestThatFits({}, fit, offers, {.plan = trial, .tell = [](size_t) {}});
  ASSERT_TRUE(found);
  EXPECT_DOUBLE_EQ(found->row.figures->time->step().value, 100 - best) << SetsText(found->row.knob);
  // From where nothing fits the search does not begin.
  const FitUse none{.budget = {.bytes = Bytes{1}}, .now = {}, .device = Device::Cuda};
  EXPECT_FALSE(FastestThatFits({}, none, offers, {.plan = trial, .tell = [](size_t) {}}));
}

TEST(FitSearch, RanksAlongTpStayOnHost) {
  const auto most_tp = [](const SetTexts& sets, int64_t ranks_of_host) {
    const auto plan = CompileRecipeFile("recipes/published/llama3_8b.toml", sets);
    CHECK(plan.ok(), "{}", plan.error().message);
    const AllOffers offers = OffersOf(*plan, LayoutNow(*plan), ranks_of_host);
    return std::ranges::max(offers[0].offers, {}, &Offer::tp).tp;
  };
  EXPECT_EQ(most_tp({"model.layers=1", "mesh.dp=8"}, 8), 8);
  EXPECT_EQ(most_tp({"model.layers=1", "mesh.dp=8"}, 2), 2);
  EXPECT_EQ(most_tp({"model.layers=1", "mesh.dp=2", "mesh.tp=4"}, 2), 4) << "as the recipe has it";
}

TEST(FitSearch, FastestBeatsEachRow) {
  // The recipe as it is does not fit.
  const RecipeOptions recipe{.path = "recipes/published/llama3_8b.toml",
                             .sets = {"run.device=cuda", "model.layers=16"}};
  const std::string text = ReadRecipeFile(recipe.path);
  const auto plan = CompileText(recipe.path, text, recipe.sets);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const FitUse fit = FitOfRecipe(*plan, recipe, text, {.budget = {.bytes = Bytes{int64_t{16} << 30}}});
  ASSERT_FALSE(fit.fits());
  ASSERT_TRUE(fit.fastest);
  EXPECT_TRUE(fit.fits(*fit.fastest->figures));
  size_t rows = 0;
  for (const KnobRow& row : fit.knobs) {
    const std::string sets = SetsText(row.knob);
    const bool is_offered =
        sets.find("precision.") == std::string::npos && sets.find("run.deterministic") == std::string::npos;
    if (is_offered && row.figures && fit.fits(*row.figures)) {
      EXPECT_LE(fit.fastest->figures->time->step().value, row.figures->time->step().value * (1 + LeastGain)) << sets;
      ++rows;
    }
  }
  EXPECT_GT(rows, 0U);
}

TEST(FitSearch, FindsTheCheapestOfAll) {
  // The others have thousands of combinations.
  for (const Case& c : std::span(Cases).first(IsNightly() ? Cases.size() : 5)) {
    const AllTrials all(c.recipe, c.sets);
    // Each amount from which on another combination fits, and one byte less.
    std::set<int64_t> amounts;
    for (const auto& [sets, trial] : all.trials()) {
      if (trial.refused.empty()) {
        const int64_t amount = (trial.figures.reserved + all.FitWith({}).outside(trial.figures)).value;
        amounts.insert({amount - 1, amount});
      }
    }
    ASSERT_GE(amounts.size(), 100U) << c.recipe;
    const size_t stride = std::max<size_t>(1, amounts.size() / 400);
    size_t most_asked = 0;
    size_t i = 0;
    for (const int64_t amount : amounts) {
      if (i++ % stride != 0 && amount != *amounts.begin() && amount != *amounts.rbegin()) {
        continue;
      }
      const FitUse fit = all.FitWith(Bytes{amount});
      std::set<SetTexts> asked;
      const auto found = CheapestThatFits(fit, all.offers(), all.Options(asked));
      const auto least = LeastCost(all, fit);
      most_asked = std::max(most_asked, asked.size());
      ASSERT_EQ(found.has_value(), least.has_value()) << c.recipe << " " << amount;
      if (found) {
        EXPECT_TRUE(fit.fits(*found->row.figures));
        EXPECT_EQ(CostOf(*found->row.figures, found->row.knob.sets.size()), *least)
            << c.recipe << " " << amount << SetsText(found->row.knob);
      }
    }
    fmt::print("{}: {} of {} planned at most, {} amounts\n", c.recipe, most_asked, all.trials().size(), amounts.size());
  }
}

TEST(FitSearch, FindsTheLeastRanks) {
  const std::string path = "recipes/published/llama3_8b.toml";
  struct RanksCase {
    SetTexts sets;
    int64_t of_host;
    const char* machine;
  };
  for (const auto& [sets, of_host, machine] :
       {RanksCase{{"mesh.dp=1"}, 8, ""}, RanksCase{{"mesh.dp=2", "batch.micro=6", "recompute.policy=full"}, 2, ""},
        RanksCase{{"mesh.dp=4", "batch.micro=2", "batch.accumulate=2"}, 4, ""},
        RanksCase{{"mesh.dp=2", "mesh.hosts=4", "mesh.tp=2", "run.device=cuda"}, 1, ""},
        RanksCase{{"mesh.dp=8", "mesh.hosts=8", "run.device=cuda"}, 8, "h100-sxm"},
        RanksCase{{"mesh.dp=20", "mesh.hosts=2", "run.device=cuda"}, 8, "h100-sxm"}}) {
    SetTexts base = sets;
    base.insert(base.end(), {"model.layers=3", "model.seq=256", "model.vocab=512"});
    const RecipeOptions recipe{.path = path, .sets = base};
    const std::string text = ReadRecipeFile(path);
    const auto plan = CompileText(path, text, base);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const FitUse as_it_is = WithoutTime({.now = FiguresOf(*plan), .device = plan->device});
    TrialPlanner planner(recipe, text, *plan, as_it_is);
    const auto trial_of = [&](const SetTexts& more) { return planner.Whole(more); };
    const int64_t sequences = SamplesPerStep(*plan);
    const int64_t dp = plan->mesh.size(Axis::Dp);
    const int64_t micro = plan->run.micro_batch;
    const int64_t others = plan->mesh.num_ranks() / dp;
    // Memory of each number that fills whole hosts, or a divisor of one, with each cut: with the batch as it is, and
    // beyond that with each rank's.
    std::vector<std::pair<int64_t, PlanFigures>> all;
    const auto hosts_of = [&](int64_t ranks) { return std::max<int64_t>(1, ranks * others / of_host); };
    const auto add = [&](int64_t ranks, int64_t of_rank) {
      if (ranks * others < of_host ? of_host % (ranks * others) != 0 : ranks * others % of_host != 0) {
        return;
      }
      std::vector<int64_t> cuts(of_rank);
      std::iota(cuts.begin(), cuts.end(), 1);
      std::ranges::sort(cuts, {}, [&](int64_t cut) { return std::pair(cut > micro, cut > micro ? cut : -cut); });
      std::erase_if(cuts, [&](int64_t cut) { return of_rank % cut != 0; });
      for (const int64_t cut : cuts) {
        const Trial trial =
            trial_of({fmt::format("mesh.dp={}", ranks), fmt::format("mesh.hosts={}", hosts_of(ranks)),
                      fmt::format("batch.micro={}", cut), fmt::format("batch.accumulate={}", of_rank / cut)});
        if (trial.refused.empty()) {
          all.emplace_back(ranks, trial.figures);
        }
      }
    };
    for (int64_t ranks = 1; ranks <= sequences; ++ranks) {
      if (sequences % ranks == 0) {
        add(ranks, sequences / ranks);
      }
    }
    for (int64_t ranks = dp + 1; ranks <= 64; ++ranks) {
      add(ranks, sequences / dp);
    }
    ASSERT_GE(all.size(), 10U);
    for (const auto& [ranks, figures] : all) {
      FitUse fit{.now = FiguresOf(*plan), .device = plan->device};
      fit.budget.machine = FindMachine(machine);
      fit.budget.bytes = figures.reserved + fit.outside(figures);
      const auto least = LeastRanksThatFit(fit, *plan, {.plan = trial_of, .tell = [](size_t) {}});
      const auto first = std::ranges::find_if(all, [&](const auto& one) { return fit.fits(one.second); });
      ASSERT_TRUE(least.has_value());
      EXPECT_EQ(least->ranks, first->first * others) << testing::PrintToString(sets);
      EXPECT_EQ(least->hosts, hosts_of(first->first)) << testing::PrintToString(sets);
      EXPECT_TRUE(*least->row.figures == first->second);
    }
    const FitUse nothing{.budget = {.bytes = Bytes{1}}, .now = FiguresOf(*plan), .device = plan->device};
    EXPECT_FALSE(LeastRanksThatFit(nothing, *plan, {.plan = trial_of, .tell = [](size_t) {}}).has_value());
  }
}

TEST(FitSearch, FindsLeastRanksWithKeys) {
  const std::string path = "recipes/quickstart.toml";
  const SetTexts base{"model.layers=1", "batch.micro=1", "batch.global=2", "shard.prefetch_forward=0",
                      "shard.prefetch_backward=0"};
  const RecipeOptions recipe{.path = path, .sets = base};
  const std::string text = ReadRecipeFile(path);
  const auto plan = CompileText(path, text, base);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_EQ(plan->mesh.num_ranks(), 2);
  const FitUse fit_now{.now = FiguresOf(*plan), .device = plan->device, .sequences = SamplesPerStep(*plan)};
  TrialPlanner planner(recipe, text, *plan, fit_now);
  // The least memory on each number of ranks, which share the batch or have as many sequences each as before.
  const int64_t of_rank = plan->run.micro_batch * plan->run.accumulate;
  std::map<int64_t, int64_t> least;
  for (const int64_t ranks : {4, 6}) {
    MeshLayout layout = LayoutNow(*plan);
    layout.hosts = ranks / 2;
    std::vector<SetTexts> all;
    const auto add = [&](int64_t dp, int64_t sequences) {
      layout.dp = dp;
      layout.tp = ranks / dp;
      layout.micro = std::gcd(plan->run.micro_batch, sequences);
      layout.accumulate = sequences / layout.micro;
      layout.global = layout.global == 0 ? 0 : dp * sequences;
      const auto each = AllSetsOf(OffersOf(*plan, layout, 2));
      all.insert(all.end(), each.begin(), each.end());
    };
    add(ranks, of_rank);
    int64_t dp = ranks;
    while (2 * of_rank % dp != 0 && dp % 2 == 0) {
      dp /= 2;
    }
    if (2 * of_rank % dp == 0) {
      add(dp, 2 * of_rank / dp);
    }
    std::vector<Trial> trials(all.size());
    InParallel(all.size(), [&](size_t i) { trials[i] = planner.Whole(all[i]); });
    for (const Trial& trial : trials) {
      if (trial.refused.empty()) {
        const int64_t amount = (trial.figures.reserved + fit_now.outside(trial.figures)).value;
        least[ranks] = least.contains(ranks) ? std::min(least[ranks], amount) : amount;
      }
    }
  }
  ASSERT_EQ(least.size(), 2U);
  EXPECT_GT(least[4], least[6]);
  size_t most_planned = 0;
  for (const auto& [ranks, amount] : least) {
    for (const int64_t bytes : {amount - 1, amount}) {
      FitUse fit = fit_now;
      fit.budget.bytes = Bytes{bytes};
      std::atomic<size_t> planned = 0;
      const auto plan_one = [&](const SetTexts& sets) {
        ++planned;
        return planner.Whole(sets);
      };
      const auto found = LeastRanksWithKeys(fit, *plan, {.plan = plan_one, .tell = [](size_t) {}});
      const auto first = std::ranges::find_if(least, [&](const auto& row) { return row.second <= bytes; });
      if (first == least.end()) {
        EXPECT_TRUE(!found || found->ranks > 6) << bytes;
        continue;
      }
      ASSERT_TRUE(found) << ranks << " " << bytes;
      EXPECT_EQ(found->ranks, first->first) << bytes << SetsText(found->row.knob);
      EXPECT_EQ(found->hosts, found->ranks / 2);
      EXPECT_TRUE(fit.fits(*found->row.figures));
      most_planned = std::max<size_t>(most_planned, planned);
    }
  }
  fmt::print("{} planned at most\n", most_planned);
}

}  // namespace
}  // namespace shardc
