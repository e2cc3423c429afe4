// One rank of a World on a GPU: its device and the collectives of a plan, made as a launch makes them.
#pragma once

#include <memory>
#include <vector>

#include "runtime/comm/engine.h"
#include "runtime/comm/layered_communicator.h"
#include "runtime/control/host_member.h"
#include "runtime/device/device.h"
#include "tests/control/world.h"

namespace shardc {

/// Streams on which plans have collectives.
constexpr std::array StreamsOfCollectives{Stream::Dp, Stream::Tp, Stream::Reduce};

/// Returns a plan for GPUs whose ops communicate over each set of axes on each of these streams.
auto PlanOfCollectives(const Mesh& mesh, const std::vector<AxisSet>& sets, int64_t shared_bytes, int64_t own_bytes)
    -> Plan;

class GpuRank {
 public:
  /// Makes a rank, whose streams lag at random if it `lags`. Called by all ranks together. Requires: `plan` outlives
  /// it.
  static auto Create(const Plan& plan, const std::shared_ptr<HostMember>& member, bool lags)
      -> ErrorOr<std::unique_ptr<GpuRank>>;

  auto number() const -> int64_t { return member_->rank(); }
  auto device() const -> RankDevice& { return *device_; }
  /// Returns the engine of the communicator.
  auto engine() const -> Engine& { return *engine_; }
  auto comm() const -> LayeredCommunicator& { return *comm_; }
  auto SpanOf(Arena arena, int64_t offset, int64_t bytes) const -> CommSpan {
    return {.data = device_->Base(arena) + offset, .bytes = bytes, .arena = arena, .offset = offset};
  }
  /// Waits for the other ranks.
  auto Meet() const -> Status { return member_->Meet(member_->GroupOf(AxisSet::All())); }

  /// Enqueues the turn of each number below `count` on its stream, as sections do, and waits for their end.
  template <class StreamOfTurn, class Run>
  auto RunTurns(size_t count, const StreamOfTurn& stream_of, const Run& run) -> Status {
    FunctionTurns turns(run);
    RETURN_IF_ERROR(device_->BeginSection({}, scalars_));
    for (size_t i = 0; i < count; ++i) {
      RETURN_IF_ERROR(device_->queue(stream_of(i)).Enqueue(turns, i, {}));
    }
    return device_->EndSection(scalars_);
  }

 private:
  class FunctionTurns final : public Turns {
   public:
    explicit FunctionTurns(std::function<Status(size_t)> run) : run_(std::move(run)) {}
    auto RunTurn(size_t index, const Moment&) -> Status override { return run_(index); }
    auto NameOfTurn(size_t index) const -> std::string override { return fmt::format("collective {}", index); }

   private:
    std::function<Status(size_t)> run_;
  };

  explicit GpuRank(const std::shared_ptr<HostMember>& member) : member_(member) {}

  std::shared_ptr<HostMember> member_;
  SharedArenas arenas_;
  ScalarTable scalars_{0};
  std::unique_ptr<RankDevice> device_;
  Engine* engine_ = nullptr;
  std::unique_ptr<LayeredCommunicator> comm_;
};

}  // namespace shardc
