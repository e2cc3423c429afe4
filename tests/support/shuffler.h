// Runs the same two steps of a plan in random legal orders, given only streams and events, and compares their bits.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/core/runner.h"

namespace shardc {

struct ShuffledRuns {
  /// Seeds that were tried; all, or up to the first that changed something.
  uint64_t num_tried = 0;
  std::vector<uint64_t> different;
  /// Orders of the step's ops on rank 0, as hashes.
  std::set<uint64_t> orders;
  std::string error;
};

class Shuffler {
 public:
  Shuffler(const Plan* plan, uint64_t num_seeds, bool stop_at_first)
      : plan_(*plan), num_seeds_(num_seeds), stop_at_first_(stop_at_first) {}

  auto Run() -> ShuffledRuns;

 private:
  struct Bits {
    std::vector<double> numbers;
    std::vector<uint32_t> state;
  };

  auto RunRank(RankContext& context) -> Status;
  auto RunSteps(RankRunner& runner, int64_t rank, Bits& bits) const -> Status;
  static auto SameBits(const Bits& a, const Bits& b) -> bool;

  const Plan& plan_;
  uint64_t num_seeds_;
  bool stop_at_first_;
  std::mutex mutex_;
  ShuffledRuns runs_;
};

}  // namespace shardc
