// What the text of a plan calls the things of its tables: each by its own name, and by name#2, name#3, ... where things
// of its kind stand above under the same name. So a line names what it means, and a thing that is added to a plan
// changes no line but those that name it. Ids stay inside the program.
#pragma once

#include <forward_list>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "compiler/plan/plan.h"

namespace shardc {

/// The character before the name of a buffer and of a scalar.
template <class IdType>
inline constexpr std::string_view Sigil = "";
template <>
inline constexpr std::string_view Sigil<BufferId> = "$";
template <>
inline constexpr std::string_view Sigil<ScalarId> = "@";

template <class T>
concept IsId = requires(T id) {
  []<class Tag>(Id<Tag>) {}(id);
};

/// A table for each kind of thing that the text of a plan names.
template <template <class> class Table>
using TablesOf = std::tuple<Table<BufferId>, Table<ValueId>, Table<HeadId>, Table<GroupId>, Table<ParameterId>,
                            Table<UnitId>, Table<SubVectorId>, Table<ScalarId>, Table<EventId>>;

/// Returns "logits#2" without "#2", which tells things of one name apart and belongs to no name of a thing.
auto WithoutNumber(std::string_view text) -> std::string_view;

/// The names in the text of one plan. Requires: the plan outlives them and does not change.
class PlanNames {
 public:
  explicit PlanNames(const Plan& plan);
  PlanNames(const PlanNames&) = delete;
  auto operator=(const PlanNames&) -> PlanNames& = delete;

  /// Returns "logits#2", "$logits", "@lr". An id outside of its table is "?" and its number, which no parser takes.
  template <class IdType>
  auto Text(IdType id) const -> std::string {
    std::string text(Sigil<IdType>);
    const Table<IdType>& table = std::get<Table<IdType>>(tables_);
    if (table.Has(id)) {
      text += table.names[static_cast<size_t>(id.index)].text;
    } else {
      text += '?';
      text += std::to_string(id.index);
    }
    return text;
  }
  /// Appends `before`, the text of `id` and `after` as one word: in quotes where a character of the name asks for them.
  template <class IdType>
  auto Append(IdType id, std::string& out, std::string_view before = {}, std::string_view after = {}) const -> void {
    const Table<IdType>& table = std::get<Table<IdType>>(tables_);
    if (!table.Has(id) || !table.names[static_cast<size_t>(id.index)].bare) {
      AppendQuoted(Text(id), out, before, after);
      return;
    }
    out += before;
    out += Sigil<IdType>;
    out += table.names[static_cast<size_t>(id.index)].text;
    out += after;
  }

 private:
  struct Name {
    std::string_view text;
    bool bare = false;
  };
  template <class IdType>
  struct Table {
    auto Has(IdType id) const -> bool { return id.index >= 0 && static_cast<size_t>(id.index) < names.size(); }

    std::vector<Name> names = {};
  };

  static auto AppendQuoted(std::string_view text, std::string& out, std::string_view before, std::string_view after)
      -> void;
  template <class IdType, class T>
  auto Take(const IdVector<IdType, T>& table) -> void;
  template <class IdType>
  auto Number(std::vector<std::string_view> names) -> void;
  auto TakeEvents(const Plan& plan) -> void;
  auto Keep(std::string text) -> std::string_view;

  TablesOf<Table> tables_;
  /// Texts that the views above point into, unless they point into the plan.
  std::forward_list<std::string> made_;
};

/// Returns PlanNames(plan).Text(id) for a message, without making the names of everything else.
auto NameOf(const Plan& plan, ValueId id) -> std::string;
auto NameOf(const Plan& plan, BufferId id) -> std::string;

}  // namespace shardc
