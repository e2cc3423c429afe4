// Schedules for devices whose streams run side by side, and what explain says of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "compiler/ops/unit_collectives.h"
#include "compiler/plan/loops.h"
#include "compiler/report/report.h"
#include "tests/golden/golden_case.h"

namespace shardc {
namespace {

using Sets = std::vector<std::string>;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

auto PlanWith(const Sets& sets) -> Plan {
  constexpr const char* Recipe = "tests/plan/hsdp.toml";
  auto plan = CompileRecipeFile(Recipe, sets);
  CHECK(plan.ok(), "{}", plan.error().message);
  return *std::move(plan);
}

auto ValueOf(const Plan& plan, const std::string& key) -> std::string {
  const auto entry = std::ranges::find(plan.recipe, key, &RecipeEntry::key);
  return entry == plan.recipe.end() ? "" : entry->value;
}

const Sets FourBlocks{"model.layers=4", "batch.accumulate=1", "run.device=cuda"};

auto And(Sets sets, const Sets& more) -> Sets {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

TEST(SideBySide, DefaultsFollowTheDevice) {
  for (const std::string key : {"shard.prefetch_forward", "shard.prefetch_backward"}) {
    EXPECT_EQ(ValueOf(PlanWith({}), key), "");
    EXPECT_EQ(ValueOf(PlanWith({"run.device=cuda"}), key), "1");
    EXPECT_EQ(ValueOf(PlanWith({"run.device=cuda-sm90"}), key), "1");
    EXPECT_EQ(ValueOf(PlanWith({"run.device=cuda", key + "=0"}), key), "0");
    EXPECT_EQ(ValueOf(PlanWith({key + "=2"}), key), "2");
  }
  EXPECT_EQ(ValueOf(PlanWith({}), "shard.reduce_ring"), "");
  EXPECT_EQ(ValueOf(PlanWith({"run.device=cuda"}), "shard.reduce_ring"), "2");
}

TEST(SideBySide, SumsHaveTheirStream) {
  for (const bool on_gpu : {false, true}) {
    const Plan plan = PlanWith(And(FourBlocks, {"mesh.tp=2", on_gpu ? "run.device=cuda" : "run.device=cpu"}));
    const Stream of_sums = on_gpu ? Stream::Reduce : Stream::Dp;
    std::map<Stream, int64_t> counts;
    for (const Op& op : plan.section(SectionKind::Step).ops) {
      if (const auto collective = CollectiveOf(op); collective && PeersRead(op.body, plan)) {
        const bool is_over_tp = collective->axes == AxisSet::Of(Axis::Tp);
        EXPECT_EQ(op.stream, is_over_tp                                      ? Stream::Tp
                             : collective->kind == CollectiveKind::AllGather ? Stream::Dp
                                                                             : of_sums);
        ++counts[op.stream];
      }
    }
    EXPECT_GT(counts[Stream::Dp], 0);
    EXPECT_GT(counts[Stream::Tp], 0);
    EXPECT_EQ(counts[Stream::Reduce] > 0, on_gpu);
  }
}

TEST(SideBySide, ReleasesFollowTheLastUse) {
  const Plan plan = PlanWith(FourBlocks);
  const Op* last = nullptr;
  int64_t beside = 0;
  int64_t in_turn = 0;
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    const BufferId released = ReleasedBufferOf(op.body);
    if (!released.valid()) {
      last = &op;
      continue;
    }
    const bool is_last_use = std::ranges::any_of(
        AccessesOf(last->body), [&](const Access& access) { return plan.values[access.value].buffer == released; });
    // A buffer whose turn in the ring is over gives its memory to compute.
    EXPECT_EQ(op.stream, is_last_use ? last->stream : Stream::Compute) << plan.buffers[released].name;
    beside += op.stream == Stream::Compute ? 0 : 1;
    in_turn += is_last_use ? 0 : 1;
  }
  EXPECT_GT(beside, 0);
  EXPECT_GT(in_turn, 0);
  const Plan one_by_one = PlanWith({"run.device=cpu"});
  for (const Op& op : one_by_one.section(SectionKind::Step).ops) {
    EXPECT_TRUE(!ReleasedBufferOf(op.body).valid() || op.stream == Stream::Compute);
  }
}

/// The sums over replicas that stand right after an op which writes what they sum, and those that do not.
struct Sums {
  int64_t at_once = 0;
  int64_t late = 0;
};

auto SumsOf(const Plan& plan) -> Sums {
  Sums sums;
  const Op* writer = nullptr;
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    if (ReleasedBufferOf(op.body).valid()) {
      continue;
    }
    const auto sum = CollectiveOf(op);
    if (sum && sum->kind == CollectiveKind::AllReduce && sum->axes.Has(Axis::Replicate) && PeersRead(op.body, plan)) {
      const BufferId summed = plan.values[sum->from].buffer;
      const bool is_at_once =
          writer != nullptr && std::ranges::any_of(AccessesOf(writer->body), [&](const Access& access) {
            return access.kind != AccessKind::Read && plan.values[access.value].buffer == summed;
          });
      (is_at_once ? sums.at_once : sums.late) += 1;
    }
    writer = &op;
  }
  return sums;
}

TEST(SideBySide, ReplicasSumAfterReduceScatters) {
  const Sums each = SumsOf(PlanWith(FourBlocks));
  EXPECT_EQ(each.at_once, 6);
  EXPECT_EQ(each.late, 0);
  const Sums last = SumsOf(PlanWith(And(FourBlocks, {"batch.accumulate=2", "batch.reduce=last"})));
  EXPECT_EQ(last.at_once, 6);
  EXPECT_EQ(last.late, 0);
  // Copies of the whole model: after the product, or the norm's backward, that ends a unit's gradients.
  const Sums whole = SumsOf(PlanWith(And(FourBlocks, {"mesh.dp=1"})));
  EXPECT_EQ(whole.at_once + whole.late, 6);
  EXPECT_GE(whole.at_once, 5);
}

TEST(SideBySide, SumsStayAfterTheLoop) {
  const Plan plan = PlanWith(And(FourBlocks, {"batch.accumulate=2"}));
  LoopTracker loops;
  int64_t sums = 0;
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    loops.Enter(op);
    const auto sum = CollectiveOf(op);
    if (sum && sum->axes.Has(Axis::Replicate) && PeersRead(op.body, plan)) {
      EXPECT_FALSE(loops.in_loop());
      ++sums;
    }
  }
  EXPECT_EQ(sums, 6);
}

