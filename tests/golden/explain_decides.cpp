// What the report tells beyond sums: each figure against a second way to get it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/checkpoint/layout.h"
#include "compiler/cost/fold.h"
#include "compiler/driver/fit.h"
#include "compiler/ops/cpu/outside_arenas.h"
#include "compiler/plan/local_parameter.h"
#include "compiler/report/compare.h"
#include "compiler/report/json_lines.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/plan_sums.h"
#include "tests/support/nightly.h"
#include "tests/support/repository.h"

namespace shardc {
namespace {

using OrderedJson = nlohmann::ordered_json;
using SetTexts = std::vector<std::string>;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

auto PlanOfRecipe(const std::string& recipe, const SetTexts& sets = {}) -> Plan {
  auto plan = CompileRecipeFile(recipe, sets);
  CHECK(plan.ok(), "{}: {}", recipe, plan.error().message);
  return *std::move(plan);
}

/// Recipes that users are given.
auto ShippedRecipes() -> SetTexts {
  SetTexts recipes;
  for (const char* folder : {"recipes", "recipes/published"}) {
    for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(SHARDC_SOURCE_DIR) / folder)) {
      if (entry.path().extension() == ".toml") {
        recipes.push_back(fmt::format("{}/{}", folder, entry.path().filename().string()));
      }
    }
  }
  std::ranges::sort(recipes);
  return recipes;
}

auto FitOfShipped(const Plan& plan, const std::string& recipe, const SetTexts& sets = {}) -> FitUse {
  return FitOfRecipe(plan, {.path = recipe, .sets = sets}, ReadRecipeFile(recipe), {.bytes = Bytes{int64_t{80} << 30}});
}

constexpr const char* RecipeOf8B = "recipes/published/llama3_8b.toml";
constexpr const char* RecipeOf8B4x2 = "recipes/published/llama3_8b_4x2.toml";
constexpr const char* RecipeOfQuickstart = "recipes/quickstart.toml";

TEST(ExplainDecides, CommittedReportsHave100Columns) {
  for (const std::string& recipe : ShippedRecipes()) {
    if (recipe.starts_with("recipes/published/")) {
      const std::string report = recipe.substr(0, recipe.size() - std::string_view("toml").size()) + "explain";
      EXPECT_LE(LongestLine(ReadRepositoryFile(report)), 100U) << report;
    }
  }
}

