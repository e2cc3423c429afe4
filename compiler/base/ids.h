// Typed 32-bit indices into vectors: no pointer graphs, no mixing of kinds.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "compiler/base/check.h"

namespace shardc {

template <class Tag>
struct Id {
  int32_t index = -1;

  constexpr auto valid() const -> bool { return index >= 0; }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

/// The ids 0 ... count - 1, to loop over.
template <class IdType>
struct IdRange {
  struct Iterator {
    IdType id;

    auto operator*() const -> IdType { return id; }
    auto operator++() -> Iterator& {
      ++id.index;
      return *this;
    }
    friend auto operator==(const Iterator&, const Iterator&) -> bool = default;
  };
  int32_t count = 0;

  auto begin() const -> Iterator { return {IdType{0}}; }
  auto end() const -> Iterator { return {IdType{count}}; }
};

/// A vector indexed by one kind of id only.
template <class IdType, class T>
class IdVector {
 public:
  auto Add(T item) -> IdType {
    items_.push_back(std::move(item));
    return IdType{static_cast<int32_t>(items_.size()) - 1};
  }
  auto operator[](IdType id) -> T& {
    CHECK(Has(id), "index {} of {}", id.index, items_.size());
    return items_[static_cast<size_t>(id.index)];
  }
  auto operator[](IdType id) const -> const T& {
    CHECK(Has(id), "index {} of {}", id.index, items_.size());
    return items_[static_cast<size_t>(id.index)];
  }
  /// A negative index is more than any size.
  auto Has(IdType id) const -> bool { return static_cast<size_t>(id.index) < items_.size(); }
  auto size() const -> int32_t { return static_cast<int32_t>(items_.size()); }
  auto empty() const -> bool { return items_.empty(); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  /// Every id that there is now, in order: `for (auto id : buffers.ids())`.
  auto ids() const -> IdRange<IdType> { return {size()}; }
  friend auto operator==(const IdVector&, const IdVector&) -> bool = default;

 private:
  std::vector<T> items_;
};

}  // namespace shardc

template <class Tag>
struct std::hash<shardc::Id<Tag>> {
  auto operator()(const shardc::Id<Tag>& id) const noexcept -> size_t { return std::hash<int32_t>{}(id.index); }
};
