// What the ranks of a job tell each other beside the data that their plan moves: what they agree on, where each of them
// is, and that the job is to stop. The collectives of the plan are the communicator's (runtime/comm).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/mesh/mesh.h"
#include "compiler/plan/types.h"
#include "runtime/control/position.h"
#include "runtime/control/traffic.h"

namespace shardc {

/// One rank's part in the control of its job.
///
/// Agreements are collective over the group of `axes`: the ranks that share the other coordinates. They are for a few
/// bytes now and then, at a start, a save or an end, and never for each step.
/// Errors: ExitCode::Environment with the peer's rank, if a peer failed, is gone, or did not come within the timeout.
class RankControl {
 public:
  virtual ~RankControl() = default;
  virtual auto rank() const -> int64_t = 0;
  virtual auto mesh() const -> const Mesh& = 0;

  /// The most that one call brings to a rank.
  static constexpr int64_t MaxBytes = int64_t{1} << 20;

  /// Gathers `bytes` of every rank's `mine` into `all`, in rank order. Requires: together at most MaxBytes.
  virtual auto Gather(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status = 0;
  /// Gathers one trivially copyable value per rank.
  template <class T>
  requires std::is_trivially_copy_constructible_v<T>
  auto GatherValues(AxisSet axes, const T& mine) -> ErrorOr<std::vector<T>> {
    std::vector<T> all(static_cast<size_t>(mesh().size(axes)));
    RETURN_IF_ERROR(
        Gather(axes, reinterpret_cast<const std::byte*>(&mine), sizeof(T), reinterpret_cast<std::byte*>(all.data())));
    return all;
  }
  /// Copies `data` of member 0 of the group to all members. At most MaxBytes.
  virtual auto Broadcast(AxisSet axes, std::byte* data, int64_t bytes) -> Status = 0;
  /// Replaces `data` by the sum of the group's data, in rank order. Dtypes F32, F64, I64; at most MaxBytes.
  virtual auto Sum(AxisSet axes, std::byte* data, int64_t num_elements, DType dtype) -> Status = 0;
  virtual auto Barrier(AxisSet axes) -> Status = 0;

  /// Notes the op that a stream of this rank begins, for the messages of peers. Called at each op: two relaxed stores.
  virtual auto SetPosition(Stream stream, const Position& position) -> void = 0;
  /// Notes that the op of the last SetPosition of this stream is over.
  virtual auto LeavePosition(Stream stream) -> void = 0;

  /// Returns true if a signal to any rank, or to a launcher, asked all ranks to stop. The ranks may see it at different
  /// steps; the plan's op `control` makes them agree.
  virtual auto StopIsRequested() const -> bool = 0;
  /// Stores the number of completed steps for the launcher's record of the job. Called by rank 0.
  virtual auto SetCompletedSteps(int64_t steps) -> void = 0;

  /// Returns the traffic of all agreements so far.
  auto traffic() const -> const Traffic& { return traffic_; }

 protected:
  auto Count(int64_t payload, int64_t wire) -> void { traffic_.Add({.calls = 1, .payload = payload, .wire = wire}); }

 private:
  Traffic traffic_;
};

}  // namespace shardc
