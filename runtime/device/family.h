// What a program has for plans of a family of devices beyond the CPU's, of which every program has the parts. A program
// that has more says so when it begins; all others refuse plans for that family.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/base/devices.h"
#include "runtime/device/device.h"

namespace shardc {

class Binder;
class Engine;
class HostMember;
class LaunchGraphs;
class NcclApi;
class NcclGroups;
class ProductBench;

/// Some elements of a value.
struct ValuePart {
  ValueId value;
  Interval elements;
};

/// Halves of a digest of 128 bits.
using PartDigest = std::pair<uint64_t, uint64_t>;

struct FamilyParts {
  /// Decides plan.device by the cards of this machine, which the calling process itself never touches.
  auto(*resolve_device)(Plan& plan) -> Status = nullptr;
  auto(*make_device)(const Plan& plan, const DevicePlace& place) -> ErrorOr<std::unique_ptr<RankDevice>> = nullptr;
  /// Makes what collectives among the ranks of a host are made of. All of them call it together. `remote`: for what is
  /// exchanged with ranks of other hosts; null if the plan's collectives stay on this host.
  auto(*make_engine)(RankDevice& device, const std::shared_ptr<HostMember>& member,
                     const std::shared_ptr<NcclGroups>& remote) -> ErrorOr<std::unique_ptr<Engine>> = nullptr;
  /// Returns the library by which devices of several hosts exchange.
  auto(*nccl)() -> NcclApi& = nullptr;
  /// Binds an op that no kernel of the host does.
  auto(*bind_op)(const OpBody& body, Binder& binder) -> std::function<Status(const Moment&)> = nullptr;
  /// Binds what the device does of an op that is the host's. The result returns false where the host has to do it.
  auto(*bind_initialize)(const op::Initialize& op, Binder& binder)
      -> std::function<ErrorOr<bool>(const Moment&)> = nullptr;
  /// Returns true if all elements of a value of floats are finite. Between sections, when all queues are empty.
  auto(*are_finite)(ValueId value, Binder& binder) -> ErrorOr<bool> = nullptr;
  /// Returns a digest of each part. Between sections, when all queues are empty.
  auto(*digests)(std::span<const ValuePart> parts, Binder& binder) -> ErrorOr<std::vector<PartDigest>> = nullptr;
  /// Makes a bench with those products of the plan that `wants` returns true for. What is in the memory of the rank is
  /// lost.
  auto(*make_product_bench)(Binder& binder, const std::function<bool(const std::string& product)>& wants)
      -> ErrorOr<std::unique_ptr<ProductBench>> = nullptr;
  /// Makes what records and repeats launches on a device.
  auto(*make_launch_graphs)(RankDevice& device) -> std::unique_ptr<LaunchGraphs> = nullptr;
  /// Returns what the bits of results depend on beside the plan, by name: the card, and the versions of its driver and
  /// of the libraries. Called by a rank that has its device.
  auto(*versions)() -> std::map<std::string, std::string> = nullptr;
};

/// Returns the parts of a family; all null if the program does not have it, or has it without them.
auto PartsOf(DeviceFamily family) -> const FamilyParts&;
/// Returns the versions of a family; nothing if they are those of the program.
auto VersionsOf(DeviceFamily family) -> std::map<std::string, std::string>;
/// Sets the parts of a family, once, when a program begins. `parts` outlives all use.
auto SetParts(DeviceFamily family, const FamilyParts* parts) -> void;

}  // namespace shardc
