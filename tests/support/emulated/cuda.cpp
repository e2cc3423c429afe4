#include "tests/support/emulated/cuda.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <thread>

#include "compiler/base/fs.h"
#include "compiler/base/stopwatch.h"

#include "runtime/comm/cpu_engine.h"
#include "runtime/comm/nccl/nccl_group.h"
#include "runtime/device/cpu/shuffled_device.h"
#include "runtime/device/cuda/bad_ids.h"
#include "runtime/device/cuda/stream.h"
#include "runtime/device/family.h"
#include "runtime/device/launch_graphs.h"
#include "runtime/kernels/cuda/digest.h"
#include "runtime/kernels/cuda/finite.h"
#include "runtime/kernels/cuda/fold.h"
#include "runtime/kernels/cuda/initial_values.h"
#include "runtime/kernels/host/host.h"
#include "runtime/kernels/reference/reference.h"
#include "tests/support/nccl_double.h"
#include "tests/support/nvml_double.h"

namespace shardc {

/// Addresses of an arena, which nobody may access, and its memory.
class EmulatedArena {
 public:
  static auto Create(int64_t bytes) -> ErrorOr<EmulatedArena> {
    EmulatedArena arena;
    arena.bytes_ = bytes;
    arena.file_ = Descriptor(PosixFs(), memfd_create("emulated-arena", MFD_CLOEXEC), "an emulated arena");
    CHECK(arena.file_.get() >= 0 && ftruncate(arena.file_.get(), bytes) == 0, "no memory for an arena");
    auto addresses = Mapping::Create(bytes, Mapping::Kind::Private);
    auto memory = Mapping::OfFile(bytes, arena.file_.get(), 0);
    if (!addresses || !memory) {
      return addresses ? memory.error() : addresses.error();
    }
    arena.addresses_ = *std::move(addresses);
    arena.memory_ = *std::move(memory);
    CHECK(bytes == 0 || mprotect(arena.addresses_.base(), static_cast<size_t>(bytes), PROT_NONE) == 0,
          "memory cannot be closed");
    return arena;
  }
  auto base() const -> std::byte* { return addresses_.base(); }
  auto bytes() const -> Bytes { return Bytes{bytes_}; }
  auto descriptor() const -> int { return file_.get(); }
  auto Touched() const -> Bytes { return memory_.Touched(); }
  auto Holds(const std::byte* address) const -> bool { return address >= base() && address < base() + bytes_; }
  auto MemoryAt(const std::byte* address) const -> std::byte* { return memory_.base() + (address - base()); }

 private:
  Mapping addresses_;
  /// Holds the memory, so that ranks that are other processes find it.
  Descriptor file_;
  Mapping memory_;
  int64_t bytes_ = 0;
};

/// Clock of an emulated device: a microsecond passes from each mark to the next, and more while the host waits.
class EmulatedClock final : public DeviceClock {
 public:
  auto Start() -> Status override {
    marks_.clear();
    now_ = std::chrono::steady_clock::now();
    return Success{};
  }
  auto Leave(Stream) -> Status override {
    now_ += std::chrono::microseconds(1);
    marks_.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(now_.time_since_epoch()).count());
    return Success{};
  }
  auto Read() -> ErrorOr<std::vector<int64_t>> override { return marks_; }
  auto NoteWait() -> void { now_ += std::chrono::microseconds(20); }

 private:
  std::chrono::steady_clock::time_point now_;
  std::vector<int64_t> marks_;
};

/// A device that shuffles, with addresses of its own.
class EmulatedDevice final : public RankDevice {
 public:
  static auto Create(const Plan& plan, const DevicePlace& place) -> ErrorOr<std::unique_ptr<RankDevice>> {
    auto device = std::make_unique<EmulatedDevice>(plan, place);
    for (size_t i = 0; i < NumArenas; ++i) {
      auto arena = EmulatedArena::Create(plan.arena_bytes[i]);
      if (!arena) {
        return arena.error();
      }
      device->arenas_[i] = *std::move(arena);
    }
    return std::unique_ptr<RankDevice>(std::move(device));
  }

