// Changes to ops that are already emitted: other operands, and the removal of what nothing uses.
#pragma once

#include <functional>

#include "compiler/ops/ops.h"

namespace shardc {

namespace rewrite_internal {

template <class Function>
struct FieldReplacer {
  Function reads;
  Function writes;

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

}  // namespace rewrite_internal

/// Calls `replace(ValueId&)` for each value the op reads (IN, INOUT, the onto of ACC).
template <class Function>
auto ReplaceReads(OpBody& body, Function&& replace) -> void {
  const std::function<void(ValueId&)> reads = replace;
  const std::function<void(ValueId&)> none = [](ValueId&) {};
  rewrite_internal::FieldReplacer<std::function<void(ValueId&)>> replacer{reads, none};
  VisitBody(body, [&](auto& concrete) { VisitFields(concrete, replacer); });
}

/// Calls `replace(ValueId&)` for each value the op writes and does not read (OUT, OVER, ACC, SCRATCH).
template <class Function>
auto ReplaceWrites(OpBody& body, Function&& replace) -> void {
  const std::function<void(ValueId&)> writes = replace;
  const std::function<void(ValueId&)> none = [](ValueId&) {};
  rewrite_internal::FieldReplacer<std::function<void(ValueId&)>> replacer{none, writes};
  VisitBody(body, [&](auto& concrete) { VisitFields(concrete, replacer); });
}

/// Drops values that no op and no sub-vector names and buffers that no value lies in; numbers the rest again, in order.
auto RemoveUnused(Plan& plan) -> void;

}  // namespace shardc
