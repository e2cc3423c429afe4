// The rows and answers of --fit: figures against plans made by hand, and words.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/driver/fit.h"
#include "compiler/driver/slow_work.h"
#include "compiler/ops/cpu/outside_arenas.h"
#include "compiler/report/report.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/plan_sums.h"
#include "tests/golden/shipped_recipes.h"
#include "tests/support/nightly.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// The tables of fit are not committed. Nightly all are looked at.
TEST(FitAnswers, TablesOfFitHave100Columns) {
  const SetTexts recipes = ShippedRecipes();
  for (size_t i = 0; i < recipes.size(); i += static_cast<size_t>(Stride(5))) {
    const std::string& recipe = recipes[i];
    const Plan plan = PlanOfRecipe(recipe);
    Report report = Explain(plan);
    report.fit = FitOfShipped(plan, recipe);
    const std::string text = RenderReportText(report);
    EXPECT_LE(LongestLine(text), 100U) << recipe;
    EXPECT_THAT(text, HasSubstr("one change at a time, ")) << recipe;
  }
}

/// Of a plan, by the functions that explain and the goldens use.
auto FiguresByTheReport(const Plan& plan) -> PlanFigures {
  const Report report = Explain(plan);
  const OutsideArenas outside = OutsideArenasOf(plan);
  PlanFigures figures{.peak = report.peak.use.total(),
                      .reserved = report.reserved,
                      .outside = outside.rank() + Bytes{CeilDiv(outside.host().value, outside.num_ranks)},
                      .flops = report.flops,
                      .wire = {}};
  for (const Communication& row : report.step_communication) {
    figures.wire += row.wire(plan.mesh);
  }
  return figures;
}

/// Each row against the recipe planned with the `--set` that the row prints.
TEST(FitAnswers, KnobsAreWhatPlanningByHandGives) {
  struct Case {
    std::string recipe;
    SetTexts sets;
  };
  for (const Case& c : {Case{RecipeOfQuickstart, {}}, Case{RecipeOfQuickstart, {"batch.micro=2", "batch.accumulate=4"}},
                        Case{RecipeOf8B, {}}, Case{RecipeOf8B, {"mesh.dp=16", "mesh.hosts=2"}},
                        Case{RecipeOf8B4x2, {"precision.compute=fp32"}}}) {
    const Plan plan = PlanOfRecipe(c.recipe, c.sets);
    const FitUse fit = FitOfShipped(plan, c.recipe, c.sets);
    EXPECT_TRUE(fit.now == FiguresByTheReport(plan)) << c.recipe;
    int planned = 0;
    for (const KnobRow& row : fit.knobs) {
      SetTexts sets = c.sets;
      sets.insert(sets.end(), row.knob.sets.begin(), row.knob.sets.end());
      const std::string name = c.recipe + " " + SetsText(row.knob);
      const auto by_hand = CompileRecipeFile(c.recipe, sets);
      if (!row.figures) {
        EXPECT_NE(row.knob.refused, "") << name;
        EXPECT_TRUE(!by_hand.ok() || PlanHash(*by_hand) == PlanHash(plan) ||
                    SamplesPerStep(*by_hand) != SamplesPerStep(plan))
            << name;
        continue;
      }
      ASSERT_TRUE(by_hand.ok()) << name;
      ++planned;
      EXPECT_TRUE(*row.figures == FiguresByTheReport(*by_hand)) << name;
      EXPECT_EQ(by_hand->mesh.num_ranks(), plan.mesh.num_ranks()) << name;
      EXPECT_EQ(SamplesPerStep(*by_hand), SamplesPerStep(plan)) << name;
      EXPECT_NE(PlanHash(*by_hand), PlanHash(plan)) << name << " changes nothing";
    }
    EXPECT_GE(planned, 15) << c.recipe;
  }
}

