// InPlaceVector: a vector of at most Most elements that lie in the object itself, so that copying one is copying bytes.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>

#include "compiler/base/check.h"

namespace shardc {

/// As std::vector, but for what it leaves out. A CHECK fails at the first element too many.
template <class T, size_t Most>
class InPlaceVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  InPlaceVector() {}
  InPlaceVector(std::initializer_list<T> items) : InPlaceVector(items.begin(), items.end()) {}
  template <class Iterator>
  InPlaceVector(Iterator first, Iterator last) {
    for (; first != last; ++first) {
      push_back(*first);
    }
  }

  static constexpr auto max_size() -> size_t { return Most; }
  auto size() const -> size_t { return size_; }
  auto empty() const -> bool { return size_ == 0; }
  auto data() -> T* { return items_; }
  auto data() const -> const T* { return items_; }
  auto begin() -> T* { return items_; }
  auto end() -> T* { return items_ + size_; }
  auto begin() const -> const T* { return items_; }
  auto end() const -> const T* { return items_ + size_; }
  auto operator[](size_t i) -> T& { return items_[Checked(i)]; }
  auto operator[](size_t i) const -> const T& { return items_[Checked(i)]; }
  auto front() -> T& { return (*this)[0]; }
  auto front() const -> const T& { return (*this)[0]; }
  auto back() -> T& { return (*this)[size_ - 1]; }
  auto back() const -> const T& { return (*this)[size_ - 1]; }

  auto push_back(const T& item) -> void {
    CHECK(size_ < Most, "more than {} elements", Most);
    std::construct_at(&items_[size_++], item);
  }
  auto pop_back() -> void {
    CHECK(size_ > 0, "no element");
    --size_;
  }
  auto clear() -> void { size_ = 0; }
  auto insert(const T* before, const T& item) -> void {
    const auto at = static_cast<size_t>(before - items_);
    push_back(item);
    std::rotate(items_ + at, items_ + size_ - 1, items_ + size_);
  }

  friend auto operator==(const InPlaceVector& a, const InPlaceVector& b) -> bool {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  auto Checked(size_t i) const -> size_t {
    CHECK(i < size_, "element {} of {}", i, size_);
    return i;
  }

  size_t size_ = 0;
  /// Only the first size_ of them live.
  union {
    T items_[Most];
  };
};

}  // namespace shardc
