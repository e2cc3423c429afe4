// Changes of single keys, and of keys that change together so that the batch stays. What a change does to memory and
// time only its plan says.

#include "compiler/fit/knobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/base/devices.h"
#include "compiler/base/text/parse_whole.h"
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
  auto AddOthers(const FitKey& row) -> void {
    const std::string now = ValueText(keys, row.key);
    for (const std::string& value : ValuesOf(row, plan)) {
      if (now != value) {
        Add({fmt::format("{}={}", row.key.text(), value)});
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
    knobs.Add({"batch.micro"}, fmt::format("it is already {}", micro));
  }
  if (accumulate % 2 == 0) {
    knobs.Add(sets(micro * 2, accumulate / 2));
  } else {
    knobs.Add({Set("batch.micro", micro * 2)}, fmt::format("accumulate is {}, so the batch would grow", accumulate));
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

auto ValuesOf(const FitKey& row, const Plan& plan) -> std::vector<std::string> {
  std::vector<std::string> values;
  for (const std::string_view value : row.values) {
    const int64_t chunks = row.subject == Subject::Chunks ? ParseWhole<int64_t>(value).value_or(1) : 1;
    if (!value.empty() && plan.data.seq % chunks == 0) {
      values.emplace_back(value);
    }
  }
  return values;
}

auto KnobsOf(const Plan& plan) -> std::vector<Knob> {
  Knobs knobs{.plan = plan, .keys = KeysOf(plan), .all = {}};
  const FitFacts facts{.dp = plan.mesh.size(AxesSharing(Shared::State)),
                       .accumulate = plan.run.accumulate,
                       .is_rounded = knobs.keys.precision.compute != ComputePrecision::Fp32,
                       .is_on_gpu = FactsOf(plan.device).family == DeviceFamily::Cuda};
  for (const FitKey& row : FitKeys()) {
    if (row.key == OriginKey("batch.micro")) {
      AddBatch(knobs);
    } else if (row.key == OriginKey("mesh.tp")) {
      AddTensorParallelism(knobs);
    } else if (Holds(row.shown, facts)) {
      knobs.AddOthers(row);
    }
  }
  return std::move(knobs.all);
}

}  // namespace shardc