/// Each kind of knob is there.
TEST(FitAnswers, KnobsAreOfAllKinds) {
  std::string all;
  for (const KnobRow& row : FitOfShipped(PlanOfRecipe(RecipeOf8B), RecipeOf8B).knobs) {
    all += SetsText(row.knob) + (row.figures ? "" : " refused") + "\n";
  }
  for (const char* knob :
       {"recompute.policy=none\n", "recompute.policy=full\n", "loss.chunks=8\n", "shard.reshard_after_forward=true\n",
        "shard.reshard_after_forward=false\n", "mesh.dp=4 mesh.tp=2 batch.accumulate=2\n", "batch.micro refused\n",
        "shard.prefetch_forward=1\n", "shard.prefetch_backward=1\n", "shard.gather_ring=2\n",
        "precision.compute=fp32\n", "precision.master=bf16\n", "precision.reduce=bf16\n", "precision.residual=fp32\n",
        "shard.units=blocks:2\n"}) {
    EXPECT_THAT(all, HasSubstr(knob));
  }
  EXPECT_THAT(all, Not(HasSubstr("torchtitan-sac"))) << "the recipe has it";
}

TEST(FitAnswers, RowsOfHostsCopiesAndGroups) {
  const auto rows_of = [](const SetTexts& sets, int64_t ranks_of_host) {
    std::map<std::string, std::vector<std::string>> rows;
    for (const Knob& knob : KnobsOf(PlanOfRecipe(RecipeOf8B, sets), ranks_of_host)) {
      const std::string text = SetsText(knob);
      const std::string key = text.find("mesh.tp=") == std::string::npos ? text.substr(0, text.find('=')) : "mesh.tp";
      rows[key].push_back(text);
      EXPECT_LE(rows[key].size(), 3U) << text;
    }
    return rows;
  };
  auto of_two_hosts = rows_of({"mesh.dp=16"}, 8);
  EXPECT_EQ(of_two_hosts["mesh.hosts"], SetTexts{"mesh.hosts=2"});
  EXPECT_EQ(of_two_hosts["mesh.replicate"], SetTexts{"mesh.replicate=2 mesh.dp=8"});
  EXPECT_EQ(of_two_hosts["shard.reshard_size"], (SetTexts{"shard.reshard_size=2", "shard.reshard_size=8"}));
  EXPECT_EQ(of_two_hosts["mesh.tp"],
            (SetTexts{"mesh.dp=8 mesh.tp=2 batch.accumulate=2", "mesh.dp=4 mesh.tp=4 batch.accumulate=4",
                      "mesh.dp=2 mesh.tp=8 batch.accumulate=8"}));
  auto of_four_hosts = rows_of({"mesh.replicate=2", "mesh.dp=16", "mesh.hosts=4"}, 8);
  EXPECT_FALSE(of_four_hosts.contains("mesh.hosts"));
  EXPECT_EQ(of_four_hosts["mesh.replicate"], (SetTexts{"mesh.replicate=1 mesh.dp=32", "mesh.replicate=4 mesh.dp=8"}));
  // One rank of each host has no neighbours to share matrices with, and copies on one host only take memory.
  EXPECT_FALSE(rows_of({"mesh.hosts=8"}, 1).contains("mesh.tp"));
  EXPECT_EQ(rows_of({"mesh.hosts=8"}, 8)["mesh.hosts"], SetTexts{"mesh.hosts=1"});
  EXPECT_FALSE(rows_of({}, 8).contains("mesh.replicate"));
  EXPECT_FALSE(rows_of({"shard.reshard_after_forward=false"}, 8).contains("shard.reshard_size"));
}

