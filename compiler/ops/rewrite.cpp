#include "compiler/ops/rewrite.h"

namespace shardc {

namespace {

struct FieldReplacer {
  const std::function<void(ValueId&)>& reads;
  const std::function<void(ValueId&)>& writes;

  auto In(std::string_view, ValueId& id) -> void { reads(id); }
  auto Out(std::string_view, ValueId& id) -> void { writes(id); }
  auto Over(std::string_view, ValueId& id, ValueId&) -> void { writes(id); }
  auto Acc(std::string_view, ValueId& id, ValueId& onto) -> void {
    writes(id);
    if (onto.valid()) {
      reads(onto);
    }
  }
  auto InOut(std::string_view, ValueId& id) -> void { reads(id); }
  auto Scratch(std::string_view, ValueId& id) -> void {
    if (id.valid()) {
      writes(id);
    }
  }
  auto Whole(std::string_view, BufferId&) -> void {}
  template <class T>
  auto Attr(std::string_view, T&) -> void {}
};

struct Renumberer {
  const std::vector<ValueId>& values;
  const std::vector<BufferId>& buffers;

  auto Renumber(ValueId& id) const -> void {
    if (id.valid()) {
      id = values[static_cast<size_t>(id.index)];
    }
  }
  auto In(std::string_view, ValueId& id) const -> void { Renumber(id); }
  auto Out(std::string_view, ValueId& id) const -> void { Renumber(id); }
  auto Over(std::string_view, ValueId& id, ValueId&) const -> void { Renumber(id); }
  auto Acc(std::string_view, ValueId& id, ValueId& onto) const -> void {
    Renumber(id);
    Renumber(onto);
  }
  auto InOut(std::string_view, ValueId& id) const -> void { Renumber(id); }
  auto Scratch(std::string_view, ValueId& id) const -> void { Renumber(id); }
  auto Whole(std::string_view, BufferId& id) const -> void { id = buffers[static_cast<size_t>(id.index)]; }
  template <class T>
  auto Attr(std::string_view, T&) const -> void {}
};

}  // namespace

static auto ReplaceFields(OpBody& body, FieldReplacer replacer) -> void {
  VisitBody(body, [&](auto& concrete) { VisitFields(concrete, replacer); });
}

auto ReplaceReads(OpBody& body, const std::function<void(ValueId&)>& replace) -> void {
  ReplaceFields(body, {.reads = replace, .writes = [](ValueId&) {}});
}

auto ReplaceWrites(OpBody& body, const std::function<void(ValueId&)>& replace) -> void {
  ReplaceFields(body, {.reads = [](ValueId&) {}, .writes = replace});
}

/// Moves the items of `table` whose flag is set to a new table; the new id of each old one.
template <class IdType, class T>
static auto Compact(IdVector<IdType, T>& table, const std::vector<bool>& used) -> std::vector<IdType> {
  std::vector<IdType> numbers(static_cast<size_t>(table.size()));
  IdVector<IdType, T> kept;
  for (const IdType id : table.ids()) {
    if (used[static_cast<size_t>(id.index)]) {
      numbers[static_cast<size_t>(id.index)] = kept.Add(std::move(table[id]));
    }
  }
  table = std::move(kept);
  return numbers;
}

auto RemoveUnused(Plan& plan) -> void {
  std::vector<bool> value_used(static_cast<size_t>(plan.values.size()), false);
  std::vector<bool> buffer_used(static_cast<size_t>(plan.buffers.size()), false);
  const auto use = [&](ValueId id) {
    if (id.valid()) {
      value_used[static_cast<size_t>(id.index)] = true;
      buffer_used[static_cast<size_t>(plan.values[id].buffer.index)] = true;
    }
  };
  for (Section& section : plan.sections) {
    for (Op& op : section.ops) {
      for (const Access& access : AccessesOf(op.body)) {
        use(access.value);
        use(access.kills);
      }
    }
  }
  for (const SubVector& sub_vector : plan.sub_vectors) {
    ForEachSlice(sub_vector, use);
  }

  const std::vector<ValueId> values = Compact(plan.values, value_used);
  const std::vector<BufferId> buffers = Compact(plan.buffers, buffer_used);
  const Renumberer renumberer{.values = values, .buffers = buffers};
  for (Value& value : plan.values) {
    value.buffer = buffers[static_cast<size_t>(value.buffer.index)];
  }
  for (Section& section : plan.sections) {
    for (Op& op : section.ops) {
      VisitBody(op.body, [&](auto& body) { VisitFields(body, renumberer); });
    }
  }
  for (SubVector& sub_vector : plan.sub_vectors) {
    ForEachSlice(sub_vector, [&](ValueId& id) { renumberer.Renumber(id); });
  }
}

}  // namespace shardc
