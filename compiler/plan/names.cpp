// Names of a plan's text.
//   1. tables: what lies there knows its name; a sub-vector is called after its unit and what keeps it apart
//   2. events: after what the op writes that signals; what no name has is put as `_`, since names of events stand in
//      lists
//   3. of those with one name, all but the first get a number, in the order of the table. A name that ends like one
//   with
//      a number gets #1, and so does none at all: so two texts never are the same
#include "compiler/plan/names.h"

#include <algorithm>

#include "compiler/base/mapped.h"
#include "compiler/plan/name_table.h"
#include "compiler/plan/quoted_text.h"

namespace shardc {

auto WithoutNumber(std::string_view text) -> std::string_view {
  const size_t last = text.find_last_not_of("0123456789");
  const bool numbered =
      last != std::string_view::npos && last + 1 < text.size() && text[last] == '#' && text[last + 1] != '0';
  return numbered ? text.substr(0, last) : text;
}

auto PlanNames::Keep(std::string text) -> std::string_view {
  made_.push_front(std::move(text));
  return made_.front();
}

auto PlanNames::AppendQuoted(std::string_view text, std::string& out, std::string_view before, std::string_view after)
    -> void {
  out += Quote(fmt::format("{}{}{}", before, text, after));
}

template <class IdType>
auto PlanNames::Number(std::vector<std::string_view> names) -> void {
  std::vector<Name>& table = std::get<Table<IdType>>(tables_).names;
  table.reserve(names.size());
  NameTable known;
  std::vector<int32_t> uses;
  for (std::string_view name : names) {
    if (known.Add(name, true)) {
      uses.push_back(0);
    }
    const int32_t use = ++uses[static_cast<size_t>(known.Find(name))];
    if (use > 1 || name.empty() || WithoutNumber(name).size() != name.size()) {
      name = Keep(fmt::format("{}#{}", name, use));
    }
    table.push_back({name, IsBare(name)});
  }
}

template <class IdType, class T>
auto PlanNames::Take(const IdVector<IdType, T>& table) -> void {
  auto names = Mapped<std::string_view>(table, &T::name);
  Number<IdType>(std::move(names));
}

namespace {

struct BufferFinder : IgnoreFields {
  BufferId buffer = {};
  auto Whole(std::string_view, BufferId id) -> void { buffer = id; }
};

}  // namespace

/// What the op of an event does: the first value that it writes, or the buffer that it gives back, or its own name.
static auto EventName(const Plan& plan, const Op& op) -> std::string {
  std::string name;
  for (const Access& access : AccessesOf(op.body)) {
    if (access.kind != AccessKind::Read && name.empty() && plan.values.Has(access.value)) {
      name = plan.values[access.value].name;
    }
  }
  BufferFinder finder;
  VisitBody(op.body, [&](const auto& body) { VisitFields(body, finder); });
  if (name.empty() && plan.buffers.Has(finder.buffer)) {
    name = fmt::format("{}.{}", ToText(op.kind()), plan.buffers[finder.buffer].name);
  }
  if (name.empty()) {
    name = ToText(op.kind());
  }
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !IsBareCharacter(c); }, '_');
  return IsBare(name) ? name : "_" + name;
}

auto PlanNames::TakeEvents(const Plan& plan) -> void {
  // A plan may tell any number of events: there are no more than its ops mention.
  size_t mentions = 0;
  for (const Section& section : plan.sections) {
    for (const Op& op : section.ops) {
      mentions += op.waits.size() + 1;
    }
  }
  std::vector<std::string_view> names(std::min(static_cast<size_t>(std::max(0, plan.num_events)), mentions));
  for (const Section& section : plan.sections) {
    for (const Op& op : section.ops) {
      const auto index = static_cast<size_t>(op.signals.index);
      if (op.signals.valid() && index < names.size() && names[index].empty() &&
          !std::holds_alternative<std::monostate>(op.body)) {
        names[index] = Keep(EventName(plan, op));
      }
    }
  }
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) {
      names[i] = Keep(fmt::format("never.{}", i));
    }
  }
  Number<EventId>(std::move(names));
}

PlanNames::PlanNames(const Plan& plan) {
  Take(plan.buffers);
  Take(plan.values);
  Take(plan.heads);
  Take(plan.groups);
  Take(plan.parameters);
  Take(plan.units);
  Take(plan.scalars);
  auto names = Mapped<std::string_view>(plan.sub_vectors, [&](const SubVector& sub_vector) {
    return plan.units.Has(sub_vector.unit) ? Keep(shardc::NameOf(plan, sub_vector)) : std::string_view();
  });
  Number<SubVectorId>(std::move(names));
  TakeEvents(plan);
}

template <class IdType, class T>
static auto NameIn(const IdVector<IdType, T>& table, IdType id) -> std::string {
  std::string text(Sigil<IdType>);
  if (!table.Has(id)) {
    return text + '?' + std::to_string(id.index);
  }
  const std::string& name = table[id].name;
  const auto use =
      1 + std::count_if(table.begin(), table.begin() + id.index, [&](const T& other) { return other.name == name; });
  text += name;
  if (use > 1 || name.empty() || WithoutNumber(name).size() != name.size()) {
    text += '#';
    text += std::to_string(use);
  }
  return text;
}

auto NameOf(const Plan& plan, ValueId id) -> std::string { return NameIn(plan.values, id); }
auto NameOf(const Plan& plan, BufferId id) -> std::string { return NameIn(plan.buffers, id); }

}  // namespace shardc
