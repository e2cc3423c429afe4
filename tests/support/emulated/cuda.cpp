#include "tests/support/emulated/cuda.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <deque>

#include "runtime/comm/cpu_engine.h"
#include "runtime/control/rank_control.h"
#include "runtime/device/cpu/shuffled_device.h"
#include "runtime/device/cuda/bad_ids.h"
#include "runtime/device/cuda/stream.h"
#include "runtime/device/family.h"
#include "runtime/kernels/cuda/finite.h"
#include "runtime/kernels/cuda/fold.h"
#include "runtime/kernels/cuda/initial_values.h"
#include "runtime/kernels/host/host.h"
#include "runtime/kernels/reference/reference.h"

namespace shardc {

/// Addresses of an arena, which nobody may access, and its memory.
class EmulatedArena {
 public:
  static auto Create(int64_t bytes) -> ErrorOr<EmulatedArena> {
    EmulatedArena arena;
    arena.bytes_ = bytes;
    for (Mapping* const mapping : {&arena.addresses_, &arena.memory_}) {
      auto created = Mapping::Create(bytes, Mapping::Kind::Private);
      if (!created) {
        return created.error();
      }
      *mapping = *std::move(created);
    }
    CHECK(bytes == 0 || mprotect(arena.addresses_.base(), static_cast<size_t>(bytes), PROT_NONE) == 0,
          "memory cannot be closed");
    return arena;
  }
  auto base() const -> std::byte* { return addresses_.base(); }
  auto bytes() const -> Bytes { return Bytes{bytes_}; }
  auto Touched() const -> Bytes { return memory_.Touched(); }
  auto Holds(const std::byte* address) const -> bool { return address >= base() && address < base() + bytes_; }
  auto MemoryAt(const std::byte* address) const -> std::byte* { return memory_.base() + (address - base()); }

 private:
  Mapping addresses_;
  Mapping memory_;
  int64_t bytes_ = 0;
};

/// A device that shuffles, with addresses of its own.
class EmulatedDevice final : public RankDevice {
 public:
  static auto Create(const Plan& plan, const DevicePlace& place) -> ErrorOr<std::unique_ptr<RankDevice>> {
    auto device = std::make_unique<EmulatedDevice>(plan, place.rank);
    for (size_t i = 0; i < NumArenas; ++i) {
      auto arena = EmulatedArena::Create(plan.arena_bytes[i]);
      if (!arena) {
        return arena.error();
      }
      device->arenas_[i] = *std::move(arena);
    }
    return std::unique_ptr<RankDevice>(std::move(device));
  }

  EmulatedDevice(const Plan& plan, int64_t rank)
      : none_(*SharedArenas::Create({}, {rank, rank + 1})),
        inner_(plan, *ArenaSet::Create(none_, rank)),
        queues_(NumStreams, EmulatedQueue(this)) {
    for (size_t i = 0; i < NumStreams; ++i) {
      queues_[i].inner = &inner_.queue(static_cast<Stream>(i));
    }
  }
  // Queues know where their device is.
  EmulatedDevice(const EmulatedDevice&) = delete;
  auto operator=(const EmulatedDevice&) -> EmulatedDevice& = delete;

  auto Base(Arena arena) const -> std::byte* override { return arenas_[static_cast<size_t>(arena)].base(); }
  auto queue(Stream stream) -> Queue& override { return queues_[static_cast<size_t>(stream)]; }
  auto scalars() -> ScalarTable& override { return inner_.scalars(); }
  auto BeginSection(const SectionStart& start, const ScalarTable& host) -> Status override {
    return inner_.BeginSection(start, host);
  }
  auto EndSection(ScalarTable& host) -> Status override {
    RETURN_IF_ERROR(inner_.EndSection(host));
    return Finish();
  }
  auto Finish() -> Status override {
    Status status = Success{};
    for (BadIds& ids : bad_ids_) {
      if (const unsigned long long word = std::exchange(ids.word, NoBadId); word != NoBadId) {
        status = BadIdError(word, ids.vocabulary);
      }
    }
    return status;
  }
  auto MeasureUse() const -> std::vector<ArenaUse> override {
    std::vector<ArenaUse> uses;
    for (size_t i = 0; i < NumArenas; ++i) {
      uses.push_back({static_cast<Arena>(i), arenas_[i].bytes(), arenas_[i].Touched()});
    }
    return uses;
  }