/// The tables of fit are not committed. Nightly all are looked at.
TEST(ExplainDecides, TablesOfFitHave100Columns) {
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
TEST(ExplainDecides, KnobsAreWhatPlanningByHandGives) {
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
TEST(ExplainDecides, KnobsAreOfAllKinds) {
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

TEST(ExplainDecides, RowsOfHostsCopiesAndGroups) {
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

TEST(ExplainDecides, FastestNamesTypesAndEstimatesError) {
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

TEST(ExplainDecides, RunHasHoursAndDollars) {
  FitUse fit{.budget = {.bytes = Bytes{int64_t{1} << 40}},
             .now = {.time = StepTime{.machine = FindMachine("h100-sxm"), .products = Seconds{0.8}, .ranks = 8}},
             .device = Device::Cuda,
             .steps = 9000};
  EXPECT_THAT(RenderFitText(fit), HasSubstr("the run: 9,000 steps in 2.00 hours on 8 GPUs, 16.0 GPU-hours, without"));
  EXPECT_EQ(HoursText(Seconds{0.8}, 8), "6.40 s");
  EXPECT_EQ(HoursText(Seconds{36}, 1'000'000), "10,000 hours");
  fit.price = 2.5;
  EXPECT_THAT(RenderFitText(fit), HasSubstr("on 8 GPUs, 16.0 GPU-hours, $40.00, without"));
  fit.cheapest = KnobRow{.knob = {}, .figures = fit.now};
  fit.fastest = KnobRow{.knob = {.sets = {"recompute.policy=none"}}, .figures = fit.now};
  fit.fastest->figures->time->products = Seconds{0.4};
  EXPECT_THAT(CheapestText(fit), HasSubstr("a step in 400 ms, the run in 1.00 hours, $20.00"));
}

TEST(ExplainDecides, LargerMicrobatchesKeepTokensFirst) {
  const SetTexts sets{"model.layers=2", "batch.accumulate=2"};
  const Plan plan = PlanOfRecipe(RecipeOf8B, sets);
  const FitUse fit = FitOfRecipe(plan, {.path = RecipeOf8B, .sets = sets}, ReadRecipeFile(RecipeOf8B),
                                 {.bytes = Bytes{int64_t{24} << 30}}, true);
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

TEST(ExplainDecides, BudgetsAreAmountsOrMachines) {
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

TEST(ExplainDecides, CommunicatorsTakeMemoryOfMachine) {
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
TEST(ExplainDecides, WhatLiesOutsideCountsToo) {
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

TEST(ExplainDecides, WhatIsAliveAddsUpToThePeak) {
  for (const std::string& recipe : ShippedRecipes()) {
    const Plan plan = PlanOfRecipe(recipe);
    const Report report = Explain(plan);
    MemoryUse sum;
    for (const AliveBuffers& alike : report.alive_at_peak) {
      sum.of(alike.category) += alike.bytes;
      EXPECT_TRUE(alike.blocks.empty() || alike.blocks.size() == static_cast<size_t>(alike.count)) << alike.name;
    }
    EXPECT_EQ(sum.by_category, report.peak.use.by_category) << recipe;
    Bytes most;
    for (const MemoryUse& use : report.memory_over_step) {
      most = std::max(most, use.total());
    }
    EXPECT_EQ(report.memory_over_step.size(), plan.section(SectionKind::Step).ops.size());
    for (const MemoryPeak& peak : report.section_peaks) {
      EXPECT_TRUE(peak.section != SectionKind::Step || peak.use.total() == most) << recipe;
    }
  }
}

TEST(ExplainDecides, TellsWhatDeterminismCosts) {
  const SetTexts gpu{"run.device=cuda", "precision.compute=bf16"};
  const auto text_of = [&](const SetTexts& more) {
    SetTexts sets = gpu;
    sets.insert(sets.end(), more.begin(), more.end());
    return RenderReportText(Explain(PlanOfRecipe(RecipeOf8B, sets)));
  };
  EXPECT_THAT(text_of({"run.deterministic=true"}), Not(HasSubstr("\nbits  ")));
  const std::string open = text_of({"run.deterministic=false"});
  EXPECT_THAT(open, HasSubstr("\nbits        attention's backward adds in an order that changes from run to run"));
  EXPECT_THAT(open, Not(HasSubstr("run.attention_workspace")));
  EXPECT_THAT(text_of({"run.deterministic=false", "precision.compute=fp32"}),
              HasSubstr("\nbits        run.deterministic = false changes nothing"));
}

/// What a block keeps is what the plan's own peak has less if the block were not there.
TEST(ExplainDecides, ABlockKeepsWhatItsPolicySays) {
  const auto tensors_of = [](const Plan& plan) {
    std::map<std::string, AfterForward> fates;
    const std::vector<BlockActivations> tables = BlockActivationsOf(plan);
    EXPECT_EQ(tables.size(), 1U);
    for (const BlockTensor& tensor : tables.front().tensors) {
      fates[tensor.name] = tensor.after;
    }
    return fates;
  };
  const auto none = tensors_of(PlanOfRecipe(RecipeOf8B, {"recompute.policy=none"}));
  for (const auto& [name, after] : none) {
    EXPECT_TRUE(after == AfterForward::Kept || after == AfterForward::Freed) << name;
  }
  EXPECT_EQ(none.at("mlp.up_proj"), AfterForward::Kept);
  const auto full = tensors_of(PlanOfRecipe(RecipeOf8B, {"recompute.policy=full"}));
  for (const auto& [name, after] : full) {
    const bool is_input_of_next = name == "mlp.down_proj.sum" || name == "mlp.down_proj";
    EXPECT_EQ(after == AfterForward::Kept, is_input_of_next) << name;
  }
  EXPECT_EQ(full.at("self_attn.k_proj"), AfterForward::ComputedAgain);
  const auto over_tp = tensors_of(PlanOfRecipe(RecipeOf8B4x2, {"recompute.policy=full"}));
  EXPECT_EQ(over_tp.at("input_layernorm.gathered"), AfterForward::GatheredAgain);
  EXPECT_EQ(over_tp.at("swiglu"), AfterForward::ComputedAgain);

  // Two blocks less take the bytes that two blocks keep off what is alive between forward and backward.
  const auto alive_before_backward = [](const Plan& plan) {
    const std::vector<Op>& ops = plan.section(SectionKind::Step).ops;
    const auto loss = std::ranges::find_if(ops, [](const Op& op) { return op.kind() == OpKind::CrossEntropyBackward; });
    return MemoryOverOps(plan, SectionKind::Step)[static_cast<size_t>(loss - ops.begin())].of(Category::Activations);
  };
  const Plan plan = PlanOfRecipe(RecipeOf8B);
  const Bytes kept = BlockActivationsOf(plan).front().kept();
  EXPECT_EQ(alive_before_backward(plan) - alive_before_backward(PlanOfRecipe(RecipeOf8B, {"model.layers=30"})),
            kept * 2);
}

TEST(ExplainDecides, BlocksThatAreAlikeAreFolded) {
  const Plan plan = PlanOfRecipe(RecipeOf8B, {"recompute.policy=full", "recompute.layers=layer % 2 == 0"});
  const std::vector<BlockActivations> tables = BlockActivationsOf(plan);
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(FoldNumbers(tables[0].blocks), "0, 2, 4, ... 30");
  EXPECT_EQ(FoldNumbers(tables[1].blocks), "1, 3, 5, ... 31");
  const Plan resharded = PlanOfRecipe(RecipeOf8B, {"shard.reshard_after_forward=layer % 2 == 0"});
  const std::string text = RenderReportText(Explain(resharded));
  EXPECT_THAT(text, HasSubstr("layers.0, 2, 4, ... 30"));
  EXPECT_THAT(text, HasSubstr("layers.1, 3, 5, ... 31"));
}

TEST(ExplainDecides, NumbersAreFoldedByStrides) {
  EXPECT_EQ(FoldNumbers({}), "");
  EXPECT_EQ(FoldNumbers({7}), "7");
  EXPECT_EQ(FoldNumbers({0, 1}), "0, 1");
  EXPECT_EQ(FoldNumbers({0, 1, 2}), "0 ... 2");
  EXPECT_EQ(FoldNumbers({1, 3, 5}), "1, 3, 5");
  EXPECT_EQ(FoldNumbers({1, 4, 7, 10, 13}), "1, 4, 7, ... 13");
  EXPECT_EQ(FoldNumbers({0, 1, 2, 3, 9}), "0 ... 3, 9");
  EXPECT_EQ(FoldNumbers({0, 5, 6, 7, 8}), "0, 5 ... 8");
  EXPECT_EQ(FoldNumbers({0, 1, 5, 7, 20, 21, 40, 90, 200}).find("(9 in all)") == std::string::npos, false);
  EXPECT_EQ(FoldNames({"layers.3"}), "layers.3");
  EXPECT_EQ(FoldNames({"layers.0", "layers.1", "layers.2"}), "layers.0 ... 2");
  EXPECT_EQ(FoldNames({"layers.0.frozen", "layers.2.frozen"}), "layers.{0, 2}.frozen");
  EXPECT_EQ(FoldNames({"layers.0-1", "layers.2-3"}), "layers.0-1 ... 2-3");
  EXPECT_EQ(WithShortNumbers("normal(0, 0.014142135623730951)"), "normal(0, 0.0141421)");
  EXPECT_EQ(WithShortNumbers("16777216 + x1.5 + 1e-05"), "16777216 + x1.5 + 1e-05");
  EXPECT_EQ(WithShortNumbers("seed('layers.0.norm') * 0.014142135623730951"), "seed('layers.0.norm') * 0.0141421");
}

/// Against the pieces that ranks write, as the format of checkpoints has them.
TEST(ExplainDecides, ACheckpointHasWhatTheRanksWrite) {
  for (const char* recipe : {RecipeOfQuickstart, "tests/plan/tp_dp_tied.toml", "tests/plan/frozen_below.toml",
                             "tests/plan/master_bf16.toml", "tests/plan/sgd.toml", "tests/plan/hsdp.toml"}) {
    const Plan plan = PlanOfRecipe(recipe);
    int64_t written = 0;
    for (const SubVector& sub_vector : plan.sub_vectors) {
      const Layout layout = LayoutOf(sub_vector);
      for (int64_t rank = 0; rank < plan.mesh.num_ranks(); ++rank) {
        if (!Stores(layout, plan.mesh, rank)) {
          continue;
        }
        for (const StateRole role : StateRoles) {
          for (const Segment& segment : sub_vector.segments) {
            const Interval owned = OwnedElementsOf(plan, sub_vector, segment, rank);
            written +=
                HasRole(sub_vector, role) ? (owned.end - owned.begin) * SizeOf(StateTypeOf(plan, sub_vector, role)) : 0;
          }
        }
      }
    }
    EXPECT_EQ(CheckpointBytesOf(plan).value, written) << recipe;
  }
}

TEST(ExplainDecides, JsonHasWhatTheTextHas) {
  const Plan plan = PlanOfRecipe(RecipeOf8B);
  Report report = Explain(plan);
  report.fit = FitOfShipped(plan, RecipeOf8B);
  const OrderedJson json = OrderedJson::parse(RenderReportJson(report));
  EXPECT_EQ(json["memory"]["over_step"]["bytes"].size(), plan.section(SectionKind::Step).ops.size());
  EXPECT_EQ(*std::ranges::max_element(json["memory"]["over_step"]["bytes"]), json["memory"]["peak_bytes"]);
  EXPECT_EQ(json["memory"]["over_step"]["phases"][0][1], "none");
  EXPECT_EQ(json["memory"]["alive_at_peak"].size(), report.alive_at_peak.size());
  EXPECT_EQ(json["run"]["tokens"], 65'536'000);
  EXPECT_EQ(json["checkpoint"]["bytes"], 8'030'261'248 * 12);
  EXPECT_EQ(json["blocks"][0]["tensors"][0]["name"], "input_layernorm");
  EXPECT_EQ(json["fit"]["fits"], true);
  EXPECT_EQ(json["fit"]["spare_bytes"].get<int64_t>() + json["fit"]["outside_arenas_bytes"].get<int64_t>(),
            (int64_t{80} << 30) - report.reserved.value);
  EXPECT_EQ(json["fit"]["knobs"].size(), report.fit->knobs.size());
}

/// What a browser finds in an element.
auto IslandOf(const std::string& page) -> std::string {
  const std::string begin = "<script type=\"application/json\" id=\"report\">";
  const size_t from = page.find(begin) + begin.size();
  return page.substr(from, page.find("</script", from) - from);
}

TEST(ExplainDecides, ThePageHoldsTheJsonAndLoadsNothing) {
  for (const std::string& recipe : ShippedRecipes()) {
    Plan plan = PlanOfRecipe(recipe);
    plan.run.run_id = "a</script><b>&";
    plan.model["family"] = "a</script>";
    const Report report = Explain(plan);
    const std::string page = RenderReportHtml(report);
    EXPECT_EQ(IslandOf(page), RenderReportJson(report)) << recipe;
    EXPECT_EQ(OrderedJson::parse(IslandOf(page))["model"]["family"], "a</script>");
    EXPECT_THAT(page, HasSubstr("<h1>a&lt;/script&gt;&lt;b&gt;&amp;</h1>"));
    const std::string shown = page.substr(0, page.find("<script"));
    for (const char* outside : {"http:", "https:", "src=", "href=", "url(", "@import"}) {
      EXPECT_THAT(shown, Not(HasSubstr(outside))) << recipe;
    }
    for (const char* part : {"<svg", "prefers-color-scheme: dark", "width=device-width", "Memory per rank",
                             "Memory over the ops", "Communication", "Schedule of lr", "Results of a block"}) {
      EXPECT_THAT(shown, HasSubstr(part)) << recipe;
    }
  }
}

TEST(ExplainDecides, ComparisonsNameKeysAndFigures) {
  const Plan plan = PlanOfRecipe(RecipeOf8B);
  const Plan full = PlanOfRecipe(RecipeOf8B, {"recompute.policy=full", "train.log_every=20"});
  const Report a = Explain(plan);
  const Report b = Explain(full);
  const Comparison same = Compare(a, a);
  EXPECT_TRUE(same.is_same());
  EXPECT_TRUE(same.figures.empty());
  const Comparison comparison = Compare(a, b);
  EXPECT_FALSE(comparison.is_same());
  ASSERT_EQ(comparison.keys.size(), 2U);
  EXPECT_EQ(comparison.keys[0].key, "recompute.policy");
  EXPECT_EQ(comparison.keys[0].a, "\"torchtitan-sac\"");
  EXPECT_EQ(comparison.keys[0].b, "\"full\"");
  EXPECT_EQ(comparison.keys[1].key, "train.log_every");
  const auto peak = std::ranges::find(comparison.figures, "peak", &FigureChange::name);
  ASSERT_NE(peak, comparison.figures.end());
  EXPECT_EQ(peak->a, a.peak.use.total().value);
  EXPECT_EQ(peak->b, b.peak.use.total().value);
  EXPECT_LE(LongestLine(RenderComparisonText(comparison)), 100U);
  const OrderedJson json = OrderedJson::parse(RenderComparisonJson(comparison));
  EXPECT_EQ(json["same"], false);
  EXPECT_EQ(json["keys"][0]["b"], "\"full\"");
  EXPECT_EQ(json["figures"].size(), comparison.figures.size());

  // A key that one of them lacks, and collectives that one of them lacks.
  const Plan one_rank = PlanOfRecipe(RecipeOf8B, {"mesh.dp=1", "loss.chunks=8", "shard.gather_ring=2"});
  const Comparison by_ranks = Compare(a, Explain(one_rank));
  const std::string text = RenderComparisonText(by_ranks);
  EXPECT_THAT(text, HasSubstr("shard.gather_ring  (unset) -> 2"));
  EXPECT_THAT(text, HasSubstr("all_gather dp bf16"));
  EXPECT_THAT(text, HasSubstr("-> "));
  EXPECT_THAT(text, Not(HasSubstr("control")));
  EXPECT_THAT(RenderComparisonJson(by_ranks), HasSubstr("control none i64"));
}

}  // namespace
}  // namespace shardc
