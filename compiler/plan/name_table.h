// Names and their numbers: a hash table in one piece, since a large plan names things some hundred thousand times.
#pragma once

#include <cstdint>
#include <forward_list>
#include <string>
#include <string_view>
#include <vector>

namespace shardc {

/// Numbers names in the order in which they come.
class NameTable {
 public:
  /// Returns the number of `name`, or -1.
  auto Find(std::string_view name) const -> int32_t;
  /// Gives `name` the next number; false where it has one. `lasts`: its characters are there as long as the table is.
  auto Add(std::string_view name, bool lasts) -> bool;
  auto size() const -> int32_t { return static_cast<int32_t>(names_.size()); }

 private:
  struct Slot {
    uint64_t hash = 0;
    int32_t number = -1;
  };
  /// Returns the slot that `name` has, or would have.
  auto SlotOf(std::string_view name, uint64_t hash) const -> size_t;
  auto Grow() -> void;

  /// A power of two, at most half of them taken.
  std::vector<Slot> slots_ = std::vector<Slot>(16);
  std::vector<std::string_view> names_;
  std::forward_list<std::string> kept_;
};

}  // namespace shardc
