// Random mixtures for tests.
#pragma once

#include <fmt/format.h>

#include <random>
#include <string>

#include "compiler/plan/plan.h"

namespace shardc {

struct MixtureCase {
  DataSource data;
  int64_t samples_per_step = 1;
  int64_t steps = 1;
};

inline auto MixtureOf(const std::vector<std::string>& weights) -> DataSource {
  DataSource data;
  data.vocab = 256;
  data.seq = 4;
  for (const std::string& weight : weights) {
    data.sources.push_back({.name = fmt::format("s{}", data.sources.size()), .weight = weight, .files = {}});
  }
  return data;
}

/// Constants, ramps, phases, bursts and sources that are all but silent; at each step a weight is above 0.
inline auto RandomWeight(std::mt19937& random) -> std::string {
  const auto upto = [&](int64_t n) { return static_cast<int64_t>(random() % static_cast<uint64_t>(n)); };
  switch (upto(7)) {
    case 0: return fmt::format("{}", 1 + upto(9));
    case 1: return fmt::format("{} / {}", 1 + upto(100), 1 + upto(100));
    case 2: return fmt::format("{} - {} * step / steps", 10 + upto(10), upto(10));
    case 3: return fmt::format("if step % {} < {} then {} else 0", 2 + upto(9), 1 + upto(3), 1 + upto(5));
    case 4: return fmt::format("if step < {} then 0 else {}", upto(40), 1 + upto(5));
    case 5: return fmt::format("1e-{}", 1 + upto(12));
    default: return fmt::format("exp(-step / {}) + sin(step) ^ 2", 1 + upto(30));
  }
}

inline auto RandomMixture(std::mt19937& random) -> MixtureCase {
  std::vector<std::string> weights{fmt::format("{}", random() % 3 == 0 ? 1e-6 : 1.0)};
  const size_t num_sources = 1 + random() % 7;
  while (weights.size() < num_sources) {
    weights.insert(weights.begin() + static_cast<ptrdiff_t>(random() % (weights.size() + 1)), RandomWeight(random));
  }
  MixtureCase mixture{.data = MixtureOf(weights),
                      .samples_per_step = 1 + static_cast<int64_t>(random() % (random() % 2 == 0 ? 4 : 40)),
                      .steps = 1 + static_cast<int64_t>(random() % 120)};
  mixture.data.order = random() % 2 == 0 ? SampleOrder::Shuffled : SampleOrder::Sequential;
  mixture.data.seed = random();
  return mixture;
}

}  // namespace shardc
