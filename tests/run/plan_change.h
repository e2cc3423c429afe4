// Random changes of what a plan means, one each: another operand, a flag or a sum left out, a byte offset, a table's
// entry, an op or an event that is gone. A plan that a person edits by hand, or that a faulty pass leaves, differs so.
#pragma once

#include <optional>
#include <random>
#include <string>

#include "compiler/plan/plan.h"

namespace shardc {

/// The kinds, in the order in which they take turns.
enum class ChangeKind : uint8_t {
  Sample,
  Operand,
  Flag,
  Constant,
  BufferOffset,
  Neighbours,
  Placement,
  View,
  Segment,
  Parameter,
  Stream,
  Predicate,
  Axes,
  Wait,
  Drop,
  Duplicate,
  Header,
  Inserted,
  Moved,
  Overwritten,
  Triggers,
  Clamped,
  Phase,
  Doubled,
};
template <>
struct EnumNames<ChangeKind> {
  static constexpr std::array<std::string_view, 24> names{
      "sample",  "operand",   "flag",   "constant",    "buffer offset", "neighbours", "placement", "view",
      "segment", "parameter", "stream", "predicate",   "axes",          "wait",       "drop",      "duplicate",
      "header",  "inserted",  "moved",  "overwritten", "triggers",      "clamped",    "phase",     "doubled"};
};

struct PlanChange {
  ChangeKind kind = ChangeKind::Sample;
  /// "step op 12 `compute matmul ...`: a is now logits".
  std::string what;
  /// Of a kind that a person may choose: a hyper-parameter, a seed, a path, an interval, a name.
  bool free = false;
};

/// An op that stands elsewhere too, or further off; a result that lies over state; rows of triggers that change places;
/// a place that is clamped; another phase; a sum over ranks that is taken twice, with placements that say so.
auto ChangeStructure(Plan& plan, ChangeKind kind, std::mt19937_64& random) -> std::optional<PlanChange>;

/// Changes one thing of this kind; nothing where the draw would leave the plan as it was.
auto ChangeOne(Plan& plan, ChangeKind kind, std::mt19937_64& random) -> std::optional<PlanChange>;

}  // namespace shardc
