// What the report tells beyond sums: each figure against a second way to get it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/checkpoint/layout.h"
#include "compiler/cost/fold.h"
#include "compiler/driver/fit.h"
#include "compiler/plan/local_parameter.h"
#include "compiler/report/compare.h"
#include "compiler/report/json_lines.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/shipped_recipes.h"
#include "tests/support/repository.h"

namespace shardc {
namespace {

using OrderedJson = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

TEST(ExplainDecides, CommittedReportsHave100Columns) {
  for (const std::string& recipe : ShippedRecipes()) {
    if (recipe.starts_with("recipes/published/")) {
      const std::string report = recipe.substr(0, recipe.size() - std::string_view("toml").size()) + "explain";
      EXPECT_LE(LongestLine(ReadRepositoryFile(report)), 100U) << report;
    }
  }
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
  for (const char* recipe :
       {RecipeOfQuickstart, "tests/plan/tp_dp_tied.toml", "tests/plan/frozen_below.toml", "tests/plan/master_bf16.toml",
        "tests/plan/sgd.toml", "tests/plan/hsdp.toml", "tests/plan/adapters_base.toml"}) {
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
            if (plan.parameters[segment.parameter].in_base) {
              continue;
            }
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