TEST(FitAnswers, FastestNamesTypesAndEstimatesError) {
  const auto figures = [](double seconds) { return PlanFigures{.time = StepTime{.products = Seconds{seconds}}}; };
  FitUse fit{.budget = {.bytes = Bytes{int64_t{1} << 40}}, .now = figures(25), .device = Device::Cuda};
  fit.cheapest = KnobRow{.knob = {}, .figures = fit.now};
  fit.fastest = KnobRow{.knob = {.sets = {"shard.gather_ring=3"}}, .figures = figures(25 * 0.95)};
  fit.knobs = {{.knob = {.sets = {"recompute.policy=none"}}, .figures = figures(0.5)},
               {.knob = {.sets = {"precision.master=bf16"}}, .figures = figures(24.9)},
               {.knob = {.sets = {"precision.compute=bf16"}}, .figures = figures(0.738)}};
  EXPECT_THAT(CheapestText(fit),
              AllOf(ContainsRegex("number types unchanged: the recipe as it is, a[ \n]+step[ \n]+in[ \n]+25.0 s"),
                    ContainsRegex("nothing gains more than the estimate's[ \n]+error of 6 %\n"),
                    HasSubstr("\nwith precision.compute=bf16 alone a step takes 738 ms, see the table\n"),
                    Not(HasSubstr("gather_ring"))));
  // Another mesh has another error of the rates between ranks.
  FitUse on_another = fit;
  on_another.ranks = 2;
  on_another.fastest->figures = figures(25 * 0.9);
  on_another.fastest->figures->time->mesh.set_size(Axis::Dp, 2);
  EXPECT_FALSE(on_another.is_better(*on_another.fastest->figures));
  EXPECT_THAT(CheapestText(on_another), ContainsRegex("error of 6 %, or of 12.5 % on[ \n]+another mesh\n"));
  on_another.fastest->figures->time->products = Seconds{25 * 0.87};
  EXPECT_TRUE(on_another.is_better(*on_another.fastest->figures));
  // The cheapest is not looked for where the fastest fits.
  fit.cheapest.reset();
  EXPECT_EQ(LeastRanksText(fit), "");
  fit.fastest->figures = figures(25 * 0.93);
  EXPECT_THAT(CheapestText(fit), AllOf(HasSubstr("--set shard.gather_ring=3"), HasSubstr("a step takes 738 ms"),
                                       Not(HasSubstr("nothing gains"))));
  fit.knobs.pop_back();
  EXPECT_THAT(CheapestText(fit), Not(HasSubstr("precision")));
  // A recipe that does not fit needs other keys, however little they gain.
  fit.budget.bytes = Bytes{1};
  fit.fastest->figures = figures(25);
  EXPECT_THAT(CheapestText(fit), HasSubstr("--set shard.gather_ring=3"));
}

TEST(FitAnswers, RunHasHoursAndDollars) {
  FitUse fit{.budget = {.bytes = Bytes{int64_t{1} << 40}},
             .now = {.time = StepTime{.machine = FindMachine("h100-sxm"), .products = Seconds{0.8}, .ranks = 8}},
             .device = Device::Cuda,
             .steps = 9000};
  EXPECT_THAT(RenderFitText(fit), HasSubstr("the run: 9,000 steps in 2.00 hours on 8 GPUs, 16.0 GPU-hours, without"));
  EXPECT_EQ(HoursText(Seconds{6.4}), "6.40 s");
  EXPECT_EQ(HoursText(Seconds{36e6}), "10,000 hours");
  fit.price = 2.5;
  EXPECT_THAT(RenderFitText(fit), HasSubstr("on 8 GPUs, 16.0 GPU-hours, $40.00, without"));
  fit.cheapest = KnobRow{.knob = {}, .figures = fit.now};
  fit.fastest = KnobRow{.knob = {.sets = {"recompute.policy=none"}}, .figures = fit.now};
  fit.fastest->figures->time->products = Seconds{0.4};
  EXPECT_THAT(CheapestText(fit), HasSubstr("a step in 400 ms, the run in 1.00 hours, $20.00"));
}

TEST(FitAnswers, RunHasItsEvaluations) {
  const auto time_of = [](const SetTexts& more) {
    SetTexts sets{"run.device=cuda"};
    sets.insert(sets.end(), more.begin(), more.end());
    return *FiguresOf(PlanOfRecipe(RecipeOfQuickstart, sets)).time;
  };
  const StepTime time = time_of({});
  EXPECT_EQ(time.num_evaluations, 3);
  EXPECT_DOUBLE_EQ(time.run(300).value, 300 * time.step().value + 3 * time.evaluation.value);
  EXPECT_EQ(time_of({"train.eval_every=0"}).num_evaluations, 1) << "at the end";
  // Sixteen sequences a pass: the forward of half the passes takes half the time.
  const double half = time_of({"data.eval_tokens=32769"}).evaluation.value;
  EXPECT_NEAR(half / time.evaluation.value, 0.5, 0.02);
  EXPECT_LT(time.evaluation.value, 16 * time.step().value);
  FitUse fit{.budget = {.bytes = Bytes{int64_t{1} << 40}}, .now = {.time = time}, .device = Device::Cuda, .steps = 300};
  EXPECT_THAT(RenderFitText(fit),
              HasSubstr(fmt::format("the run: 300 steps and 3 evaluations in {} on ", HoursText(time.run(300)))));
}

