// Values that take more memory and save neither FLOPs nor bytes on the wire are not offered. Which values take least
// memory is an experience with plans: tests/golden/fit_search.cpp holds it against plans of all combinations.

#include "compiler/fit/offers.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include "compiler/base/devices.h"
#include "compiler/plan/header.h"

namespace shardc {

namespace {

/// Ranks of the mesh and parts of the batch of a step.
struct Layout {
  int64_t dp = 1;
  int64_t tp = 1;
  int64_t micro = 1;
  int64_t accumulate = 1;

  auto SetsFrom(const Layout& now) const -> std::vector<std::string> {
    std::vector<std::string> sets;
    const auto add = [&](std::string_view key, int64_t value, int64_t before) {
      if (value != before) {
        sets.push_back(fmt::format("{}={}", key, value));
      }
    };
    add("mesh.dp", dp, now.dp);
    add("mesh.tp", tp, now.tp);
    add("batch.micro", micro, now.micro);
    add("batch.accumulate", accumulate, now.accumulate);
    return sets;
  }
};

}  // namespace

/// Adds the ways to cut the sequences of a rank in a step into microbatches, of its size times powers of two, the
/// largest first.
static auto AddCuts(const Layout& now, Layout layout, int64_t sequences, SubjectOffers& subject) -> void {
  int64_t micro = now.micro;
  while (micro * 2 <= sequences) {
    micro *= 2;
  }
  while (true) {
    if (micro <= sequences && sequences % micro == 0) {
      layout.micro = micro;
      layout.accumulate = sequences / micro;
      subject.offers.push_back(
          {.sets = layout.SetsFrom(now), .dp = layout.dp, .tp = layout.tp, .accumulate = layout.accumulate});
    }
    if (micro % 2 != 0) {
      return;
    }
    micro /= 2;
  }
}

static auto LayoutsOf(const Plan& plan) -> SubjectOffers {
  const Layout now{.dp = plan.mesh.size(Axis::Dp),
                   .tp = plan.mesh.size(Axis::Tp),
                   .micro = plan.run.micro_batch,
                   .accumulate = plan.run.accumulate};
  const int64_t sequences = now.micro * now.accumulate;
  SubjectOffers subject;
  AddCuts(now, now, sequences, subject);
  // Ranks move from dp to tp, and each of dp takes over the sequences of those that went; then the other way round.
  for (int64_t factor = 2; now.dp % factor == 0; factor *= 2) {
    AddCuts(now, {.dp = now.dp / factor, .tp = now.tp * factor}, sequences * factor, subject);
  }
  for (int64_t factor = 2; now.tp % factor == 0 && sequences % factor == 0; factor *= 2) {
    AddCuts(now, {.dp = now.dp * factor, .tp = now.tp / factor}, sequences / factor, subject);
  }
  return subject;
}

/// Returns an offer for each value; that of the value that the recipe has changes nothing.
static auto ValuesOf(const PlanKeys& keys, OriginKey key, const std::vector<std::string>& values) -> SubjectOffers {
  SubjectOffers subject;
  for (const std::string& value : values) {
    subject.offers.push_back(value == ValueText(keys, key) ? Offer{}
                                                           : Offer{.sets = {fmt::format("{}={}", key.text(), value)}});
  }
  return subject;
}

static auto HasNow(const SubjectOffers& subject) -> bool {
  return std::ranges::any_of(subject.offers, [](const Offer& offer) { return offer.sets.empty(); });
}

static auto ChunksOf(const Plan& plan, const PlanKeys& keys) -> SubjectOffers {
  const int64_t now = keys.loss.chunks.value_or(1);
  std::set<int64_t, std::greater<>> counts{now};
  for (const int64_t count : {1, 2, 8, 32}) {
    if (plan.data.seq % count == 0) {
      counts.insert(count);
    }
  }
  std::vector<std::string> values;
  std::ranges::transform(counts, std::back_inserter(values), [](int64_t count) { return std::to_string(count); });
  SubjectOffers subject = ValuesOf(keys, "loss.chunks", values);
  // One chunk, which comes last, needs no sum over chunks.
  subject.least = values.size() == 1 ? std::vector<size_t>{0} : std::vector<size_t>{0, values.size() - 1};
  return subject;
}

/// Returns the depths of gathers ahead in this direction: 0, and as it is.
static auto PrefetchOf(const Plan& plan, const std::optional<int64_t>& depth, std::string_view key) -> SubjectOffers {
  const bool is_ahead = PrefetchDepth(plan, depth) > 0;
  return is_ahead ? SubjectOffers{.offers = {{.sets = {fmt::format("{}=0", key)}}, {}}, .as_is = 1, .least = {0}}
                  : SubjectOffers{};
}

auto Applies(Subject subject, const Offer& layout) -> bool {
  switch (subject) {
    case Subject::Units:
    case Subject::Reshard:
    case Subject::PrefetchForward:
    case Subject::PrefetchBackward:
    case Subject::Ring: return layout.dp > 1;
    case Subject::Reduce: return layout.accumulate > 1;
    case Subject::Layout:
    case Subject::Policy:
    case Subject::Chunks:
    case Subject::Workspace: return true;
  }
  CHECK(false, "subject {}", static_cast<int>(subject));
}

auto OffersOf(const Plan& plan) -> AllOffers {
  const PlanKeys keys = KeysOf(plan);
  AllOffers all;
  const auto of = [&](Subject subject) -> SubjectOffers& { return all[static_cast<size_t>(subject)]; };
  of(Subject::Layout) = LayoutsOf(plan);
  of(Subject::Policy) = ValuesOf(keys, "recompute.policy", {"full", "torchtitan-sac", "none"});
  if (keys.batch.reduce) {
    of(Subject::Reduce) = ValuesOf(keys, "batch.reduce", {"last", "each"});
    // Whole sums take more than slices, but a model of few units has them anyway.
    of(Subject::Reduce).least = {1, 0};
  }
  if (std::ranges::any_of(of(Subject::Layout).offers, [](const Offer& layout) { return layout.dp > 1; })) {
    of(Subject::Units) = ValuesOf(keys, "shard.units", {"block", "torchtitan", "blocks:2", "size:256 MiB"});
    SubjectOffers& reshard = of(Subject::Reshard);
    reshard = ValuesOf(keys, "shard.reshard_after_forward", {"false", "true"});
    if (!HasNow(reshard)) {
      reshard.offers.insert(reshard.offers.begin() + 1, Offer{});
      reshard.least = {1, 2};
    } else {
      reshard.least = {1};
    }
    of(Subject::PrefetchForward) = PrefetchOf(plan, keys.shard.prefetch_forward, "shard.prefetch_forward");
    of(Subject::PrefetchBackward) = PrefetchOf(plan, keys.shard.prefetch_backward, "shard.prefetch_backward");
    if (keys.shard.gather_ring) {
      of(Subject::Ring) = ValuesOf(keys, "shard.gather_ring", {"2", "3"});
    }
  }
  of(Subject::Chunks) = ChunksOf(plan, keys);
  if (FactsOf(plan.device).family == DeviceFamily::Cuda) {
    const std::string now = keys.run.attention_workspace.value_or(ByteSize{}).text;
    of(Subject::Workspace) =
        now == "2 GiB" || now == "4 GiB"
            ? SubjectOffers{.offers = {{.sets = {"run.attention_workspace=512 MiB"}}, {}}, .least = {0}}
            : SubjectOffers{};
  }
  for (SubjectOffers& subject : all) {
    if (!HasNow(subject)) {
      subject.offers.push_back({});
    }
    subject.as_is = static_cast<size_t>(
        std::ranges::find_if(subject.offers, [](const Offer& offer) { return offer.sets.empty(); }) -
        subject.offers.begin());
    if (subject.least.empty()) {
      for (size_t i = 0; i < subject.offers.size(); ++i) {
        subject.least.push_back(i);
      }
    }
  }
  return all;
}

auto AsItIs(const AllOffers& offers) -> Combination {
  Combination as_it_is{};
  std::ranges::transform(offers, as_it_is.begin(), &SubjectOffers::as_is);
  return as_it_is;
}

auto KnobOf(const AllOffers& offers, const Combination& combination) -> Knob {
  Knob knob;
  for (size_t i = 0; i < NumSubjects; ++i) {
    const std::vector<std::string>& sets = offers[i].offers[combination[i]].sets;
    knob.sets.insert(knob.sets.end(), sets.begin(), sets.end());
  }
  return knob;
}

}  // namespace shardc