  EmulatedDevice(const Plan& plan, const DevicePlace& place)
      : place_(place),
        none_(*SharedArenas::Create({}, {place.rank, place.rank + 1})),
        inner_(plan, *ArenaSet::Create(none_, place.rank)),
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
    clock_.NoteWait();
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

  auto MeasureMemory() const -> std::optional<DeviceMemory> override { return EmulatedMemory(); }
  auto pci_address() const -> std::string override { return NvmlDouble::AddressOf(0); }
  auto clock() -> DeviceClock* override { return &clock_; }

  /// Returns the word of the vocabulary, as shardc::BadIdsOf does.
  auto BadIdsOf(int64_t vocabulary) -> unsigned long long* {
    const auto known = std::ranges::find(bad_ids_, vocabulary, &BadIds::vocabulary);
    return known != bad_ids_.end() ? &known->word : &bad_ids_.emplace_back(vocabulary).word;
  }

  auto words() -> std::array<uint64_t, NumLeftWords>& { return words_; }

  /// Requires: the address lies in an arena.
  auto MemoryAt(const std::byte* address) const -> std::byte* {
    const auto arena =
        std::ranges::find_if(arenas_, [&](const EmulatedArena& candidate) { return candidate.Holds(address); });
    CHECK(arena != arenas_.end(), "an address that is none of the device");
    return arena->MemoryAt(address);
  }

