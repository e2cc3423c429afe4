// A checkpoint tensor as init rules read it.
#pragma once

#include <cstdint>

namespace shardc {

class LoadedTensor {
 public:
  LoadedTensor() = default;
  LoadedTensor(const LoadedTensor&) = delete;
  auto operator=(const LoadedTensor&) -> LoadedTensor& = delete;
  virtual ~LoadedTensor() = default;

  virtual auto num_elements() const -> int64_t = 0;
  /// Reads elements begin ... begin + count - 1, row by row. Requires: the tensor has these elements.
  virtual auto Read(int64_t begin, int64_t count, float* out) const -> void = 0;

  /// Returns the number of the element at a position. Positions out of range belong to values that are not used; they
  /// give the number of another element.
  auto ElementAt(double position) const -> int64_t {
    const int64_t last = num_elements() - 1;
    return !(position > 0) ? 0 : position < static_cast<double>(last) ? static_cast<int64_t>(position) : last;
  }
};

}  // namespace shardc