  /// Returns the word of the vocabulary, as shardc::BadIdsOf does.
  auto BadIdsOf(int64_t vocabulary) -> unsigned long long* {
    const auto known = std::ranges::find(bad_ids_, vocabulary, &BadIds::vocabulary);
    return known != bad_ids_.end() ? &known->word : &bad_ids_.emplace_back(vocabulary).word;
  }

  auto shared_word() -> uint32_t* { return &shared_word_; }

  /// Requires: the address lies in an arena.
  auto MemoryAt(const std::byte* address) const -> std::byte* {
    const auto arena =
        std::ranges::find_if(arenas_, [&](const EmulatedArena& candidate) { return candidate.Holds(address); });
    CHECK(arena != arenas_.end(), "an address that is none of the device");
    return arena->MemoryAt(address);
  }

  /// Returns the memory of the arenas, which those of the device's addresses stand for.
  auto Memories() const -> PeerTable::value_type {
    PeerTable::value_type memories{};
    for (size_t i = 0; i < NumArenas; ++i) {
      memories[i] = arenas_[i].bytes().value == 0 ? nullptr : arenas_[i].MemoryAt(arenas_[i].base());
    }
    return memories;
  }

  class EmulatedQueue final : public Queue {
   public:
    explicit EmulatedQueue(EmulatedDevice* device) : device_(*device) {}
    auto Enqueue(Turns& turns, size_t index, const Moment& moment) -> Status override {
      return inner->Enqueue(turns, index, moment);
    }
    auto Wait(EventId event) -> Status override { return inner->Wait(event); }
    auto Signal(EventId event) -> Status override { return inner->Signal(event); }
    auto Read(const std::byte* from, int64_t bytes, HostScratch& scratch) -> ErrorOr<const std::byte*> override {
      return inner->Read(bytes == 0 ? nullptr : device_.MemoryAt(from), bytes, scratch);
    }
    auto BeginWrite(std::byte* to, int64_t bytes, HostScratch& scratch) -> std::byte* override {
      return inner->BeginWrite(to, bytes, scratch);
    }
    auto EndWrite(std::byte* to, int64_t bytes, HostScratch& scratch) -> Status override {
      return inner->EndWrite(bytes == 0 ? nullptr : device_.MemoryAt(to), bytes, scratch);
    }

    auto device() -> EmulatedDevice& { return device_; }
    Queue* inner = nullptr;

   private:
    EmulatedDevice& device_;
  };

 private:
  struct BadIds {
    explicit BadIds(int64_t size) : vocabulary(size) {}
    int64_t vocabulary;
    unsigned long long word = NoBadId;
  };