TEST(FitAnswers, LargerMicrobatchesKeepTokensFirst) {
  const SetTexts sets{"model.layers=2", "batch.accumulate=2"};
  const Plan plan = PlanOfRecipe(RecipeOf8B, sets);
  const FitUse fit = FitOfRecipe(plan, {.path = RecipeOf8B, .sets = sets}, ReadRecipeFile(RecipeOf8B),
                                 {.budget = {.bytes = Bytes{int64_t{24} << 30}}, .grows_batch = true});
  ASSERT_GE(fit.grown.size(), 3U);
  EXPECT_EQ(fit.grown[0].tokens, plan.run.tokens_per_step);
  EXPECT_EQ(fit.grown[1].tokens, 2 * plan.run.tokens_per_step);
  for (size_t i = 0; i < fit.grown.size(); ++i) {
    const KnobRow& row = fit.grown[i].row;
    ASSERT_TRUE(row.figures) << SetsText(row.knob) << ": " << row.knob.refused;
    EXPECT_EQ(fit.fits(*row.figures), i + 1 < fit.grown.size()) << SetsText(row.knob);
  }
  EXPECT_THAT(GrownText(fit), HasSubstr("batch.micro=4"));
}

TEST(FitAnswers, PartsComeAsTheyAreKnown) {
  const SetTexts sets{"model.layers=2", "run.device=cuda"};
  const Plan plan = PlanOfRecipe(RecipeOf8B, sets);
  std::string text;
  size_t rows = 0;
  FitPart last = FitPart::Now;
  const FitListener known = [&](const FitUse& fit, FitPart part, size_t row) {
    EXPECT_GE(part, last);
    last = part;
    // What comes later is not waited for.
    EXPECT_TRUE(part != FitPart::Now || fit.knobs.empty());
    EXPECT_EQ(fit.fastest.has_value(), part >= FitPart::Keys);
    EXPECT_EQ(fit.least_ranks.has_value(), part >= FitPart::Ranks);
    EXPECT_EQ(fit.grown.empty(), part < FitPart::Grown);
    EXPECT_EQ(row, part == FitPart::Row ? rows++ : 0);
    text += FitPartText(fit, part, row);
  };
  const FitUse fit =
      FitOfRecipe(plan, {.path = RecipeOf8B, .sets = sets}, ReadRecipeFile(RecipeOf8B),
                  {.budget = *ParseBudget("h100"), .grows_batch = true, .price = 2.0, .device_of_machine = {}}, known);
  EXPECT_EQ(last, FitPart::Grown);
  EXPECT_EQ(rows, fit.knobs.size());
  EXPECT_EQ(text, RenderFitText(fit));
  EXPECT_THAT(text, AllOf(HasSubstr(", $"), HasSubstr("larger microbatches")));
}

TEST(FitAnswers, ProgressIsALineNowAndThen) {
  const auto lines_of = [](bool is_terminal) {
    std::FILE* file = std::tmpfile();
    {
      SlowWork work(file, is_terminal);
      for (const double now : {0.2, 0.9, 1.1, 1.5, 2.0, 2.2}) {
        work.Tell(Seconds{now}, fmt::format("at {:.1f}", now));
      }
    }
    std::string text(static_cast<size_t>(std::ftell(file)), ' ');
    std::rewind(file);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
    std::fclose(file);
    return text;
  };
  EXPECT_EQ(lines_of(false), "at 1.1\nat 2.2\n");
  const std::string begin = "\r\x1b[K";
  EXPECT_EQ(lines_of(true), begin + "at 1.1" + begin + "at 1.5" + begin + "at 2.0" + begin + "at 2.2" + begin);
}

