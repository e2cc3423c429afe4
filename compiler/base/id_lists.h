// A list of items for each id.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "compiler/base/ids.h"

namespace shardc {

/// Lists in one piece of memory, made at once: a map of vectors takes many times as long.
template <class IdType, class T>
class IdLists {
 public:
  using Entries = std::vector<std::pair<IdType, T>>;

  IdLists() = default;
  /// Gives each id its items in their order. An item that equals the one before it in its list is left out.
  explicit IdLists(const Entries& entries) {
    for (const auto& [id, item] : entries) {
      const auto index = static_cast<size_t>(id.index);
      CHECK(id.valid(), "an entry without an id");
      lists_.resize(std::max(lists_.size(), index + 1));
      ++lists_[index].size;
    }
    size_t begin = 0;
    for (List& list : lists_) {
      list.begin = begin;
      begin += std::exchange(list.size, 0);
    }
    items_.resize(begin);
    for (const auto& [id, item] : entries) {
      List& list = lists_[static_cast<size_t>(id.index)];
      if (list.size == 0 || items_[list.begin + list.size - 1] != item) {
        items_[list.begin + list.size++] = item;
      }
    }
  }

  auto operator[](IdType id) const -> std::span<const T> {
    const auto index = static_cast<size_t>(id.index);
    return index < lists_.size() ? std::span(items_).subspan(lists_[index].begin, lists_[index].size)
                                 : std::span<const T>();
  }

 private:
  struct List {
    size_t begin = 0;
    size_t size = 0;
  };

  std::vector<List> lists_;
  std::vector<T> items_;
};

}  // namespace shardc