  std::array<EmulatedArena, NumArenas> arenas_;
  SharedArenas none_;
  /// Has no arenas.
  ShuffledDevice inner_;
  std::vector<EmulatedQueue> queues_;
  /// Kernels keep the addresses of words.
  std::deque<BadIds> bad_ids_;
  uint32_t shared_word_ = 0;
};

/// The CPU's engine on the memories that the addresses of emulated devices stand for, with the GPU's sums.
class EmulatedEngine final : public CpuEngine {
 public:
  using CpuEngine::CpuEngine;
  auto Fold(Queue&, const std::vector<const std::byte*>& terms, size_t per_host, std::byte* out, int64_t num_elements,
            ReduceTypes types, bool accumulate) -> Status override {
    return cuda::Fold(nullptr, terms, per_host, out, num_elements, types, accumulate);
  }
  auto Peer(int64_t rank, const CommSpan& span) const -> std::byte* override {
    return BaseOf(rank, span.arena) + span.offset;
  }
};

static auto MakeEmulatedEngine(RankDevice& device, const std::shared_ptr<HostMember>& member, RankControl& control)
    -> ErrorOr<std::unique_ptr<Engine>> {
  auto peers = control.GatherValues(AxisSet::All(), static_cast<EmulatedDevice&>(device).Memories());
  if (!peers) {
    return peers.error();
  }
  return std::unique_ptr<Engine>(std::make_unique<EmulatedEngine>(member, *std::move(peers)));
}

static auto DeviceOf(Queue& queue) -> EmulatedDevice& {
  return static_cast<EmulatedDevice::EmulatedQueue&>(queue).device();
}

auto StreamOf(Queue&) -> CUstream_st* { return nullptr; }

auto BadIdsOf(Queue& queue, int64_t vocabulary) -> unsigned long long* { return DeviceOf(queue).BadIdsOf(vocabulary); }

auto SharedWordOf(Queue& queue) -> uint32_t* { return DeviceOf(queue).shared_word(); }

/// Binds kernels to the memory that the device's addresses stand for.
class MemoryBinder final : public Binder {
 public:
  explicit MemoryBinder(Binder* binder) : binder_(*binder) {}

  auto ViewOf(ValueId value) -> View override {
    View view = binder_.ViewOf(value);
    if (view.num_elements() > 0) {
      view.base = DeviceOf(binder_.queue()).MemoryAt(view.base);
    }
    return view;
  }
  auto plan() const -> const Plan& override { return binder_.plan(); }
  auto rank() const -> int64_t override { return binder_.rank(); }
  auto communicator() -> Communicator& override { return binder_.communicator(); }
  auto control() -> RankControl& override { return binder_.control(); }
  auto device() -> RankDevice& override { return binder_.device(); }
  auto tokens() -> TokenReader& override { return binder_.tokens(); }
  auto writer() -> CheckpointWriter& override { return binder_.writer(); }
  auto reader() -> CheckpointReader& override { return binder_.reader(); }

 private:
  Binder& binder_;
};

static auto BindEmulated(const OpBody& body, Binder& of_device) -> Kernel {
  MemoryBinder binder(&of_device);
  return VisitBody(body, [&]<class Body>(const Body& concrete) -> Kernel {
    if constexpr (host::HasKernel<Body>) {
      CHECK(false, "{} works on the host", Body::Mnemonic);
    } else if constexpr (std::is_same_v<Body, op::Matmul>) {
      return reference::Bind(concrete, binder);
    } else {
      return cuda::Bind(concrete, binder);
    }
  });
}

auto EmulatedVersions() -> std::map<std::string, std::string>& {
  static std::map<std::string, std::string> versions;
  return versions;
}

auto UseEmulatedCuda() -> void {
  static constexpr FamilyParts Parts{.resolve_device = [](Plan& plan) -> Status {
                                       plan.device = Device::CudaSm90;
                                       return Success{};
                                     },
                                     .make_device = EmulatedDevice::Create,
                                     .make_engine = MakeEmulatedEngine,
                                     .bind_op = BindEmulated,
                                     .bind_initialize =
                                         [](const op::Initialize& op, Binder& of_device) {
                                           MemoryBinder binder(&of_device);
                                           return cuda::BindInitialize(op, binder, of_device);
                                         },
                                     .are_finite =
                                         [](ValueId value, Binder& of_device) {
                                           MemoryBinder binder(&of_device);
                                           return cuda::AreFinite(value, binder, of_device);
                                         },
                                     .versions = [] { return EmulatedVersions(); }};
  SetParts(DeviceFamily::Cuda, &Parts);
}

}  // namespace shardc
