// How a collective crosses hosts: which ranks exchange with which, in what pieces, through how much scratch, and what
// that sends. Decided here, once for compiler and communicator.
//
// The ranks of a group that lie on one host first work in their shared memory. Then the ranks that have the same number
// on their hosts exchange over the network: `members` of them, one from each host. With comm = "gloo-flat" all ranks of
// the group exchange, and none works in shared memory. "nccl" and "nccl-flat" are the same between GPUs.
//
// Sums over hosts are this project's own, which every host has from the terms of all. "nccl-ring" leaves them to NCCL,
// as an exchange of terms ends at some number of hosts: each message is as short as the hosts are many, and each
// connection takes buffers. What NCCL sums has bits of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/base/devices.h"
#include "compiler/base/units.h"
#include "compiler/plan/plan.h"

namespace shardc {

struct Exchange {
  /// Ranks that exchange over the network; 1: the group lies in the memory of one host.
  int64_t members = 1;
  /// Members on the host of each member, itself included.
  int64_t members_on_host = 1;
  /// Ranks of the group that work in the memory of one host.
  int64_t local = 1;
  /// Ranks of the group on one host, by which sums are folded: first over them, then over hosts.
  int64_t fold = 1;
  /// Each rank sends its own terms, and not the sums of its host: with gloo-flat, and if a host has one rank of the
  /// group, whose term is the sum of its host.
  bool sends_terms = false;
  /// The library between the hosts sums over them.
  bool sums_by_library = false;

  auto crosses() const -> bool { return members > 1; }
};

/// Returns true if each rank exchanges with all others, and none works in memory that it shares with its host.
constexpr auto IsFlat(Comm comm) -> bool { return comm == Comm::GlooFlat || comm == Comm::NcclFlat; }
constexpr auto IsByGloo(Comm comm) -> bool { return comm == Comm::Gloo || comm == Comm::GlooFlat; }
constexpr auto IsByNccl(Comm comm) -> bool {
  return comm == Comm::Nccl || comm == Comm::NcclFlat || comm == Comm::NcclRing;
}
/// The most that exchange terms between GPUs. Beyond it a message is a few hundred KiB at most (of 405B on 16,384
/// ranks: 780), there are hundreds of them for each reduce-scatter, and buffers, of some 4 MiB for each connection over
/// InfiniBand (from NCCL's source: 8 slots of 128 KiB for each of 2 channels and both directions; not measured), take
/// more than 1 GiB.
constexpr int64_t MostExchangingGpus = 256;
/// Returns true if devices of the family may communicate so.
constexpr auto ServesFamily(Comm comm, DeviceFamily family) -> bool {
  return family == DeviceFamily::Cpu ? !IsByNccl(comm) : !IsByGloo(comm);
}

/// Returns the mesh as shared memory has it: its hosts are those whose ranks do not share memory.
inline auto MemoryMesh(const Plan& plan) -> Mesh {
  Mesh mesh = plan.mesh;
  mesh.hosts = plan.run.comm == Comm::Shm ? 1 : mesh.hosts;
  return mesh;
}

/// Requires: mesh.HostsAreBoxes().
auto ExchangeOver(const Mesh& mesh, Comm comm, AxisSet axes) -> Exchange;
inline auto ExchangeOf(const Plan& plan, AxisSet axes) -> Exchange {
  return ExchangeOver(plan.mesh, plan.run.comm, axes);
}

/// Returns the ranks that exchange over `axes` with `rank`, and this one among them, in the order of the group. Two
/// sets have the same for each rank or for none: hosts cut the mesh along one axis.
auto RemoteRanks(const Plan& plan, AxisSet axes, int64_t rank) -> std::vector<int64_t>;

/// Returns how many elements are exchanged at once of a vector of which each member has `num_elements`: the most that
/// keep the scratch small.
auto ExchangePiece(int64_t num_elements, int64_t members) -> int64_t;
/// Returns the length of the parts into which an all-reduce cuts a piece: one for each member, the last ones padded.
inline auto ReducePart(int64_t piece, int64_t members) -> int64_t { return CeilDiv(piece, members); }
/// Returns where slice `index` of an all-reduce by slices begins, in bytes. All slices are of one length, a multiple of
/// a cache line, but for the last ones, which have what is left.
auto SliceBegin(int64_t bytes, int64_t index, int64_t num_slices) -> int64_t;

/// Returns the type in which terms travel: as they are if each rank sends its own; sums of hosts in f32, or f64 of f64.
auto TravelType(const Exchange& exchange, DType terms) -> DType;

// Bytes of scratch; 0 where nothing crosses hosts.
auto GatherScratch(const Exchange& exchange, int64_t shard_elements, DType dtype) -> Bytes;
auto ReduceScatterScratch(const Exchange& exchange, int64_t slice_elements, DType terms) -> Bytes;
auto AllReduceScratch(const Exchange& exchange, int64_t num_elements, DType dtype, bool by_slices) -> Bytes;

/// Bytes that the ranks of a group send together.
struct GroupTraffic {
  /// Memory of a host and network.
  Bytes all;
  /// Those among them that go between hosts.
  Bytes between_hosts;
};
auto GatherTraffic(const Exchange& exchange, Bytes full) -> GroupTraffic;
auto ReduceScatterTraffic(const Exchange& exchange, int64_t full_elements, DType terms) -> GroupTraffic;
auto AllReduceTraffic(const Exchange& exchange, int64_t num_elements, DType dtype, bool by_slices) -> GroupTraffic;
/// Returns the traffic of an agreement: each rank's `bytes` go to all others.
auto AgreementTraffic(const Exchange& exchange, Bytes bytes) -> GroupTraffic;

}  // namespace shardc
