// The losses of the last steps that made an update, and whether a loss is a spike beside them. All ranks have the same,
// checkpoints hold them, and sums are taken from the oldest on: a run that comes back judges as one that never stopped.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "compiler/base/spike_window.h"

namespace shardc {

struct LossSpread {
  double mean = 0;
  /// Standard deviation of the losses themselves (divided by their number).
  double deviation = 0;
  int64_t count = 0;

  /// Returns how many standard deviations `loss` lies above the mean; infinite if all losses are equal.
  auto Sigmas(double loss) const -> double { return (loss - mean) / deviation; }
};

class LossWindow {
 public:
  /// Those of a checkpoint, oldest first; of more than `size` the last.
  auto Restore(std::span<const double> losses, int64_t size) -> void {
    losses_.assign(losses.end() - std::min(std::ssize(losses), static_cast<ptrdiff_t>(size)), losses.end());
  }
  auto Add(double loss, int64_t size) -> void {
    while (std::ssize(losses_) >= size) {
      losses_.erase(losses_.begin());
    }
    losses_.push_back(loss);
  }
  auto Spread() const -> LossSpread {
    const auto count = static_cast<double>(losses_.size());
    LossSpread spread{.count = std::ssize(losses_)};
    for (const double loss : losses_) {
      spread.mean += loss / count;
    }
    for (const double loss : losses_) {
      spread.deviation += (loss - spread.mean) * (loss - spread.mean) / count;
    }
    spread.deviation = std::sqrt(spread.deviation);
    return spread;
  }
  /// Is the loss a spike? No loss is judged by less than half a window. The loss is not added.
  auto Judge(double loss, int64_t size, double sigma) -> bool {
    judged_by_ = Spread();
    return judged_by_.count >= LeastLossesToJudge(size) && loss - judged_by_.mean > sigma * judged_by_.deviation;
  }
  /// The losses that the last loss was judged by. Adding that loss may have taken the oldest of them out.
  auto judged_by() const -> const LossSpread& { return judged_by_; }
  /// Oldest first.
  auto losses() const -> const std::vector<double>& { return losses_; }

 private:
  std::vector<double> losses_;
  LossSpread judged_by_;
};

}  // namespace shardc
