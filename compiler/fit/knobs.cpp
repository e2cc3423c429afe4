// Changes of single keys, and of keys that change together so that the batch stays. What a change does to memory and
// time only its plan says.

#include "compiler/fit/knobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/base/devices.h"
#include "compiler/plan/header.h"

namespace shardc {

namespace {

struct Knobs {
  const Plan& plan;
  PlanKeys keys;
  std::vector<Knob> all;

  auto Add(std::vector<std::string> sets, std::string refused = "") -> void {
    all.push_back({std::move(sets), std::move(refused)});
  }
  /// Sets a key to each of the values that it does not have.
  auto AddOthers(OriginKey key, const std::vector<std::string>& values) -> void {
    for (const std::string& value : values) {
      if (ValueText(keys, key) != value) {
        Add({fmt::format("{}={}", key.text(), value)});
      }
    }
  }
};

auto Set(std::string_view key, int64_t value) -> std::string { return fmt::format("{}={}", key, value); }

auto AddBatch(Knobs& knobs) -> void {
  const int64_t micro = knobs.plan.run.micro_batch;
  const int64_t accumulate = knobs.plan.run.accumulate;
  const auto sets = [&](int64_t new_micro, int64_t new_accumulate) {
    return std::vector{Set("batch.micro", new_micro), Set("batch.accumulate", new_accumulate)};
  };
  if (micro % 2 == 0) {
    knobs.Add(sets(micro / 2, accumulate * 2));
  } else {
    knobs.Add({"batch.micro"}, fmt::format("it is {}, which cannot be halved", micro));
  }
  if (accumulate % 2 == 0) {
    knobs.Add(sets(micro * 2, accumulate / 2));
  } else {
    knobs.Add({Set("batch.micro", micro * 2)}, fmt::format("accumulate is {}, so the batch would grow", accumulate));
  }
  if (accumulate > 1) {
    knobs.AddOthers("batch.reduce", {"each", "last"});
  }
}

auto AddLoss(Knobs& knobs) -> void {
  const int64_t seq = knobs.plan.data.seq;
  for (const int64_t chunks : {1, 2, 8, 32}) {
    if (seq % chunks == 0) {
      knobs.AddOthers("loss.chunks", {std::to_string(chunks)});
    }
  }
}

auto AddTensorParallelism(Knobs& knobs) -> void {
  const int64_t dp = knobs.plan.mesh.size(Axis::Dp);
  const int64_t tp = knobs.plan.mesh.size(Axis::Tp);
  const int64_t micro = knobs.plan.run.micro_batch;
  const int64_t accumulate = knobs.plan.run.accumulate;
  // Half as many ranks along dp see twice as many microbatches each, and the other way round.
  if (dp % 2 == 0) {
    knobs.Add({Set("mesh.dp", dp / 2), Set("mesh.tp", tp * 2), Set("batch.accumulate", accumulate * 2)});
  }
  if (tp % 2 == 0 && accumulate % 2 == 0) {
    knobs.Add({Set("mesh.dp", dp * 2), Set("mesh.tp", tp / 2), Set("batch.accumulate", accumulate / 2)});
  } else if (tp % 2 == 0 && micro % 2 == 0) {
    knobs.Add({Set("mesh.dp", dp * 2), Set("mesh.tp", tp / 2), Set("batch.micro", micro / 2)});
  } else if (tp % 2 == 0) {
    knobs.Add({Set("mesh.dp", dp * 2), Set("mesh.tp", tp / 2)}, "the batch would grow");
  }
}

auto AddPrefetch(Knobs& knobs) -> void {
  knobs.AddOthers("shard.prefetch_forward", {"0", "1"});
  knobs.AddOthers("shard.prefetch_backward", {"0", "1"});
  for (const int ring : {2, 3}) {
    knobs.AddOthers("shard.gather_ring", {std::to_string(ring)});
  }
}

}  // namespace

auto ShellWord(const std::string& set) -> std::string {
  return set.find(' ') == std::string::npos ? set : fmt::format("'{}'", set);
}

auto SetsText(const Knob& knob) -> std::string {
  std::string text;
  for (const std::string& set : knob.sets) {
    text += (text.empty() ? "" : " ") + ShellWord(set);
  }
  return text;
}

auto KnobsOf(const Plan& plan) -> std::vector<Knob> {
  Knobs knobs{.plan = plan, .keys = KeysOf(plan), .all = {}};
  knobs.AddOthers("recompute.policy", {"none", "torchtitan-sac", "full"});
  AddBatch(knobs);
  AddLoss(knobs);
  if (plan.mesh.size(AxesSharing(Shared::State)) > 1) {
    knobs.AddOthers("shard.reshard_after_forward", {"true", "false"});
  }
  AddTensorParallelism(knobs);
  if (plan.mesh.size(AxesSharing(Shared::State)) > 1) {
    AddPrefetch(knobs);
  }
  knobs.AddOthers("precision.compute", {"fp32", "bf16"});
  knobs.AddOthers("precision.master", {"fp32", "bf16"});
  knobs.AddOthers("precision.reduce", {"fp32", "bf16"});
  if (knobs.keys.precision.compute != ComputePrecision::Fp32) {
    knobs.AddOthers("precision.residual", {"compute", "fp32"});
  }
  knobs.AddOthers("shard.units", {"block", "torchtitan", "blocks:2", "size:256 MiB"});
  if (FactsOf(plan.device).family == DeviceFamily::Cuda) {
    knobs.AddOthers("run.attention_workspace", {"512 MiB", "4 GiB"});
    knobs.AddOthers("run.deterministic", {"false"});
  }
  return std::move(knobs.all);
}

}  // namespace shardc
