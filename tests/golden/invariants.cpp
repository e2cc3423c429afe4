// What holds for every case, with nothing recorded.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/plan/local_parameter.h"
#include "compiler/plan/loops.h"
#include "compiler/report/report.h"
#include "compiler/verify/verify.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/plan_sums.h"
#include "tests/golden/recipe_shuffle.h"
#include "tests/support/json_schema.h"
#include "tests/support/nightly.h"
#include "tests/support/unified_diff.h"

namespace shardc {
namespace {

class Invariants : public testing::TestWithParam<GoldenCase> {
 protected:
  auto CompileCase(const AfterPass& after_pass = {}) -> Plan {
    const GoldenCase& golden = GetParam();
    auto plan = CompileText(golden.recipe_path(), golden.recipe.text, golden.overrides, after_pass);
    EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().message);
    return plan.ok() ? *std::move(plan) : Plan{};
  }
  /// Compiled once for all tests: compiling is most of what they cost.
  auto PlanOfCase() -> const Plan& {
    static auto& plans = *new std::map<std::string, Plan>();
    const auto found = plans.find(GetParam().name);
    return found != plans.end() ? found->second : plans.emplace(GetParam().name, CompileCase()).first->second;
  }
  /// Of `most` ways to write the same recipe, how many are compiled: of a large plan, one.
  auto WaysToTry(size_t most) -> size_t {
    size_t ops = 0;
    for (const Section& section : PlanOfCase().sections) {
      ops += section.ops.size();
    }
    constexpr size_t Large = 2000;
    return ops > Large ? 1 : most;
  }
};

/// Cases of different kinds; nightly all.
auto ChosenCases() -> std::vector<GoldenCase> {
  std::vector<GoldenCase> cases = GoldenCases();
  if (!IsNightly()) {
    const std::set<std::string_view> chosen{
        "plan_one_rank",           "plan_bf16",       "plan_hsdp",   "plan_tp_dp_tied", "plan_accumulate_three",
        "plan_recompute_sac",      "plan_loss_heads", "plan_groups", "plan_seed",       "plan_defaults_spelled_out",
        "published_llama3_8b_4x2", "plan_units_size"};
    std::erase_if(cases, [&](const GoldenCase& golden) { return !chosen.contains(golden.name); });
    CHECK(cases.size() == chosen.size(), "{} of {} chosen cases exist", cases.size(), chosen.size());
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, Invariants, testing::ValuesIn(ChosenCases()),
                         [](const auto& info) { return info.param.name; });

auto ExpectRoundTrip(const Plan& plan) -> void {
  const std::string text = PrintPlan(plan);
  const auto parsed = ParsePlan(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_TRUE(*parsed == plan) << "the plan that was read is not the one that was printed";
  EXPECT_EQ(UnifiedDiff(text, PrintPlan(*parsed), "printed", "printed again"), "");
  EXPECT_EQ(PlanHash(plan), PlanHash(*parsed));
}

TEST_P(Invariants, PrintingAndReadingAreInverse) {
  const Plan plan = CompileCase([](PassKind pass, const Plan& now) {
    SCOPED_TRACE(fmt::format("after {}", ToText(pass)));
    ExpectRoundTrip(now);
  });
  ExpectRoundTrip(plan);
}

TEST_P(Invariants, TheVerifierAccepts) {
  const Plan& plan = PlanOfCase();
  EXPECT_THAT(VerifyPlan(plan), testing::IsEmpty());
  const auto parsed = ParsePlan(PrintPlan(plan, {.origins = false, .paths = false}));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_THAT(VerifyPlan(*parsed), testing::IsEmpty());
}

TEST_P(Invariants, TheReportCountsParameters) {
  const Plan& plan = PlanOfCase();
  const Report report = Explain(plan);
  int64_t total = 0;
  int64_t trainable = 0;
  int64_t per_rank = 0;
  std::vector<int> homes(static_cast<size_t>(plan.parameters.size()));
  for (const SubVector& sub_vector : plan.sub_vectors) {
    per_rank += plan.values[sub_vector.shard].num_elements();
    EXPECT_EQ(sub_vector.length, plan.values[sub_vector.shard].num_elements() * plan.mesh.size(sub_vector.axes));
    for (const Segment& segment : sub_vector.segments) {
      // Of a parameter that is cut, each of the ranks that share it has its own part.
      const Parameter& parameter = plan.parameters[segment.parameter];
      int64_t elements = 0;
      for (const int64_t rank : plan.mesh.Group(sub_vector.cut, 0)) {
        elements += LocalElements(parameter, plan.mesh, rank);
      }
      total += elements;
      trainable += sub_vector.trainable ? elements : 0;
      ++homes[static_cast<size_t>(segment.parameter.index)];
    }
  }
  EXPECT_THAT(homes, testing::Each(1));
  EXPECT_EQ(report.parameters_total, total);
  EXPECT_EQ(report.shares.trained.num_elements, trainable);
  EXPECT_EQ(report.parameters_per_rank, per_rank);
  int64_t initialised = 0;
  int64_t num_parameters = 0;
  for (const InitUse& use : report.init) {
    initialised += use.num_elements;
    num_parameters += use.num_parameters;
  }
  EXPECT_EQ(initialised, total);
  EXPECT_EQ(num_parameters, plan.parameters.size());
}

TEST_P(Invariants, TheReportCountsCommunication) {
  const Plan& plan = PlanOfCase();
  CommunicationSums reported;
  for (const Communication& row : Explain(plan).step_communication) {
    reported[{*FromText<OpKind>(ToText(row.op)), row.axes.bits, row.dtype}] = {row.count, row.payload.value,
                                                                               row.wire(plan.mesh).value};
  }
  EXPECT_TRUE(reported == SumStepCommunication(plan));
}

TEST_P(Invariants, TrainedAndFrozenAddUp) {
  const Plan& plan = PlanOfCase();
  const Report report = Explain(plan);
  const auto& [trained, frozen] = report.shares;
  const MemoryUse kept = PersistentUse(plan);
  EXPECT_EQ(trained.state + frozen.state, kept.of(Category::Parameters) + kept.of(Category::Moments));
  EXPECT_EQ(frozen.gradients_sent, Bytes{});
  // Over the axes of the state nothing but parameters is gathered, and nothing but gradients is scattered.
  Bytes gathered;
  Bytes scattered;
  for (const Communication& row : report.step_communication) {
    const bool is_of_state = row.axes.Has(Axis::Dp) || row.axes.Has(Axis::DpInner);
    gathered += is_of_state && row.op == CollectiveKind::AllGather ? row.wire(plan.mesh) : Bytes{};
    scattered += is_of_state && row.op == CollectiveKind::ReduceScatter ? row.wire(plan.mesh) : Bytes{};
  }
  EXPECT_EQ(trained.parameters_sent + frozen.parameters_sent, gathered);
  EXPECT_GE(trained.gradients_sent, scattered);
}

TEST_P(Invariants, TheReportCountsFlops) {
  const Plan& plan = PlanOfCase();
  const Report report = Explain(plan);
  const FlopSums sums = SumStepFlops(plan);
  EXPECT_EQ(report.flops.model.value, sums.model);
  EXPECT_EQ(report.flops.recompute.value, sums.recompute);
}

TEST_P(Invariants, TheReportFindsThePeak) {
  const Plan& plan = PlanOfCase();
  const Report report = Explain(plan);
  int64_t highest = 0;
  for (const MemoryPeak& peak : report.section_peaks) {
    SCOPED_TRACE(ToText(peak.section));
    const std::vector<AliveBytes> alive = SweepMemory(plan, peak.section);
    const auto most = std::max_element(alive.begin(), alive.end(),
                                       [](const AliveBytes& a, const AliveBytes& b) { return a.total() < b.total(); });
    EXPECT_EQ(peak.op_index, most - alive.begin());
    for (size_t c = 0; c < NumCategories; ++c) {
      EXPECT_EQ(peak.use.by_category[c].value, most->by_category[c]) << ToText(static_cast<Category>(c));
    }
    highest = std::max(highest, most->total());
  }
  EXPECT_EQ(report.peak.use.total().value, highest);
  EXPECT_EQ(std::ssize(report.section_peaks),
            std::count_if(plan.sections.begin(), plan.sections.end(),
                          [](const Section& section) { return !section.ops.empty(); }));
}

/// Of what a section computes, nothing stays after the last op that touches it; if a loop touches what was there before
/// the loop, the loop's end is that op. In a ring, gathers and reductions wait for their turn.
TEST_P(Invariants, NothingIsKeptThatNoOpReads) {
  const Plan& plan = PlanOfCase();
  const auto has_ring = [&](std::string_view key) {
    return std::ranges::find(plan.recipe, key, &RecipeEntry::key) != plan.recipe.end();
  };
  for (const Section& section : plan.sections) {
    std::map<BufferId, std::pair<size_t, size_t>> first_and_last;
    std::set<BufferId> held_by_loop;
    size_t loop_begin = 0;
    size_t last_op = 0;
    for (size_t i = 0; i < section.ops.size(); ++i) {
      const Op& op = section.ops[i];
      if (const BufferId released = ReleasedBufferOf(op.body); released.valid()) {
        const Buffer& buffer = plan.buffers[released];
        const bool takes_turns = (buffer.category == Category::Gathered && has_ring("shard.gather_ring")) ||
                                 (buffer.category == Category::Gradients && has_ring("shard.reduce_ring"));
        if (!takes_turns) {
          EXPECT_EQ(first_and_last.at(released).second, last_op) << buffer.name;
        }
        continue;
      }
      last_op = i;
      loop_begin = LoopEdgeOf(op) == LoopEdge::Begin ? i : loop_begin;
      for (const Access& access : AccessesOf(op.body)) {
        const BufferId buffer = plan.values[access.value].buffer;
        auto& [first, last] = first_and_last.try_emplace(buffer, i, i).first->second;
        last = i;
        if (loop_begin > 0 && first < loop_begin) {
          held_by_loop.insert(buffer);
        }
      }
      if (LoopEdgeOf(op) == LoopEdge::End) {
        for (const BufferId buffer : held_by_loop) {
          first_and_last.at(buffer).second = i;
        }
        held_by_loop.clear();
        loop_begin = 0;
      }
    }
  }
}

TEST_P(Invariants, WhatIsReservedIsTheArenas) {
  const Plan& plan = PlanOfCase();
  const Report report = Explain(plan);
  int64_t reserved = 0;
  for (int i = 0; i < NumArenas; ++i) {
    const auto arena = static_cast<Arena>(i);
    EXPECT_EQ(plan.arena_bytes[static_cast<size_t>(i)], EndOfArena(plan, arena)) << ToText(arena);
    reserved += EndOfArena(plan, arena);
  }
  EXPECT_EQ(report.reserved.value, reserved);
  EXPECT_GE(report.reserved, report.peak.use.total());
}

TEST_P(Invariants, TheJsonReportSaysTheSame) {
  const Plan& plan = PlanOfCase();
  const Report report = Explain(plan);
  const auto json = nlohmann::json::parse(RenderReportJson(report));
  EXPECT_EQ(json["plan_hash"], PlanHash(plan));
  EXPECT_EQ(json["parameters"]["total"], report.parameters_total);
  EXPECT_EQ(json["memory"]["peak_bytes"], report.peak.use.total().value);
  EXPECT_EQ(json["memory"]["reserved_bytes"], report.reserved.value);
  EXPECT_EQ(json["communication"].size(), report.step_communication.size());
  EXPECT_DOUBLE_EQ(json["flops_per_step"].get<double>(),
                   static_cast<double>(report.flops.model.value) * static_cast<double>(plan.mesh.num_ranks()));
}

TEST_P(Invariants, ThePlanAsJsonKeepsToItsSchema) {
  static const auto schema = nlohmann::json::parse(PlanSchema());
  EXPECT_EQ(FaultOf(nlohmann::json::parse(PlanJson(PlanOfCase())), schema, schema), "");
}

TEST_P(Invariants, OrderAndCommentsDoNotCount) {
  const GoldenCase& golden = GetParam();
  const Plan& plan = PlanOfCase();
  const size_t ways = WaysToTry(3);
  for (uint64_t seed = 1; seed <= ways; ++seed) {
    const std::string text = ShuffledRecipe(golden.recipe.text, seed);
    const auto shuffled = CompileText(golden.recipe_path(), text, golden.overrides);
    ASSERT_TRUE(shuffled.ok()) << shuffled.error().message << text;
    EXPECT_EQ(PlanHash(plan), PlanHash(*shuffled));
    EXPECT_EQ(UnifiedDiff(PrintPlan(plan, {.origins = false}), PrintPlan(*shuffled, {.origins = false}), "as written",
                          fmt::format("shuffled, seed {}", seed)),
              "");
  }
}

/// The stem of the file is the run's default name, and stays.
TEST_P(Invariants, PathsDoNotCount) {
  const GoldenCase& golden = GetParam();
  const Plan& plan = PlanOfCase();
  if (plan.seed.is_set()) {
    // It is read where it lies: tests/plan/seed.cpp.
    return;
  }
  const std::string stem = golden.stem + ".toml";
  std::vector<std::string> paths{"../.././a folder/" + stem, stem, "/somewhere/else/" + stem};
  paths.resize(WaysToTry(paths.size()));
  for (const std::string& path : paths) {
    const auto moved = CompileText(path, golden.recipe.text, golden.overrides);
    ASSERT_TRUE(moved.ok()) << moved.error().message;
    EXPECT_NE(PrintPlan(plan), PrintPlan(*moved));
    EXPECT_EQ(PlanHash(plan), PlanHash(*moved));
  }
}

TEST_P(Invariants, CompilingTwiceGivesTheSameBytes) {
  const Plan& first = PlanOfCase();
  const Plan second = CompileCase();
  EXPECT_TRUE(first == second);
  EXPECT_EQ(PrintPlan(first), PrintPlan(second));
  EXPECT_EQ(PlanJson(first), PlanJson(second));
  EXPECT_EQ(RenderReportText(Explain(first)), RenderReportText(Explain(second)));
  EXPECT_EQ(RenderReportJson(Explain(first)), RenderReportJson(Explain(second)));
}

/// `# same-plan-as:`, under the other's name, which is the run's default one.
TEST_P(Invariants, EquivalentRecipesGiveOnePlan) {
  const GoldenCase& golden = GetParam();
  if (golden.same_plan_as.empty()) {
    return;
  }
  const std::string other_path = golden.folder + "/" + golden.same_plan_as;
  const std::vector<GoldenCase> cases = GoldenCases();
  const auto other = std::find_if(cases.begin(), cases.end(),
                                  [&](const GoldenCase& known) { return known.recipe_path() == other_path; });
  ASSERT_NE(other, cases.end()) << golden.recipe_path() << ": there is no " << other_path;
  const auto plan = CompileText(other_path, golden.recipe.text, golden.overrides);
  const auto other_plan = CompileText(other_path, other->recipe.text, other->overrides);
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  ASSERT_TRUE(other_plan.ok()) << other_plan.error().message;
  const PrintOptions print{.origins = false, .paths = false};
  EXPECT_EQ(UnifiedDiff(PrintPlan(*other_plan, print), PrintPlan(*plan, print), other_path, golden.recipe_path()), "");
  EXPECT_EQ(PlanHash(*other_plan), PlanHash(*plan));
}

}  // namespace
}  // namespace shardc