TEST(FitAnswers, BudgetsAreAmountsOrMachines) {
  EXPECT_EQ(ParseBudget("80GiB")->bytes.value, int64_t{80} << 30);
  EXPECT_EQ(ParseBudget("1.5 MiB")->bytes.value, 1'572'864);
  EXPECT_EQ(ParseBudget("80gib")->bytes.value, int64_t{80} << 30);
  EXPECT_EQ(ParseBudget("80 GB")->bytes.value, 80'000'000'000);
  EXPECT_EQ(ParseBudget("17B")->bytes.value, 17);
  ASSERT_TRUE(ParseBudget("h100").ok());
  EXPECT_EQ(ParseBudget("h100")->machine->name, "h100-sxm");
  EXPECT_EQ(ParseBudget("h100-sxm-")->machine->name, "h100-sxm-96gb");
  for (const MachineRow& row : MachineRows()) {
    const auto budget = ParseBudget(row.name);
    ASSERT_TRUE(budget.ok()) << row.name;
    EXPECT_EQ(budget->bytes.value, static_cast<int64_t>(row.memory.value)) << row.name;
  }
  for (const char* text : {"", "h", "80", "80 gi", "GiB", "1e3 GiB", "9999999999TiB", "-1GiB", "h300", "80GiB "}) {
    const auto budget = ParseBudget(text);
    EXPECT_FALSE(budget.ok()) << text;
    EXPECT_TRUE(budget.ok() || budget.error().message.starts_with("--fit: ")) << text;
  }
}

TEST(FitAnswers, CommunicatorsTakeMemoryOfMachine) {
  struct Row {
    SetTexts sets;
    int64_t mebibytes;
    const char* text;
  };
  const std::vector<Row> rows{
      {{"mesh.hosts=2"}, 584 + 62, "646 MiB per rank for 1 communicator of NCCL\n"},
      // All that crosses hosts is exchanged with the one rank of the same number.
      {{"mesh.hosts=2", "mesh.dp=4", "mesh.tp=2", "batch.accumulate=2"}, 584 + 62, " for 1 communicator of NCCL\n"},
      {{"mesh.hosts=4", "mesh.replicate=2", "mesh.dp=4"}, 584 + 2 * 380 + 3 * 62, " for 3 communicators of NCCL\n"},
      {{}, 0, ""},
      {{"run.comm=nccl-flat"}, 584 + 62, " for 1 communicator of NCCL\n"},
      // More hosts exchange no terms.
      {{"mesh.dp=256", "mesh.hosts=256"}, 584 + 62, "each of 256 hosts sends 57.2 GiB"},
      {{"mesh.dp=512", "mesh.hosts=512"}, 584, "NCCL sums over the hosts (`auto` leaves it to NCCL beyond 256)"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(testing::PrintToString(row.sets));
    SetTexts sets = row.sets;
    sets.insert(sets.begin(), "run.device=cuda");
    const Plan plan = PlanOfRecipe(RecipeOf8B, sets);
    // An amount is that of a GPU without a name.
    for (const char* budget : {"h100", "80GiB"}) {
      const FitUse fit{.budget = *ParseBudget(budget), .now = FiguresOf(plan), .device = plan.device};
      EXPECT_EQ(fit.now.communicators.value, row.mebibytes << 20);
      const auto context = static_cast<int64_t>(FindMachine("h100-sxm")->outside_arenas.value);
      EXPECT_EQ(fit.outside(fit.now).value, context + (row.mebibytes << 20));
      EXPECT_EQ(fit.left(fit.now), fit.budget.bytes - ReservedBytes(plan) - fit.outside(fit.now));
      EXPECT_EQ(RenderFitText(fit).find("communicators") != std::string::npos, row.mebibytes > 0);
    }
    EXPECT_THAT(RenderReportText(Explain(plan)), HasSubstr(row.text));
  }
}

/// On CPUs the share of each rank in what its host takes outside the arenas.
TEST(FitAnswers, WhatLiesOutsideCountsToo) {
  const Plan plan = PlanOfRecipe(RecipeOfQuickstart);
  const OutsideArenas outside = OutsideArenasOf(plan);
  FitUse fit{.now = FiguresOf(plan), .device = plan.device};
  fit.budget.bytes = ReservedBytes(plan) + Bytes{CeilDiv(outside.all().value, outside.num_ranks)};
  EXPECT_TRUE(fit.fits());
  EXPECT_EQ(fit.left(fit.now), Bytes{});
  fit.budget.bytes -= Bytes{1};
  EXPECT_FALSE(fit.fits());
  EXPECT_THAT(RenderFitText(fit), HasSubstr(fmt::format(" in arenas and {} outside them, 1 B more than the ",
                                                        FormatMemory(fit.outside(fit.now)))));
}

}  // namespace
}  // namespace shardc
