// What the collectives of a section move, by op, axes and type: one sum, which explain prints and which a run compares
// with what its communicator counted.
#pragma once

#include <functional>
#include <vector>

#include "compiler/plan/exchange.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Collectives of one kind, counted over one run of a section.
struct Communication {
  CollectiveKind op = CollectiveKind::None;
  AxisSet axes;
  DType dtype = DType::F32;
  int64_t count = 0;
  /// Sums over `count`: of the full vectors, on one rank; and of what the ranks of one group send together.
  Bytes payload;
  GroupTraffic group;

  /// Returns the bytes that one rank sends; the mean over its group, if slices are not equal.
  auto wire(const Mesh& mesh) const -> Bytes { return group.all / mesh.size(axes); }
  /// Returns the bytes that it sends to other hosts.
  auto between_hosts(const Mesh& mesh) const -> Bytes { return group.between_hosts / mesh.size(axes); }
};

/// Returns the communication of a section in the order of the first op of each kind; repeats count.
auto CommunicationOf(const Plan& plan, SectionKind section) -> std::vector<Communication>;
/// Returns the communication of those ops for which `is_counted` is true.
auto CommunicationOf(const Plan& plan, SectionKind section, const std::function<bool(const Op&)>& is_counted)
    -> std::vector<Communication>;

}  // namespace shardc
