// A bench of products that takes the times that a test names.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/device/product_bench.h"

namespace shardc {

struct TimedProduct {
  BenchProduct product;
  /// The time by each algorithm; less than 0 if the library refuses it.
  std::vector<Seconds> times;
  /// The time that a measurement lasts, whatever it says.
  std::chrono::milliseconds lasts{0};
};

class ProductDouble final : public ProductBench {
 public:
  /// One measurement that was asked for.
  struct Call {
    size_t product = 0;
    size_t algorithm = 0;
    int64_t repeats = 0;
  };

  explicit ProductDouble(std::vector<TimedProduct> products) : timed_(std::move(products)) {
    for (const TimedProduct& timed : timed_) {
      products_.push_back(timed.product);
    }
  }
  auto products() const -> const std::vector<BenchProduct>& override { return products_; }
  auto Time(size_t product, size_t algorithm, int64_t repeats) -> ErrorOr<Seconds> override {
    calls.push_back({product, algorithm, repeats});
    std::this_thread::sleep_for(timed_[product].lasts);
    const Seconds time = timed_[product].times[algorithm];
    if (time.value < 0) {
      return Fail(ExitCode::InternalFault, "{} is refused", products_[product].algorithms[algorithm]);
    }
    return factor ? time * factor(calls.size()) : time;
  }
  auto End() -> Status override { return Success{}; }

  std::vector<Call> calls;
  /// Returns the factor by which the time of the nth call is multiplied. Unset: 1.
  std::function<double(size_t call)> factor;

 private:
  std::vector<TimedProduct> timed_;
  std::vector<BenchProduct> products_;
};

}  // namespace shardc