auto NamesOf(const std::vector<OverlapUse>& uses, CollectiveKind op, bool is_beside) -> std::vector<std::string> {
  std::vector<std::string> names;
  for (const OverlapUse& use : uses) {
    if (use.op == op && use.is_beside_compute == is_beside) {
      names.insert(names.end(), use.names.begin(), use.names.end());
    }
  }
  return names;
}

TEST(SideBySide, ExplainNamesWhatOverlaps) {
  const Plan ahead = PlanWith(FourBlocks);
  const auto uses = OverlapsOf(ahead);
  // Nothing is computed before the first gather.
  EXPECT_THAT(NamesOf(uses, CollectiveKind::AllGather, false), Contains("embed.gathered"));
  EXPECT_THAT(NamesOf(uses, CollectiveKind::AllGather, true), Contains("layers.1.gathered"));
  EXPECT_THAT(NamesOf(uses, CollectiveKind::ReduceScatter, true), Contains("layers.2.gradient"));
  EXPECT_THAT(NamesOf(uses, CollectiveKind::ReduceScatter, false), Contains("embed.gradient"));
  // The sum of losses is wanted at once.
  EXPECT_THAT(NamesOf(uses, CollectiveKind::AllReduce, false), Contains("count.whole"));
  const Plan at_once = PlanWith(And(FourBlocks, {"shard.prefetch_forward=0", "shard.prefetch_backward=0"}));
  EXPECT_THAT(NamesOf(OverlapsOf(at_once), CollectiveKind::AllGather, true), Not(Contains("layers.1.gathered")));

  const std::string text = RenderReportText(Explain(ahead));
  EXPECT_THAT(text, HasSubstr("  beside compute: "));
  EXPECT_THAT(text, HasSubstr("  apart from compute: "));
  const auto json = nlohmann::json::parse(RenderReportJson(Explain(ahead)));
  EXPECT_EQ(json["overlaps"].size(), uses.size());
}

TEST(SideBySide, SumsOverHostsLeaveComputeAlone) {
  // Scratch of a sum that went to the next product would make it wait.
  for (const Sets& sets : {Sets{"mesh.hosts=2", "mesh.dp=4"}, Sets{"mesh.hosts=2", "mesh.replicate=1", "mesh.dp=4"}}) {
    const auto uses = OverlapsOf(PlanWith(And(FourBlocks, sets)));
    for (const char* name : {"head.gradient", "layers.3.gradient", "layers.2.gradient", "layers.1.gradient"}) {
      EXPECT_THAT(NamesOf(uses, CollectiveKind::ReduceScatter, true), Contains(name));
    }
  }
}

TEST(SideBySide, ExplainIsSilentOnCpus) {
  const Plan plan = PlanWith({"run.device=cpu"});
  EXPECT_THAT(OverlapsOf(plan), IsEmpty());
  EXPECT_THAT(RenderReportText(Explain(plan)), Not(HasSubstr("beside compute")));
  EXPECT_FALSE(nlohmann::json::parse(RenderReportJson(Explain(plan))).contains("overlaps"));
}

}  // namespace
}  // namespace shardc
