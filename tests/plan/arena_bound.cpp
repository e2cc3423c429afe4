// How near the transient arenas come to what no placement can beat: the most bytes that are alive at once, by the same
// lifetimes.
#include <gtest/gtest.h>

#include <algorithm>
#include <unordered_set>

#include "tests/support/plan_samples.h"

namespace shardc {

/// Section by section, an arena holds at least this.
static auto MostAlive(const Plan& plan, Arena arena) -> int64_t {
  int64_t most = 0;
  for (const Section& section : plan.sections) {
    int64_t now = 0;
    std::unordered_set<BufferId> alive;
    for (const Op& op : section.ops) {
      for (const Access& access : AccessesOf(op.body)) {
        const BufferId id = plan.values[access.value].buffer;
        if (plan.buffers[id].arena == arena && alive.insert(id).second) {
          now += plan.buffers[id].bytes.value;
        }
      }
      most = std::max(most, now);
      if (const auto* release = op.As<op::Release>(); release != nullptr && alive.erase(release->buffer) > 0) {
        now -= plan.buffers[release->buffer].bytes.value;
      }
    }
  }
  return most;
}

struct ModelRow {
  const char* name;
  std::vector<std::string> sets;
};
static const std::vector<ModelRow> Models{
    {"quickstart",
     {"model.layers=4", "model.hidden=128", "model.heads=4", "model.kv_heads=2", "model.ffn=384", "model.vocab=256",
      "model.seq=256", "batch.micro=8", "batch.global=16"}},
    {"5.2M",
     {"model.layers=4", "model.hidden=256", "model.heads=8", "model.kv_heads=4", "model.ffn=768", "model.vocab=4096",
      "model.seq=256", "batch.micro=4", "batch.global=8"}},
    {"128M",
     {"model.layers=8", "model.hidden=1024", "model.heads=16", "model.kv_heads=8", "model.ffn=2816",
      "model.vocab=16384", "model.seq=128", "batch.micro=1", "batch.global=2"}},
};
static const std::vector<std::vector<std::string>> Variants{
    {}, {"recompute.policy=full"}, {"recompute.policy=torchtitan-sac"}, {"precision.compute=bf16"}, {"loss.chunks=8"}};

TEST(ArenaBound, TransientArenasAreWithinTwoPerCentOfIt) {
  for (const ModelRow& model : Models) {
    for (const std::vector<std::string>& variant : Variants) {
      std::vector<std::string> sets{"batch.accumulate=1", "data.eval_tokens=10000"};
      sets.insert(sets.end(), model.sets.begin(), model.sets.end());
      sets.insert(sets.end(), variant.begin(), variant.end());
      const Plan plan = CompileSample(sets);
      const int64_t bound = MostAlive(plan, Arena::Transient);
      const int64_t planned = plan.arena_bytes[static_cast<size_t>(Arena::Transient)];
      const std::string name = fmt::format("{} {}", model.name, fmt::join(variant, " "));
      EXPECT_LE(static_cast<double>(planned), 1.02 * static_cast<double>(bound))
          << name << ": " << planned << " B planned, " << bound << " B alive at most";
      fmt::print("{}: {:.2f} per cent above the bound\n", name,
                 100.0 * (static_cast<double>(planned) / static_cast<double>(bound) - 1));
    }
  }
}

}  // namespace shardc
