#include "runtime/core/tune_products.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "compiler/base/stopwatch.h"
#include "runtime/control/agree.h"
#include "runtime/core/rank_binder.h"
#include "runtime/core/rank_main.h"
#include "runtime/device/family.h"

namespace shardc {

namespace {

/// One algorithm of one product.
struct Candidate {
  size_t product = 0;
  size_t algorithm = 0;
  /// Time in the first round.
  Seconds first;
  int64_t repeats = 1;
  std::vector<Seconds> times;
};

}  // namespace

/// Returns all candidates: of each product in turn its first algorithm, then of each its next one.
static auto CandidatesOf(const std::vector<BenchProduct>& products) -> std::vector<Candidate> {
  std::vector<Candidate> candidates;
  for (size_t algorithm = 0, found = 1; found > 0; ++algorithm) {
    found = 0;
    for (size_t product = 0; product < products.size(); ++product) {
      if (algorithm < products[product].algorithms.size()) {
        candidates.push_back({.product = product, .algorithm = algorithm, .first = {}, .times = {}});
        ++found;
      }
    }
  }
  return candidates;
}

static auto MedianOf(std::vector<Seconds> times) -> Seconds {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

auto MeasureProducts(ProductBench& bench, const TuneLimits& limits, const std::function<Status()>& may_continue)
    -> ErrorOr<std::vector<std::vector<Seconds>>> {
  std::vector<Candidate> candidates = CandidatesOf(bench.products());
  const auto time = [&](const Candidate& candidate, int64_t repeats) -> ErrorOr<Seconds> {
    RETURN_IF_ERROR(may_continue());
    return bench.Time(candidate.product, candidate.algorithm, repeats);
  };
  std::vector<Seconds> best(bench.products().size(), Seconds{HUGE_VAL});
  for (Candidate& candidate : candidates) {
    // A library loads a kernel when it is launched first.
    auto first = time(candidate, 1);
    if (!first && candidate.algorithm != 0 && first.error().code == ExitCode::InternalFault) {
      // The library refuses what its heuristic named.
      candidate.first = Seconds{HUGE_VAL};
      continue;
    }
    first = first ? time(candidate, 3) : first;
    if (!first) {
      return first.error();
    }
    candidate.first = *first;
    best[candidate.product] = std::min(best[candidate.product], *first);
  }
  std::erase_if(candidates, [&](const Candidate& candidate) {
    return candidate.algorithm != 0 && candidate.first.value > limits.hopeless * best[candidate.product].value;
  });
  if (candidates.empty()) {
    return std::vector<std::vector<Seconds>>();
  }
  const double share = limits.all.value / static_cast<double>(limits.rounds * std::ssize(candidates));
  for (Candidate& candidate : candidates) {
    constexpr double MostRepeats = 10'000;
    const double repeats = std::min(limits.batch.value, share) / std::max(candidate.first.value, 1e-9);
    candidate.repeats = static_cast<int64_t>(std::clamp(std::ceil(repeats), 1.0, MostRepeats));
  }
  for (int64_t round = 0; round < limits.rounds; ++round) {
    for (Candidate& candidate : candidates) {
      ASSIGN_OR_RETURN(const auto measured, time(candidate, candidate.repeats));
      candidate.times.push_back(measured);
    }
    // The next round has another order, so that each candidate comes after others, early and late.
    std::ranges::reverse(candidates);
  }
  std::vector<std::vector<Seconds>> medians;
  for (const BenchProduct& product : bench.products()) {
    medians.emplace_back(product.algorithms.size());
  }
  for (const Candidate& candidate : candidates) {
    medians[candidate.product][candidate.algorithm] = MedianOf(candidate.times);
  }
  return medians;
}

auto FastestOf(const std::vector<Seconds>& times) -> size_t {
  constexpr double LeastGain = 0.02;
  size_t fastest = 0;
  for (size_t i = 1; i < times.size(); ++i) {
    if (times[i].value > 0 && times[i] < times[fastest]) {
      fastest = i;
    }
  }
  return times[fastest].value <= (1 - LeastGain) * times[0].value ? fastest : 0;
}

/// Returns the record of a file that was named.
static auto RecordOfFile(const std::string& path, const ProductRecord& known) -> ErrorOr<ProductRecord> {
  auto record = ReadProductFile(path);
  FAIL_IF(!record, record.error().code, "--tune={}: {}", path, record.error().message);
  if (const std::string differences = VersionsDiffer(record->chosen_for, known.chosen_for); !differences.empty()) {
    return Fail(ExitCode::Environment,
                "--tune={}: its algorithms are not for this machine: {}; `--tune` without a file measures here", path,
                differences);
  }
  return record;
}

/// Broadcasts from rank 0 that it measures on, or has ended: measuring may take longer than a rank waits. Collective.
static auto MeasuresOn(RankControl& control, bool& measures) -> Status {
  std::byte word{measures};
  RETURN_IF_ERROR(control.Broadcast(AxisSet::All(), &word, sizeof(word)));
  measures = word != std::byte{0};
  return Success{};
}

/// Returns `known` with the products that it has no times of, measured on the device.
static auto MeasureUnknown(const RankContext& context, RankBinder& binder, ProductRecord known)
    -> ErrorOr<ProductRecord> {
  const Stopwatch watch;
  const auto bench = PartsOf(FactsOf(context.plan->device).family).make_product_bench(binder, [&](const auto& product) {
    return !known.times.contains(product);
  });
  if (!bench) {
    return bench.error();
  }
  const std::vector<BenchProduct>& products = (*bench)->products();
  const auto measured = MeasureProducts(**bench, {}, [&]() -> Status {
    bool measures = true;
    RETURN_IF_ERROR(MeasuresOn(*context.control, measures));
    return context.control->StopIsRequested() ? Status(Fail(ExitCode::Preempted, "stopped while it measured products"))
                                              : Status(Success{});
  });
  if (!measured) {
    return measured.error();
  }
  RETURN_IF_ERROR((*bench)->End());
  int64_t num_others = 0;
  Seconds first;
  Seconds chosen;
  for (size_t i = 0; i < products.size(); ++i) {
    const std::vector<Seconds>& times = (*measured)[i];
    const size_t fastest = FastestOf(times);
    known.algorithms[products[i].text] = products[i].algorithms[fastest];
    known.times[products[i].text] = {
        .first_us = times[0].value * 1e6,
        .chosen_us = times[fastest].value * 1e6,
        .measured = std::ranges::count_if(times, [](Seconds time) { return time.value > 0; })};
    num_others += fastest != 0 ? 1 : 0;
    first += times[0];
    chosen += times[fastest];
  }
  if (!products.empty()) {
    const RunLog only_stderr;
    (context.log == nullptr ? only_stderr : *context.log)
        .Print(fmt::format(
            "  {} products measured in {:.1f} s, {} by another algorithm than the library's first answer: once each, "
            "they take {:.3f} ms together, and {:.3f} by the first answers\n",
            products.size(), watch.Elapsed().value, num_others, chosen.value * 1e3, first.value * 1e3));
  }
  return known;
}

auto TuneProducts(const RankContext& context, RankBinder& binder, const ProductRecord& known)
    -> ErrorOr<ProductRecord> {
  ErrorOr<ProductRecord> chosen = known;
  if (context.rank == 0) {
    const std::string& file = context.options.tune.file;
    chosen = file.empty() ? MeasureUnknown(context, binder, known) : RecordOfFile(file, known);
  }
  bool measures = context.rank != 0;
  do {
    RETURN_IF_ERROR(MeasuresOn(*context.control, measures));
  } while (measures);
  RETURN_IF_ERROR(FollowRankZero(*context.control, chosen ? Status(Success{}) : chosen.error()));
  ASSIGN_OR_RETURN(const auto text, TextOfRankZero(*context.control, chosen ? TextOf(*chosen) : ""));
  auto record = ProductRecordIn(text);
  CHECK(record.has_value(), "rank 0 sent no record of products");
  return *std::move(record);
}

}  // namespace shardc
