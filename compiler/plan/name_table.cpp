// Open addressing: a name is compared with another only where their hashes are the same.
#include "compiler/plan/name_table.h"

#include <xxhash.h>

#include <utility>

namespace shardc {

static auto HashOf(std::string_view name) -> uint64_t { return XXH3_64bits(name.data(), name.size()); }

auto NameTable::SlotOf(std::string_view name, uint64_t hash) const -> size_t {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at].number >= 0 &&
         (slots_[at].hash != hash || names_[static_cast<size_t>(slots_[at].number)] != name)) {
    at = (at + 1) & mask;
  }
  return at;
}

auto NameTable::Find(std::string_view name) const -> int32_t { return slots_[SlotOf(name, HashOf(name))].number; }

auto NameTable::Add(std::string_view name, bool lasts) -> bool {
  const uint64_t hash = HashOf(name);
  Slot& slot = slots_[SlotOf(name, hash)];
  if (slot.number >= 0) {
    return false;
  }
  slot = {.hash = hash, .number = size()};
  names_.push_back(lasts ? name : kept_.emplace_front(name));
  if (2 * names_.size() > slots_.size()) {
    Grow();
  }
  return true;
}

auto NameTable::Grow() -> void {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
  for (const Slot& slot : old) {
    if (slot.number >= 0) {
      slots_[SlotOf(names_[static_cast<size_t>(slot.number)], slot.hash)] = slot;
    }
  }
}

}  // namespace shardc
