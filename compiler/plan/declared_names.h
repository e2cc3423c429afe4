// Names in the text of a plan that is being read, and the ids that they stand for: what a line may name stands above
// it.
#pragma once

#include <string_view>

#include "compiler/plan/name_table.h"
#include "compiler/plan/names.h"

namespace shardc {

/// Words for messages that say what a name of this kind stands for.
template <class IdType>
inline constexpr std::string_view KindWords = "";
template <>
inline constexpr std::string_view KindWords<BufferId> = "a buffer declared above, such as $logits";
template <>
inline constexpr std::string_view KindWords<ValueId> = "a value declared above, such as logits";
template <>
inline constexpr std::string_view KindWords<HeadId> = "a head declared above";
template <>
inline constexpr std::string_view KindWords<GroupId> = "an optimizer group declared above";
template <>
inline constexpr std::string_view KindWords<ParameterId> = "a parameter declared above";
template <>
inline constexpr std::string_view KindWords<UnitId> = "a unit declared above";
template <>
inline constexpr std::string_view KindWords<SubVectorId> = "a sub-vector declared above";
template <>
inline constexpr std::string_view KindWords<ScalarId> = "a scalar declared above, such as @lr";
template <>
inline constexpr std::string_view KindWords<EventId> = "the name of an event";

class DeclaredNames {
 public:
  /// Returns the id that `name` stands for. An event is declared by the first line that names it.
  template <class IdType>
  auto Find(std::string_view name) -> IdType {
    NameTable& table = std::get<Table<IdType>>(tables_);
    if constexpr (std::is_same_v<IdType, EventId>) {
      if (!name.empty()) {
        table.Add(name, false);
      }
    }
    return IdType{table.Find(name)};
  }
  /// Gives `name` the next id of its kind; false where it has one already. `lasts` as for NameTable::Add.
  template <class IdType>
  auto Declare(std::string_view name, bool lasts) -> bool {
    return std::get<Table<IdType>>(tables_).Add(name, lasts);
  }
  auto num_events() const -> int32_t { return std::get<Table<EventId>>(tables_).size(); }

 private:
  template <class IdType>
  struct Table : NameTable {};

  TablesOf<Table> tables_;
};

}  // namespace shardc
