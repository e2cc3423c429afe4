// Two plans side by side: the keys of their recipes, and what these keys change.
#pragma once

#include <string>
#include <vector>

#include "compiler/keys/plan_keys.h"
#include "compiler/report/report.h"

namespace shardc {

enum class FigureKind : uint8_t { Memory, Wire, Flops, Time, Count };
template <>
struct EnumNames<FigureKind> {
  static constexpr std::array<std::string_view, 5> names{"memory", "wire", "flops", "time", "count"};
};

struct FigureChange {
  FigureKind kind = FigureKind::Memory;
  /// "activations", "all_gather dp bf16". Times are in microseconds.
  std::string name;
  int64_t a = 0;
  int64_t b = 0;
  /// True for agreements of the ranks, which the text for people leaves out.
  bool is_agreement = false;
};

struct Comparison {
  std::string hash_a;
  std::string hash_b;
  /// Keys, and what decides the plan beside them.
  std::vector<KeyDifference> keys;
  /// All that differ, memory first, then communication, then FLOPs.
  std::vector<FigureChange> figures;

  /// Returns true if neither a key nor anything of the plan differs.
  auto is_same() const -> bool { return hash_a == hash_b && keys.empty(); }
};

/// Requires: both reports are of whole plans.
auto Compare(const Report& a, const Report& b) -> Comparison;

auto RenderComparisonText(const Comparison& comparison) -> std::string;
auto RenderComparisonJson(const Comparison& comparison) -> std::string;

}  // namespace shardc
