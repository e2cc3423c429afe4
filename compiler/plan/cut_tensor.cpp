#include "compiler/plan/cut_tensor.h"

#include <algorithm>

#include "compiler/base/units.h"

namespace shardc {

namespace {

/// The dims before the one that is cut, that one, and those after it.
struct Cut {
  int64_t outer = 1;
  /// Of the dim that is cut: all, and what each rank has of it, padding included.
  int64_t size = 1;
  int64_t capacity = 1;
  int64_t inner = 1;

  /// Of this rank among those that share the dim.
  int64_t index = 0;

  /// The first index of the dim that the rank holds, and how many it does.
  auto First() const -> int64_t { return index * capacity; }
  auto Held() const -> int64_t { return std::clamp<int64_t>(size - First(), 0, capacity); }
};

auto CutOf(const CutTensor& tensor, int64_t index) -> Cut {
  const size_t dim = *tensor.dim;
  CHECK(dim < tensor.shape.size(), "dim {} of {} is cut", dim, ToText(tensor.shape));
  Cut cut{.size = tensor.shape[dim], .capacity = CeilDiv(tensor.shape[dim], tensor.num_ranks), .index = index};
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    (i < dim ? cut.outer : cut.inner) *= i == dim ? 1 : tensor.shape[i];
  }
  // Padding would stand between the elements then.
  CHECK(cut.outer == 1 || cut.size % tensor.num_ranks == 0, "dim {} of {} is cut into {}", dim, ToText(tensor.shape),
        tensor.num_ranks);
  return cut;
}

}  // namespace

auto CutTensor::LocalShape() const -> Dims {
  Dims local = shape;
  if (dim) {
    local[*dim] = CeilDiv(shape[*dim], num_ranks);
  }
  return local;
}

auto CutTensor::LocalElements(int64_t index) const -> int64_t {
  if (!dim) {
    return NumElements(shape);
  }
  const Cut cut = CutOf(*this, index);
  return cut.outer * cut.Held() * cut.inner;
}

auto CutTensor::LogicalInterval(int64_t index, Interval elements) const -> BoxInterval {
  if (!dim) {
    return BoxInterval::Of(elements);
  }
  const Cut cut = CutOf(*this, index);
  const int64_t first = cut.First() * cut.inner;
  if (cut.outer == 1) {
    return BoxInterval::Of({first + elements.begin, first + elements.end});
  }
  return {.elements = elements, .row = cut.size * cut.inner, .columns = {first, first + cut.capacity * cut.inner}};
}

}  // namespace shardc
