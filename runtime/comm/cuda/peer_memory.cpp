#include "runtime/comm/cuda/peer_memory.h"

#include <cstring>
#include <random>

namespace shardc {

/// Returns a number that no other process has.
static auto ProcessToken() -> std::array<uint64_t, 2> {
  static const std::array<uint64_t, 2> token = [] {
    std::random_device random;
    const auto word = [&] { return static_cast<uint64_t>(random()) << 32 | random(); };
    return std::array{word(), word()};
  }();
  return token;
}

/// Words on a rank's memory for its peers. Those on its events follow.
struct PeerMemory::Offer {
  std::array<uint64_t, 2> process;
  /// Number of the GPU in that process.
  int number;
  std::byte* memory;
  int64_t memory_bytes;
  cudaIpcMemHandle_t handle;
};

struct PeerMemory::PairOffer {
  EventPair events;
  std::array<cudaIpcEventHandle_t, 2> handles;
};

/// Returns the status of a call that shares memory or events with other processes.
static auto SharingStatus(cudaError_t code) -> Status {
  return code == cudaSuccess
             ? Status(Success{})
             : Fail(ExitCode::Environment,
                    "the GPU's memory cannot be shared with other processes: {} ({}); CUDA IPC needs a whole GPU "
                    "(no MIG) and, of a container, the IPC namespace of its host (docker run --ipc=host)",
                    cudaGetErrorString(code), cudaGetErrorName(code));
}

/// Returns the status of a call that opens what a peer shares.
static auto OpeningStatus(cudaError_t code) -> Status {
  return code == cudaSuccess
             ? Status(Success{})
             : Fail(
                   ExitCode::Environment,
                   "its GPU cannot be reached from this one: {} ({}). Either the two GPUs have no access to each other "
                   "(`nvidia-smi topo -p2p r` shows it), or the launcher hides one from the other: with Slurm take "
                   "--gpu-bind=none and --gpus-per-node in the place of --gpus-per-task; containers of one host need "
                   "its IPC namespace (docker run --ipc=host). With run.comm = \"nccl-flat\" no GPU reaches into "
                   "another",
                   cudaGetErrorString(code), cudaGetErrorName(code));
}

/// Destroys the events of pairs that were made.
static auto DestroyEvents(const auto& pairs) -> void {
  for (const auto& pair : pairs) {
    for (const cudaEvent_t event : pair) {
      if (event != nullptr) {
        cudaEventDestroy(event);
      }
    }
  }
}

PeerMemory::~PeerMemory() {
  Close();
  if (!device_.is_lost()) {
    DestroyEvents(own_);
  }
}

auto PeerMemory::Close() -> void {
  if (!device_.is_lost()) {
    for (const Rank& rank : ranks_) {
      if (!rank.is_opened) {
        continue;
      }
      DestroyEvents(rank.pairs);
      if (rank.memory != nullptr) {
        cudaIpcCloseMemHandle(rank.memory);
      }
    }
  }
  ranks_.clear();
}

auto PeerMemory::MakeOwn(size_t num_pairs) -> Status {
  own_.resize(num_pairs, EventPair{});
  for (EventPair& pair : own_) {
    for (cudaEvent_t& event : pair) {
      RETURN_IF_ERROR(CudaStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventInterprocess),
                                 "making an event for other processes"));
    }
  }
  return Success{};
}

auto PeerMemory::OpenRank(const std::byte* offered, size_t num_pairs, Rank& rank) const -> Status {
  Offer offer;
  std::memcpy(&offer, offered, sizeof(offer));
  std::vector<PairOffer> pairs(num_pairs);
  std::memcpy(pairs.data(), offered + sizeof(offer), num_pairs * sizeof(PairOffer));
  CHECK(offer.memory_bytes == device_.memory_bytes(), "a peer has {} bytes, this rank {}", offer.memory_bytes,
        device_.memory_bytes());
  if (offer.process == ProcessToken()) {
    if (offer.number != device_.number()) {
      const cudaError_t enabled = cudaDeviceEnablePeerAccess(offer.number, 0);
      if (enabled == cudaErrorPeerAccessAlreadyEnabled) {
        // Or the next launch of a kernel would take it for its own error.
        cudaGetLastError();
      } else {
        RETURN_IF_ERROR(OpeningStatus(enabled));
      }
    }
    rank.memory = offer.memory;
    for (const PairOffer& pair : pairs) {
      rank.pairs.push_back(pair.events);
    }
    return Success{};
  }
  rank.is_opened = true;
  rank.pairs.resize(num_pairs, EventPair{});
  void* memory = nullptr;
  RETURN_IF_ERROR(OpeningStatus(cudaIpcOpenMemHandle(&memory, offer.handle, cudaIpcMemLazyEnablePeerAccess)));
  rank.memory = static_cast<std::byte*>(memory);
  for (size_t i = 0; i < num_pairs; ++i) {
    for (size_t k = 0; k < 2; ++k) {
      RETURN_IF_ERROR(OpeningStatus(cudaIpcOpenEventHandle(&rank.pairs[i][k], pairs[i].handles[k])));
    }
  }
  return Success{};
}

auto PeerMemory::Open(HostMember& member, size_t num_pairs) -> Status {
  const HostMember::Group& group = member.GroupOf(AxisSet::All());
  ranks_.resize(group.ranks.size());
  Rank& own = ranks_[static_cast<size_t>(group.index)];
  RETURN_IF_ERROR(MakeOwn(num_pairs));
  own = {.memory = device_.memory(), .pairs = own_};
  if (ranks_.size() == 1) {
    return Success{};
  }
  Offer offer{.process = ProcessToken(),
              .number = device_.number(),
              .memory = device_.memory(),
              .memory_bytes = device_.memory_bytes(),
              .handle = {}};
  RETURN_IF_ERROR(SharingStatus(cudaIpcGetMemHandle(&offer.handle, device_.memory())));
  std::vector<std::byte> mine(sizeof(Offer) + num_pairs * sizeof(PairOffer));
  std::memcpy(mine.data(), &offer, sizeof(offer));
  for (size_t i = 0; i < num_pairs; ++i) {
    PairOffer pair{.events = own.pairs[i], .handles = {}};
    for (size_t k = 0; k < 2; ++k) {
      RETURN_IF_ERROR(SharingStatus(cudaIpcGetEventHandle(&pair.handles[k], pair.events[k])));
    }
    std::memcpy(mine.data() + sizeof(Offer) + i * sizeof(PairOffer), &pair, sizeof(pair));
  }
  std::vector<std::byte> all(mine.size() * ranks_.size());
  RETURN_IF_ERROR(member.Gather(group, mine.data(), std::ssize(mine), all.data()));
  for (size_t i = 0; i < ranks_.size(); ++i) {
    if (&ranks_[i] == &own) {
      continue;
    }
    if (const Status opened = OpenRank(all.data() + i * mine.size(), num_pairs, ranks_[i]); !opened) {
      return Fail(opened.error().code, "rank {}: {}", group.ranks[i], opened.error().message);
    }
  }
  // A rank that ends now would take with it what others have still to open.
  return member.Meet(group);
}

}  // namespace shardc
