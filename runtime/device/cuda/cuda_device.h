// One GPU as the device of a rank: one allocation, in which the arenas lie one after another; a stream for each stream
// of the plan. A turn runs when it is enqueued, and its kernels launch on the stream of their queue: the GPU keeps the
// order, and the host is ahead of it.
//
// Nothing here waits for the whole GPU, and nothing uses its default stream: ranks that share a GPU do not wait for
// each other. Called by the rank itself, after the fork: no process that forks ranks calls CUDA.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/device/cuda/cuda_clock.h"
#include "runtime/device/cuda/pinned_ring.h"
#include "runtime/device/cuda/stream.h"
#include "runtime/device/device.h"

namespace shardc {

class CudaDevice final : public RankDevice {
 public:
  /// Makes the device of a rank. Called by all ranks of the host together. Errors: DoesNotFit if the GPU has less
  /// memory left than the arenas take; Environment if there is no GPU for the rank, or another rank has it.
  static auto Create(const Plan& plan, const DevicePlace& place) -> ErrorOr<std::unique_ptr<RankDevice>>;
  // Queues know where their device is.
  CudaDevice(const CudaDevice&) = delete;
  auto operator=(const CudaDevice&) -> CudaDevice& = delete;
  ~CudaDevice() override;

  auto Base(Arena arena) const -> std::byte* override { return bases_[static_cast<size_t>(arena)]; }
  auto queue(Stream stream) -> Queue& override { return queues_[static_cast<size_t>(stream)]; }
  auto scalars() -> ScalarTable& override { return scalars_; }
  auto BeginSection(const SectionStart& start, const ScalarTable& host) -> Status override;
  auto EndSection(ScalarTable& host) -> Status override;
  auto Finish() -> Status override;
  auto LookAlso(const LookBeside& beside) -> void override { progress_.LookAlso(beside); }
  auto is_lost() const -> bool override;
  auto clock() -> DeviceClock* override { return &clock_; }
  /// Leaves all that is on the device as it is from now on, to the end of the process: peers may use it.
  auto Abandon() -> void { progress_.Abandon(); }
  auto MeasureUse() const -> std::vector<ArenaUse> override;
  auto MeasureMemory() const -> std::optional<DeviceMemory> override;
  auto pci_address() const -> std::string override;

  /// Says that turns on the compute queue are recorded, and do not run.
  auto set_recording(bool is_recording) -> void { is_recording_ = is_recording; }
  /// Enqueues something on the compute stream. `last`: the turn that messages name for it.
  auto EnqueueOnCompute(const Turns& turns, size_t last, const std::function<Status(cudaStream_t stream)>& enqueue)
      -> Status;

  auto plan() const -> const Plan& { return plan_; }
  /// Returns the number of the GPU, of those that the process sees.
  auto number() const -> int { return number_; }
  /// Returns the one allocation, which is laid out alike on all ranks of a plan.
  auto memory() const -> std::byte* { return memory_; }
  auto memory_bytes() const -> int64_t { return memory_bytes_; }

  /// The most that a rank leaves in a slot of a sum.
  static constexpr int64_t SlotBytes = 4096;
  /// Returns memory in which a rank leaves what its peers sum. There are two for each stream and set of axes, which are
  /// used in turn. Requires: the plan has several ranks.
  auto Slot(Stream stream, size_t axes_index, size_t turn) const -> std::byte*;

  class CudaQueue final : public Queue {
   public:
    explicit CudaQueue(CudaDevice* device) : device_(*device) {}
    auto Enqueue(Turns& turns, size_t index, const Moment& moment) -> Status override;
    auto EnqueueNamed(const Turns& turns, size_t index, const std::function<Status()>& enqueue) -> Status;
    auto Wait(EventId event) -> Status override;
    auto Signal(EventId event) -> Status override;
    auto Read(const std::byte* from, int64_t bytes, HostScratch& scratch) -> ErrorOr<const std::byte*> override;
    auto BeginWrite(std::byte* to, int64_t bytes, HostScratch& scratch) -> std::byte* override;
    auto EndWrite(std::byte* to, int64_t bytes, HostScratch& scratch) -> Status override;

    auto device() -> CudaDevice& { return device_; }
    cudaStream_t stream = nullptr;
    Stream name = Stream::Compute;

   private:
    /// Lets the stream lag at random, if the device does.
    auto Lag() -> Status;
    /// Returns the status of what was enqueued, with the error of the device if that is why it failed.
    auto Judged(const Status& status) -> Status;

    CudaDevice& device_;
  };

  /// Returns the word for ids outside a vocabulary of this size; see BadIdsOf in stream.h.
  auto BadIdsOf(int64_t vocabulary) -> unsigned long long*;
  // As in stream.h.
  auto ClearedWords(cudaStream_t stream) -> ErrorOr<uint64_t*>;
  auto ReadWords(cudaStream_t stream) -> ErrorOr<std::array<uint64_t, NumLeftWords>>;

 private:
  CudaDevice(const Plan& plan, const DevicePlace& place);

  /// Takes the GPU of a rank.
  auto Take(int64_t local_rank) -> Status;
  /// Compares the GPUs of the ranks of the host.
  auto CheckOwnGpu(HostMember& member) const -> Status;
  auto Allocate() -> Status;
  auto MakeStreams() -> Status;
  /// Returns an error if kernels found bad ids, and resets the words.
  auto CheckIds() -> Status;

  const Plan& plan_;
  int number_ = 0;
  std::byte* memory_ = nullptr;
  int64_t memory_bytes_ = 0;
  std::array<std::byte*, NumArenas> bases_{};
  /// After the arenas; null if the plan has one rank.
  std::byte* slots_ = nullptr;
  /// After the slots.
  uint64_t* words_ = nullptr;
  /// One for each of `vocabularies_`, after the words.
  unsigned long long* bad_ids_ = nullptr;
  std::vector<int64_t> vocabularies_;
  /// As many different vocabularies as the plan may have, with some to spare.
  size_t most_vocabularies_;
  DeviceProgress progress_;
  std::array<cudaEvent_t, DeviceProgress::NumMarks> marks_{};
  PinnedRing ring_{&progress_};
  ScalarTable scalars_;
  /// Counts the sections that began.
  uint32_t section_ = 0;
  std::vector<cudaEvent_t> events_;
  /// By event: the section that signalled it last.
  std::vector<uint32_t> signalled_in_;
  std::vector<CudaQueue> queues_;
  CudaClock clock_{&progress_, [this](Stream stream) { return queues_[static_cast<size_t>(stream)].stream; }};
  bool is_recording_ = false;
  /// Draws how long streams lag; nothing if they do not.
  std::optional<std::mt19937_64> lags_;
};

/// Returns the fault of a GPU for which this program has no kernels; empty if it has.
auto FaultOfKind(int number) -> std::string;

/// Returns the fault of a GPU whose compute mode keeps this process from it, with the remedy; empty if its mode does
/// not. `taken`: the result of the call that was to take it.
auto FaultOfMode(int number, cudaError_t taken) -> std::string;

/// Decides plan.device by the first GPU that this process sees, which a child that ends at once looks at.
/// `call_libraries`: calls those libraries that load parts of themselves when they are called. Errors: Environment if
/// there is no GPU, its driver is too old, this program has no kernels for it, or a part of a library is missing.
auto ResolveCudaDevice(Plan& plan, void (*call_libraries)()) -> Status;

}  // namespace shardc
