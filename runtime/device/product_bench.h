// The products of a plan on the device of a rank, to be measured by one algorithm of a library after another. Which
// algorithm is then chosen is decided in runtime/core/tune_products.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/units.h"

namespace shardc {

/// A product that some ops of the plan share.
struct BenchProduct {
  /// All that the choice of an algorithm depends on, as gemm.json names the product.
  std::string text;
  /// Algorithms as texts: the library's first answer, and then its next ones.
  std::vector<std::string> algorithms;
};

class ProductBench {
 public:
  virtual ~ProductBench() = default;

  virtual auto products() const -> const std::vector<BenchProduct>& = 0;
  /// Multiplies `repeats` times in a row by one algorithm of one product. Returns the mean time of once.
  virtual auto Time(size_t product, size_t algorithm, int64_t repeats) -> ErrorOr<Seconds> = 0;
  /// Leaves the memory of the rank as it was before.
  virtual auto End() -> Status = 0;
};

}  // namespace shardc