  auto LookAlso(const LookBeside& beside) -> void override { beside_ = beside; }
  /// Waits for something that is under way beside the queues.
  auto Wait(const std::function<bool()>& is_over) -> Status {
    const Stopwatch watch;
    while (!is_over()) {
      for (const auto& look : {place_.look, beside_.look}) {
        RETURN_IF_ERROR(look ? look() : Status(Success{}));
      }
      if (watch.Elapsed() > place_.timeout) {
        return Fail(ExitCode::Environment, "the GPU got no further within {:g} s{}", place_.timeout.value,
                    beside_.hint ? beside_.hint() : "");
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return Success{};
  }

  /// Places where a rank of the same host finds the memory of the arenas, which those of the device's addresses stand
  /// for.
  struct Handles {
    pid_t process = 0;
    struct OfArena {
      std::byte* memory = nullptr;
      int descriptor = -1;
      int64_t bytes = 0;
    };
    std::array<OfArena, NumArenas> arenas;
  };
  auto OwnHandles() const -> Handles {
    Handles handles{.process = getpid(), .arenas = {}};
    for (size_t i = 0; i < NumArenas; ++i) {
      const EmulatedArena& arena = arenas_[i];
      handles.arenas[i] = {.memory = arena.bytes().value == 0 ? nullptr : arena.MemoryAt(arena.base()),
                           .descriptor = arena.descriptor(),
                           .bytes = arena.bytes().value};
    }
    return handles;
  }

  /// A turn that is repeated as it was at the first time.
  struct RecordedTurn {
    Turns* turns = nullptr;
    size_t index = 0;
    Moment moment;
  };
  /// Takes the turns that are enqueued; null if they run.
  std::vector<RecordedTurn>* recording = nullptr;

  class EmulatedQueue final : public Queue {
   public:
    explicit EmulatedQueue(EmulatedDevice* device) : device_(*device) {}
    auto Enqueue(Turns& turns, size_t index, const Moment& moment) -> Status override {
      if (device_.recording != nullptr) {
        device_.recording->push_back({&turns, index, moment});
        return Success{};
      }
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

  DevicePlace place_;
  LookBeside beside_;
  EmulatedClock clock_;
  std::array<EmulatedArena, NumArenas> arenas_;
  SharedArenas none_;
  /// Has no arenas.
  ShuffledDevice inner_;
  std::vector<EmulatedQueue> queues_;
  /// Kernels keep the addresses of words.
  std::deque<BadIds> bad_ids_;
  std::array<uint64_t, NumLeftWords> words_{};
};

auto EmulatedGraphLog() -> GraphLog& {
  static GraphLog log;
  return log;
}

/// Repeats turns in the place of launches.
class EmulatedGraphs final : public LaunchGraphs {
 public:
  explicit EmulatedGraphs(EmulatedDevice* device) : device_(*device) {}
  auto BeginRecording() -> Status override {
    device_.recording = &graphs_.emplace_back();
    return Success{};
  }
  auto EndRecording() -> ErrorOr<size_t> override {
    device_.recording = nullptr;
    ++EmulatedGraphLog().recorded;
    return graphs_.size() - 1;
  }
  auto Launch(size_t graph, const Turns& turns, size_t last) -> Status override {
    CHECK(!turns.NameOfTurn(last).empty() && graphs_[graph].back().index == last, "another turn is the last one");
    for (const EmulatedDevice::RecordedTurn& turn : graphs_[graph]) {
      ++EmulatedGraphLog().turns;
      const std::string name = turn.turns->NameOfTurn(turn.index);
      {
        const std::lock_guard lock(EmulatedGraphLog().mutex);
        EmulatedGraphLog().ops.insert(name.substr(name.rfind(' ') + 1));
      }
      RETURN_IF_ERROR(device_.queue(Stream::Compute).Enqueue(*turn.turns, turn.index, turn.moment));
    }
    return Success{};
  }

 private:
  EmulatedDevice& device_;
  std::deque<std::vector<EmulatedDevice::RecordedTurn>> graphs_;
};

static auto DeviceOf(Queue& queue) -> EmulatedDevice& {
  return static_cast<EmulatedDevice::EmulatedQueue&>(queue).device();
}

/// The CPU's engine on the memories that the addresses of emulated devices stand for, with the GPU's sums, and with the
/// double of NCCL.
class EmulatedEngine final : public CpuEngine {
 public:
  static auto Create(RankDevice& device, const std::shared_ptr<HostMember>& member,
                     const std::shared_ptr<NcclGroups>& remote) -> ErrorOr<std::unique_ptr<Engine>> {
    const HostMember::Group& host = member->GroupOf(AxisSet::All());
    const EmulatedDevice::Handles mine = static_cast<EmulatedDevice&>(device).OwnHandles();
    std::vector<EmulatedDevice::Handles> all(host.ranks.size());
    RETURN_IF_ERROR(member->Gather(host, reinterpret_cast<const std::byte*>(&mine), sizeof(mine),
                                   reinterpret_cast<std::byte*>(all.data())));
    PeerTable peers(all.size());
    std::vector<Mapping> opened;
    for (size_t peer = 0; peer < all.size(); ++peer) {
      for (size_t i = 0; i < NumArenas; ++i) {
        const auto& [memory, descriptor, bytes] = all[peer].arenas[i];
        peers[peer][i] = memory;
        if (all[peer].process == mine.process || bytes == 0) {
          continue;
        }
        const std::string path = fmt::format("/proc/{}/fd/{}", all[peer].process, descriptor);
        const Descriptor file(PosixFs(), open(path.c_str(), O_RDWR | O_CLOEXEC), path);
        auto mapping = Mapping::OfFile(bytes, file.get(), 0);
        if (!mapping) {
          return mapping.error();
        }
        peers[peer][i] = mapping->base();
        opened.push_back(*std::move(mapping));
      }
    }
    // No descriptor is closed before its peers have it.
    RETURN_IF_ERROR(member->Meet(host));
    auto engine = std::make_unique<EmulatedEngine>(member, std::move(peers));
    engine->opened_ = std::move(opened);
    engine->remote_ = remote;
    return std::unique_ptr<Engine>(std::move(engine));
  }

  using CpuEngine::CpuEngine;
  auto Fold(Queue&, const std::vector<const std::byte*>& terms, size_t per_host, std::byte* out, int64_t num_elements,
            ReduceTypes types, bool accumulate) -> Status override {
    return cuda::Fold(nullptr, terms, per_host, out, num_elements, types, accumulate);
  }
  auto Peer(int64_t rank, const CommSpan& span) const -> std::byte* override {
    return BaseOf(rank, span.arena) + span.offset;
  }
  auto Gather(Queue& queue, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status override {
    RETURN_IF_ERROR(remote_->Of(axes).AllGather(StreamAt(queue), mine, bytes, all));
    return Wait(queue);
  }
  auto AllToAll(Queue& queue, AxisSet axes, const std::byte* to_each, int64_t stride, std::byte* from_each,
                int64_t bytes) -> Status override {
    RETURN_IF_ERROR(remote_->Of(axes).AllToAll(StreamAt(queue), to_each, stride, from_each, bytes));
    return Wait(queue);
  }
  auto SumSlots(Queue& queue, AxisSet axes, std::byte* slots, int64_t count) -> Status override {
    RETURN_IF_ERROR(remote_->Of(axes).SumSlots(StreamAt(queue), slots, count));
    return Wait(queue);
  }
  auto SumOverMembers(Queue& queue, AxisSet axes, std::byte* data, int64_t num_elements, DType dtype)
      -> Status override {
    RETURN_IF_ERROR(remote_->Of(axes).Sum(StreamAt(queue), data, num_elements, dtype));
    return Wait(queue);
  }

 private:
  /// Returns a stream of the double: each queue is one.
  static auto StreamAt(Queue& queue) -> NcclApi::Stream { return reinterpret_cast<NcclApi::Stream>(&queue); }
  static auto Wait(Queue& queue) -> Status {
    return DeviceOf(queue).Wait([&] { return TheNcclDouble().IsOver(StreamAt(queue)); });
  }

  std::vector<Mapping> opened_;
  std::shared_ptr<NcclGroups> remote_;
};

auto StreamOf(Queue&) -> CUstream_st* { return nullptr; }

auto BadIdsOf(Queue& queue, int64_t vocabulary) -> unsigned long long* { return DeviceOf(queue).BadIdsOf(vocabulary); }

auto ClearedWords(Queue& queue) -> ErrorOr<uint64_t*> {
  DeviceOf(queue).words() = {};
  return DeviceOf(queue).words().data();
}

auto ReadWords(Queue& queue) -> ErrorOr<std::array<uint64_t, NumLeftWords>> { return DeviceOf(queue).words(); }

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
    } else if constexpr (std::is_same_v<Body, op::Matmul> || std::is_same_v<Body, op::MatmulAdd>) {
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

auto EmulatedMemory() -> std::optional<DeviceMemory>& {
  static std::optional<DeviceMemory> memory;
  return memory;
}

auto EmulatedProducts() -> std::vector<TimedProduct>& {
  static std::vector<TimedProduct> products;
  return products;
}

/// Makes a bench of the products that are wanted, by whose first answers ops are bound as well.
static auto MakeEmulatedBench(Binder&, const std::function<bool(const std::string&)>& wants)
    -> ErrorOr<std::unique_ptr<ProductBench>> {
  std::vector<TimedProduct> wanted = EmulatedProducts();
  std::erase_if(wanted, [&](const TimedProduct& product) { return !wants(product.product.text); });
  return std::unique_ptr<ProductBench>(std::make_unique<ProductDouble>(std::move(wanted)));
}

auto UseEmulatedCuda() -> void {
  static constexpr FamilyParts Parts{.resolve_device = [](Plan& plan) -> Status {
                                       plan.device = Device::CudaSm90;
                                       return Success{};
                                     },
                                     .make_device = EmulatedDevice::Create,
                                     .make_engine = EmulatedEngine::Create,
                                     .nccl = []() -> NcclApi& { return TheNcclDouble(); },
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
                                     .digests =
                                         [](auto parts, Binder& of_device) {
                                           MemoryBinder binder(&of_device);
                                           return cuda::DigestsOf(parts, binder, of_device);
                                         },
                                     .make_product_bench = MakeEmulatedBench,
                                     .make_launch_graphs =
                                         [](RankDevice& device) {
                                           return std::unique_ptr<LaunchGraphs>(
                                               std::make_unique<EmulatedGraphs>(&static_cast<EmulatedDevice&>(device)));
                                         },
                                     .versions = [] { return EmulatedVersions(); }};
  SetParts(DeviceFamily::Cuda, &Parts);
}

}  // namespace shardc
