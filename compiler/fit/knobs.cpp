// Changes of single keys, and of keys that change together so that the batch stays. What a change does to memory and
// time only its plan says.

#include "compiler/fit/knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "compiler/base/devices.h"
#include "compiler/base/text/parse_whole.h"
#include "compiler/plan/header.h"

namespace shardc {

namespace {

struct Knobs {
  const Plan& plan;
  PlanKeys keys;
  int64_t ranks_of_host = 1;
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
  // Half as many ranks along dp see twice as many microbatches each, and the other way round. Ranks along tp stay on
  // one host.
  for (int64_t factor = 2; factor <= 8 && dp % factor == 0 && tp * factor <= knobs.ranks_of_host; factor *= 2) {
    knobs.Add({Set("mesh.dp", dp / factor), Set("mesh.tp", tp * factor), Set("batch.accumulate", accumulate * factor)});
  }
  if (tp % 2 == 0 && accumulate % 2 == 0) {
    knobs.Add({Set("mesh.dp", dp * 2), Set("mesh.tp", tp / 2), Set("batch.accumulate", accumulate / 2)});
  } else if (tp % 2 == 0 && micro % 2 == 0) {
    knobs.Add({Set("mesh.dp", dp * 2), Set("mesh.tp", tp / 2), Set("batch.micro", micro / 2)});
  } else if (tp % 2 == 0) {
    knobs.Add({Set("mesh.dp", dp * 2), Set("mesh.tp", tp / 2)}, "the batch would grow");
  }
}

/// Adds the number of hosts that the ranks fill.
auto AddHosts(Knobs& knobs) -> void {
  const int64_t hosts = CeilDiv(knobs.plan.mesh.num_ranks(), knobs.ranks_of_host);
  if (hosts != knobs.plan.mesh.hosts && knobs.plan.mesh.num_ranks() % hosts == 0) {
    knobs.Add({Set("mesh.hosts", hosts)});
  }
}

auto AddCopies(Knobs& knobs) -> void {
  const int64_t along = knobs.plan.mesh.size(Axis::Replicate) * knobs.plan.mesh.size(Axis::Dp);
  for (const int64_t copies : CopiesOffered(knobs.plan, knobs.ranks_of_host)) {
    knobs.Add({Set("mesh.replicate", copies), Set("mesh.dp", along / copies)});
  }
}

auto AddGroups(Knobs& knobs) -> void {
  for (const int64_t group : GroupsOffered(knobs.plan, knobs.ranks_of_host)) {
    knobs.Add({Set("shard.reshard_size", group)});
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

auto CopiesOffered(const Plan& plan, int64_t ranks_of_host) -> std::set<int64_t> {
  const Mesh& mesh = plan.mesh;
  const int64_t now = mesh.size(Axis::Replicate);
  const int64_t hosts = std::max(mesh.hosts, CeilDiv(mesh.num_ranks(), ranks_of_host));
  std::set<int64_t> copies{1, std::min<int64_t>(2, hosts), hosts};
  std::erase_if(copies, [&](int64_t each) { return each == now || now * mesh.size(Axis::Dp) % each != 0; });
  return copies;
}

auto GroupsOffered(const Plan& plan, int64_t ranks_of_host) -> std::set<int64_t> {
  const int64_t dp = plan.mesh.size(Axis::Dp);
  if (!std::ranges::any_of(plan.units, &Unit::reshard_after_forward)) {
    return {};
  }
  std::set<int64_t> groups{2, std::max<int64_t>(1, ranks_of_host / plan.mesh.size(Axis::Tp)), dp / 2};
  const std::optional<int64_t> now = KeysOf(plan).shard.reshard_size;
  std::erase_if(groups, [&](int64_t each) { return each <= 1 || each >= dp || dp % each != 0 || each == now; });
  return groups;
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

auto KnobsOf(const Plan& plan, int64_t ranks_of_host) -> std::vector<Knob> {
  Knobs knobs{.plan = plan, .keys = KeysOf(plan), .ranks_of_host = ranks_of_host, .all = {}};
  const FitFacts facts{
      .dp = plan.mesh.size(AxesSharing(Shared::State)),
      .accumulate = plan.run.accumulate,
      .is_rounded = knobs.keys.precision.compute != ComputePrecision::Fp32,
      .is_frozen_wide = std::ranges::any_of(
          plan.parameters, [](const Parameter& own) { return !own.trainable && own.dtype == DType::F32; }),
      .is_on_gpu = FactsOf(plan.device).family == DeviceFamily::Cuda};
  for (const FitKey& row : FitKeys()) {
    if (row.key == OriginKey("batch.micro")) {
      AddBatch(knobs);
    } else if (row.key == OriginKey("mesh.tp")) {
      AddTensorParallelism(knobs);
    } else if (row.key == OriginKey("mesh.hosts")) {
      AddHosts(knobs);
    } else if (row.key == OriginKey("mesh.replicate")) {
      AddCopies(knobs);
    } else if (row.key == OriginKey("shard.reshard_size")) {
      AddGroups(knobs);
    } else if (Holds(row.shown, facts)) {
      knobs.AddOthers(row);
    }
  }
  return std::move(knobs.all);
}

}  // namespace shardc
