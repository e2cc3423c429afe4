// Values that take more memory and save neither FLOPs nor bytes on the wire are not offered. Which values take least
// memory is an experience with plans: tests/golden/fit_search.cpp holds it against plans of all combinations.

#include "compiler/fit/offers.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <ranges>
#include <set>

#include "compiler/base/byte_limit.h"
#include "compiler/base/devices.h"
#include "compiler/plan/header.h"

namespace shardc {

auto MeshLayout::SetsFrom(const MeshLayout& now) const -> std::vector<std::string> {
  std::vector<std::string> sets;
  const auto add = [&](std::string_view key, int64_t value, int64_t before) {
    if (value != before) {
      sets.push_back(fmt::format("{}={}", key, value));
    }
  };
  add("mesh.replicate", replicate, now.replicate);
  add("mesh.dp", dp, now.dp);
  add("mesh.tp", tp, now.tp);
  add("mesh.hosts", hosts, now.hosts);
  add("batch.micro", micro, now.micro);
  add("batch.accumulate", accumulate, now.accumulate);
  add("batch.global", global, now.global);
  return sets;
}

auto LayoutNow(const Plan& plan) -> MeshLayout {
  return {.replicate = plan.mesh.size(Axis::Replicate),
          .dp = plan.mesh.size(Axis::Dp),
          .tp = plan.mesh.size(Axis::Tp),
          .hosts = plan.mesh.hosts,
          .micro = plan.run.micro_batch,
          .accumulate = plan.run.accumulate,
          .global = KeysOf(plan).batch.global ? SamplesPerStep(plan) : 0};
}

/// Adds the ways to cut the sequences of a rank in a step into microbatches, of its size times powers of two, the
/// largest first.
static auto AddCuts(const MeshLayout& now, MeshLayout layout, int64_t sequences, SubjectOffers& subject) -> void {
  int64_t micro = layout.micro;
  while (micro * 2 <= sequences) {
    micro *= 2;
  }
  while (true) {
    if (micro <= sequences && sequences % micro == 0) {
      layout.micro = micro;
      layout.accumulate = sequences / micro;
      subject.offers.push_back({.sets = layout.SetsFrom(now),
                                .dp = layout.dp,
                                .tp = layout.tp,
                                .accumulate = layout.accumulate,
                                .keeps_mesh = layout.dp == now.dp && layout.tp == now.tp});
    }
    if (micro % 2 != 0) {
      return;
    }
    micro /= 2;
  }
}

static auto LayoutsOf(const MeshLayout& now, const MeshLayout& base, int64_t ranks_of_host) -> SubjectOffers {
  const int64_t sequences = base.micro * base.accumulate;
  SubjectOffers subject;
  AddCuts(now, base, sequences, subject);
  subject.as_is = static_cast<size_t>(std::ranges::find(subject.offers, base.accumulate, &Offer::accumulate) -
                                      subject.offers.begin());
  const auto with = [&](int64_t dp, int64_t tp) {
    MeshLayout layout = base;
    layout.dp = dp;
    layout.tp = tp;
    return layout;
  };
  // Ranks move from dp to tp, and each of dp takes over the sequences of those that went; then the other way round.
  for (int64_t factor = 2; base.dp % factor == 0 && base.tp * factor <= ranks_of_host; factor *= 2) {
    AddCuts(now, with(base.dp / factor, base.tp * factor), sequences * factor, subject);
  }
  for (int64_t factor = 2; base.tp % factor == 0 && sequences % factor == 0; factor *= 2) {
    AddCuts(now, with(base.dp * factor, base.tp / factor), sequences / factor, subject);
  }
  return subject;
}

/// Returns an offer for each value; that of the value that the recipe has changes nothing.
static auto Each(const std::vector<std::string>& values, const PlanKeys& keys, OriginKey key) -> std::vector<Offer> {
  const std::string now = ValueText(keys, key);
  std::vector<Offer> offers;
  for (const std::string& value : values) {
    offers.push_back(value == now ? Offer{} : Offer{.sets = {fmt::format("{}={}", key.text(), value)}});
  }
  return offers;
}

static auto HasNow(const std::vector<Offer>& offers) -> bool {
  return std::ranges::any_of(offers, [](const Offer& offer) { return offer.sets.empty(); });
}

auto Applies(Subject subject, const Offer& layout) -> bool {
  // Elsewhere the subjects of GPUs have no offers.
  return Holds(FitKeyOf(subject).offered, {.dp = layout.dp, .accumulate = layout.accumulate, .is_on_gpu = true});
}

/// Returns the offers of a subject other than the layout; none beside the recipe as it is if there is nothing to gain.
static auto ValuesOffered(Subject subject, const Plan& plan, const PlanKeys& keys) -> SubjectOffers {
  const FitKey& row = FitKeyOf(subject);
  const std::vector<std::string> values = ValuesOf(row, plan);
  const std::vector<std::string> backwards(values.rbegin(), values.rend());
  // The first value, which takes least, and as it is.
  const auto less_if = [&](bool has_more) {
    return has_more ? SubjectOffers{.offers = {{.sets = {fmt::format("{}={}", row.key.text(), values[0])}}, {}},
                                    .least = {0}}
                    : SubjectOffers{};
  };
  switch (subject) {
    case Subject::Layout: break;
    case Subject::Policy: return {.offers = Each(backwards, keys, row.key)};
    case Subject::Units: return {.offers = Each(values, keys, row.key)};
    // Whole sums take more than slices, but a model of few units has them anyway.
    case Subject::Reduce:
      return keys.batch.reduce ? SubjectOffers{.offers = Each(backwards, keys, row.key), .least = {1, 0}}
                               : SubjectOffers{};
    case Subject::Reshard: {
      SubjectOffers reshard{.offers = Each(backwards, keys, row.key), .least = {1}};
      if (!HasNow(reshard.offers)) {
        reshard.offers.insert(reshard.offers.begin() + 1, Offer{});
        reshard.least = {1, 2};
      }
      return reshard;
    }
    case Subject::Chunks: {
      // Chunks of which the recipe alone has the number; the most chunks come first.
      std::set<std::pair<size_t, std::string>, std::greater<>> counts;
      for (const std::string& value : values) {
        counts.emplace(value.size(), value);
      }
      const std::string now = std::to_string(keys.loss.chunks.value_or(1));
      counts.emplace(now.size(), now);
      const auto texts = std::views::values(counts);
      SubjectOffers chunks{.offers = Each({texts.begin(), texts.end()}, keys, row.key), .least = {0}};
      // One chunk, which comes last, needs no sum over chunks.
      if (counts.size() > 1) {
        chunks.least.push_back(counts.size() - 1);
      }
      return chunks;
    }
    case Subject::PrefetchForward: return less_if(PrefetchDepth(plan, keys.shard.prefetch_forward) > 0);
    case Subject::PrefetchBackward: return less_if(PrefetchDepth(plan, keys.shard.prefetch_backward) > 0);
    case Subject::Ring:
      return keys.shard.gather_ring ? SubjectOffers{.offers = Each(values, keys, row.key)} : SubjectOffers{};
    case Subject::Workspace: return less_if(plan.run.attention_workspace > ParseByteLimit(values[0]));
  }
  CHECK(false, "subject {}", static_cast<int>(subject));
}

auto OffersOf(const Plan& plan, const MeshLayout& base, int64_t ranks_of_host) -> AllOffers {
  const PlanKeys keys = KeysOf(plan);
  const bool is_on_gpu = FactsOf(plan.device).family == DeviceFamily::Cuda;
  AllOffers all;
  const std::vector<Offer>& layouts = (all[0] = LayoutsOf(LayoutNow(plan), base, ranks_of_host)).offers;
  for (size_t i = 1; i < NumSubjects; ++i) {
    const auto subject = static_cast<Subject>(i);
    if ((is_on_gpu || FitKeyOf(subject).offered != FitWhen::OnGpu) &&
        std::ranges::any_of(layouts, [&](const Offer& layout) { return Applies(subject, layout); })) {
      all[i] = ValuesOffered(subject, plan, keys);
    }
  }
  for (SubjectOffers& subject : all) {
    if (&subject != &all[0]) {
      if (!HasNow(subject.offers)) {
        subject.offers.push_back({});
      }
      subject.as_is = static_cast<size_t>(
          std::ranges::find_if(subject.offers, [](const Offer& offer) { return offer.sets.empty(); }) -
          subject.offers.begin());
    }
    if (subject.least.empty()) {
      subject.least.resize(subject.offers.size());
      std::iota(subject.least.begin(), subject.least.end(), size_t{0});
    }
  }
  return all;
}

auto OffersOfFastest(const Plan& plan, int64_t ranks_of_host) -> AllOffers {
  const MeshLayout now = LayoutNow(plan);
  AllOffers all = OffersOf(plan, now, ranks_of_host);
  for (const int64_t copies : CopiesOffered(plan, ranks_of_host)) {
    MeshLayout layout = now;
    layout.replicate = copies;
    layout.dp = now.replicate * now.dp / copies;
    AddCuts(now, layout, now.micro * now.accumulate, all[static_cast<size_t>(Subject::Layout)]);
  }
  SubjectOffers& reshard = all[static_cast<size_t>(Subject::Reshard)];
  for (const int64_t group : GroupsOffered(plan, ranks_of_host)) {
    reshard.offers.push_back(
        {.sets = {fmt::format("shard.reshard_size={}", group)}, .keeps_mesh = false, .is_last = true});
  }
  return all;
}

auto OnMeshOfRecipe(AllOffers offers) -> AllOffers {
  for (auto& [all, as_is, least] : offers) {
    const auto sets = all[as_is].sets;
    std::erase_if(all, [](const Offer& offer) { return !offer.keeps_mesh; });
    as_is = static_cast<size_t>(std::ranges::find(all, sets, &Offer::sets) - all.begin());
    least = {as_is};
  }
  return offers;
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
