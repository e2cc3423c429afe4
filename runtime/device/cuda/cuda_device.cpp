#include "runtime/device/cuda/cuda_device.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>
#include <thread>

#include "compiler/ops/communicators.h"
#include "runtime/control/host_member.h"
#include "runtime/device/cuda/bad_ids.h"

namespace shardc {

auto StreamOf(Queue& queue) -> CUstream_st* { return static_cast<CudaDevice::CudaQueue&>(queue).stream; }

auto BadIdsOf(Queue& queue, int64_t vocabulary) -> unsigned long long* {
  return static_cast<CudaDevice::CudaQueue&>(queue).device().BadIdsOf(vocabulary);
}

auto ClearedWords(Queue& queue) -> ErrorOr<uint64_t*> {
  return static_cast<CudaDevice::CudaQueue&>(queue).device().ClearedWords(StreamOf(queue));
}

auto ReadWords(Queue& queue) -> ErrorOr<std::array<uint64_t, NumLeftWords>> {
  return static_cast<CudaDevice::CudaQueue&>(queue).device().ReadWords(StreamOf(queue));
}

CudaDevice::CudaDevice(const Plan& plan, const DevicePlace& place)
    : plan_(plan),
      most_vocabularies_(static_cast<size_t>(plan.heads.size()) + 64),
      progress_({.look = place.look,
                 .timeout = place.timeout,
                 .waits_by_op = plan.run.device_checks || plan.run.guard,
                 .has_come_to_mark = [this](size_t slot) { return IsOver(cudaEventQuery(marks_[slot])); }}),
      scalars_(static_cast<size_t>(plan.scalars.size())),
      signalled_in_(static_cast<size_t>(plan.num_events), 0),
      queues_(NumStreams, CudaQueue(this)) {
  if (place.shuffles) {
    lags_.emplace(static_cast<uint64_t>(place.rank));
  }
}

auto CudaDevice::Create(const Plan& plan, const DevicePlace& place) -> ErrorOr<std::unique_ptr<RankDevice>> {
  std::unique_ptr<CudaDevice> device(new CudaDevice(plan, place));
  RETURN_IF_ERROR(device->Take(place.local_rank));
  if (place.member != nullptr) {
    RETURN_IF_ERROR(device->CheckOwnGpu(*place.member));
  }
  RETURN_IF_ERROR(device->Allocate());
  RETURN_IF_ERROR(device->MakeStreams());
  RETURN_IF_ERROR(device->ring_.Create());
  return std::unique_ptr<RankDevice>(std::move(device));
}

CudaDevice::~CudaDevice() {
  if (is_lost()) {
    return;
  }
  clock_.Destroy();
  for (const cudaEvent_t event : events_) {
    cudaEventDestroy(event);
  }
  for (const cudaEvent_t mark : marks_) {
    if (mark != nullptr) {
      cudaEventDestroy(mark);
    }
  }
  for (const CudaQueue& queue : queues_) {
    if (queue.stream != nullptr) {
      cudaStreamDestroy(queue.stream);
    }
  }
  cudaFree(memory_);
}

/// Returns what a rank without a GPU of its own can do.
static auto NoGpuRemedy() -> std::string_view {
  return "a rank needs a GPU of its own: give the mesh fewer ranks or the host more GPUs; run.share_gpus = true lets "
         "ranks share them, for tests";
}

auto CudaDevice::Take(int64_t local_rank) -> Status {
  int count = 0;
  RETURN_IF_ERROR(CudaStatus(cudaGetDeviceCount(&count), "looking for GPUs"));
  // A launcher may show each rank its own GPU alone.
  FAIL_IF(local_rank >= count && count != 1 && !plan_.run.share_gpus, ExitCode::Environment,
          "rank {} of this host has no GPU, as this process sees {}; {}", local_rank, count, NoGpuRemedy());
  CHECK(count > 0, "no GPU");
  number_ = static_cast<int>(local_rank % count);
  const cudaError_t taken = cudaSetDevice(number_);
  for (const std::string& fault : {FaultOfMode(number_, taken), FaultOfKind(number_)}) {
    FAIL_IF(!fault.empty(), ExitCode::Environment, "{}", fault);
  }
  FAIL_IF(taken == cudaErrorMemoryAllocation, ExitCode::DoesNotFit, "GPU {} has no memory left for another process",
          number_);
  return CudaStatus(taken, fmt::format("taking GPU {}", number_));
}

auto CudaDevice::CheckOwnGpu(HostMember& member) const -> Status {
  const HostMember::Group& group = member.GroupOf(AxisSet::All());
  cudaDeviceProp properties{};
  RETURN_IF_ERROR(CudaStatus(cudaGetDeviceProperties(&properties, number_), "asking for the UUID of a GPU"));
  std::vector<cudaUUID_t> uuids(group.ranks.size());
  RETURN_IF_ERROR(member.Gather(group, reinterpret_cast<const std::byte*>(&properties.uuid), sizeof(properties.uuid),
                                reinterpret_cast<std::byte*>(uuids.data())));
  for (size_t i = 0; i < uuids.size(); ++i) {
    const bool is_same = std::memcmp(&uuids[i], &properties.uuid, sizeof(properties.uuid)) == 0;
    FAIL_IF(is_same && static_cast<int64_t>(i) != group.index && !plan_.run.share_gpus, ExitCode::Environment,
            "ranks {} and {} have the same GPU ({}); {}", std::min(member.rank(), group.ranks[i]),
            std::max(member.rank(), group.ranks[i]), properties.name, NoGpuRemedy());
  }
  return Success{};
}

auto CudaDevice::Allocate() -> Status {
  const auto aligned = [](int64_t bytes) { return RoundUp(bytes, ArenaAlignment); };
  int64_t bytes = 0;
  std::array<int64_t, NumArenas> begins{};
  for (size_t i = 0; i < NumArenas; ++i) {
    begins[i] = bytes;
    bytes += aligned(plan_.arena_bytes[i]);
  }
  const int64_t slots = bytes;
  const int64_t num_slots = plan_.mesh.num_ranks() > 1 ? 2 * NumStreams * NumAxisSets : 0;
  bytes += num_slots * SlotBytes;
  const int64_t words = bytes;
  bytes += aligned(NumLeftWords * static_cast<int64_t>(sizeof(*words_)) +
                   static_cast<int64_t>(most_vocabularies_ * sizeof(*bad_ids_)));
  size_t free = 0;
  size_t total = 0;
  RETURN_IF_ERROR(CudaStatus(cudaMemGetInfo(&free, &total), "asking for the memory of the GPU"));
  // They are made later, in what is left.
  const int64_t communicators = NcclCommunicatorsOf(plan_).bytes().value;
  void* memory = nullptr;
  FAIL_IF(static_cast<size_t>(bytes + communicators) > free ||
              cudaMalloc(&memory, static_cast<size_t>(bytes)) != cudaSuccess,
          ExitCode::DoesNotFit,
          "the plan's arenas take {} on the GPU{}, which has {} left of {}; a smaller batch.micro (with more "
          "batch.accumulate) and recompute.policy = \"full\" take less, `shardc plan --explain` says how much{}",
          FormatMemory(Bytes{bytes}),
          communicators == 0 ? "" : fmt::format(" and communicators of NCCL {}", FormatMemory(Bytes{communicators})),
          FormatMemory(Bytes{static_cast<int64_t>(free)}), FormatMemory(Bytes{static_cast<int64_t>(total)}),
          free < total - total / 20 ? "; other processes may have taken the rest" : "");
  memory_ = static_cast<std::byte*>(memory);
  memory_bytes_ = bytes;
  for (size_t i = 0; i < NumArenas; ++i) {
    bases_[i] = plan_.arena_bytes[i] > 0 ? memory_ + begins[i] : nullptr;
  }
  slots_ = num_slots > 0 ? memory_ + slots : nullptr;
  words_ = reinterpret_cast<uint64_t*>(memory_ + words);
  bad_ids_ = reinterpret_cast<unsigned long long*>(words_ + NumLeftWords);
  return Success{};
}

auto CudaDevice::MakeStreams() -> Status {
  int least = 0;
  int greatest = 0;
  RETURN_IF_ERROR(CudaStatus(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities"));
  for (size_t i = 0; i < NumStreams; ++i) {
    const int priority = static_cast<Stream>(i) == Stream::Compute ? least : greatest;
    RETURN_IF_ERROR(CudaStatus(cudaStreamCreateWithPriority(&queues_[i].stream, cudaStreamNonBlocking, priority),
                               "making a stream"));
    queues_[i].name = static_cast<Stream>(i);
  }
  events_.resize(static_cast<size_t>(plan_.num_events), nullptr);
  for (const std::span<cudaEvent_t> events : {std::span(events_), std::span<cudaEvent_t>(marks_)}) {
    for (cudaEvent_t& event : events) {
      RETURN_IF_ERROR(CudaStatus(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "making an event"));
    }
  }
  // As new memory of a host is.
  const cudaStream_t stream = queues_[static_cast<size_t>(Stream::Compute)].stream;
  const auto arenas = static_cast<size_t>(reinterpret_cast<std::byte*>(bad_ids_) - memory_);
  RETURN_IF_ERROR(CudaStatus(cudaMemsetAsync(memory_, 0, arenas, stream), "clearing memory"));
  RETURN_IF_ERROR(
      CudaStatus(cudaMemsetAsync(bad_ids_, 0xFF, most_vocabularies_ * sizeof(*bad_ids_), stream), "clearing memory"));
  return Finish();
}

auto CudaDevice::BeginSection(const SectionStart& start, const ScalarTable& host) -> Status {
  progress_.BeginSection(start);
  ++section_;
  scalars_ = host;
  return Success{};
}

auto CudaDevice::EndSection(ScalarTable& host) -> Status {
  RETURN_IF_ERROR(Finish());
  progress_.EndSection();
  host = scalars_;
  return Success{};
}

auto CudaDevice::Finish() -> Status {
  for (const CudaQueue& queue : queues_) {
    RETURN_IF_ERROR(progress_.Wait([stream = queue.stream] { return IsOver(cudaStreamQuery(stream)); }));
  }
  progress_.NoteAllOver();
  return vocabularies_.empty() ? Status(Success{}) : CheckIds();
}

auto CudaDevice::is_lost() const -> bool {
  // A stream that is not over may wait for a peer that is gone.
  return progress_.is_lost() || !std::ranges::all_of(queues_, [](const CudaQueue& queue) {
           const auto is_over = queue.stream == nullptr ? ErrorOr<bool>(true) : IsOver(cudaStreamQuery(queue.stream));
           return is_over && *is_over;
         });
}

auto CudaDevice::Slot(Stream stream, size_t axes_index, size_t turn) const -> std::byte* {
  CHECK(slots_ != nullptr, "a slot of a rank that is alone");
  const size_t index = (static_cast<size_t>(stream) * NumAxisSets + axes_index) * 2 + turn;
  return slots_ + static_cast<int64_t>(index) * SlotBytes;
}

auto CudaDevice::BadIdsOf(int64_t vocabulary) -> unsigned long long* {
  auto known = std::ranges::find(vocabularies_, vocabulary);
  if (known == vocabularies_.end()) {
    CHECK(vocabularies_.size() < most_vocabularies_, "more vocabularies than {}", most_vocabularies_);
    known = vocabularies_.insert(known, vocabulary);
  }
  return bad_ids_ + (known - vocabularies_.begin());
}

auto CudaDevice::ClearedWords(cudaStream_t stream) -> ErrorOr<uint64_t*> {
  RETURN_IF_ERROR(CudaStatus(cudaMemsetAsync(words_, 0, NumLeftWords * sizeof(*words_), stream), "clearing memory"));
  return words_;
}

auto CudaDevice::ReadWords(cudaStream_t stream) -> ErrorOr<std::array<uint64_t, NumLeftWords>> {
  std::array<uint64_t, NumLeftWords> words{};
  RETURN_IF_ERROR(ring_.FromDevice(reinterpret_cast<const std::byte*>(words_), sizeof(words),
                                   reinterpret_cast<std::byte*>(words.data()), stream));
  return words;
}

auto CudaDevice::CheckIds() -> Status {
  std::vector<unsigned long long> words(vocabularies_.size());
  const auto bytes = static_cast<int64_t>(words.size() * sizeof(words[0]));
  const cudaStream_t stream = queues_[static_cast<size_t>(Stream::Compute)].stream;
  auto* const on_device = reinterpret_cast<std::byte*>(bad_ids_);
  auto* const here = reinterpret_cast<std::byte*>(words.data());
  RETURN_IF_ERROR(ring_.FromDevice(on_device, bytes, here, stream));
  for (size_t i = 0; i < vocabularies_.size(); ++i) {
    if (const auto word = words[i]; word != NoBadId) {
      std::ranges::fill(words, NoBadId);
      RETURN_IF_ERROR(ring_.ToDevice(here, bytes, on_device, stream));
      return BadIdError(word, vocabularies_[i]);
    }
  }
  return Success{};
}

auto CudaDevice::MeasureUse() const -> std::vector<ArenaUse> {
  std::vector<ArenaUse> uses;
  for (size_t i = 0; i < NumArenas; ++i) {
    // All of it is there from the start.
    const Bytes planned{plan_.arena_bytes[i]};
    uses.push_back({.arena = static_cast<Arena>(i), .planned = planned, .touched = planned});
  }
  return uses;
}

auto CudaDevice::MeasureMemory() const -> std::optional<DeviceMemory> {
  size_t free = 0;
  size_t total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) {
    return std::nullopt;
  }
  return DeviceMemory{.total = Bytes{static_cast<int64_t>(total)}, .taken = Bytes{static_cast<int64_t>(total - free)}};
}

auto CudaDevice::pci_address() const -> std::string {
  std::array<char, 32> address{};
  return cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), number_) == cudaSuccess
             ? address.data()
             : "";
}

auto CudaDevice::CudaQueue::Judged(const Status& status) -> Status {
  if (status || device_.progress_.is_lost()) {
    return status;
  }
  const auto is_over = IsOver(cudaStreamQuery(stream));
  return is_over ? status
                 : Status(device_.progress_.Lose(
                       {is_over.error().code, fmt::format("{}; {}", status.error().message, is_over.error().message)}));
}

auto CudaDevice::CudaQueue::Lag() -> Status {
  if (!device_.lags_ || (*device_.lags_)() % 4 != 0) {
    return Success{};
  }
  constexpr uintptr_t MostMicroseconds = 400;
  const uintptr_t microseconds = (*device_.lags_)() % MostMicroseconds;
  const auto sleep = [](void* time) {
    std::this_thread::sleep_for(std::chrono::microseconds(reinterpret_cast<uintptr_t>(time)));
  };
  return Judged(CudaStatus(cudaLaunchHostFunc(stream, sleep, reinterpret_cast<void*>(microseconds)), "delaying"));
}

auto CudaDevice::CudaQueue::Enqueue(Turns& turns, size_t index, const Moment& moment) -> Status {
  if (device_.is_recording_) {
    // A lag or a mark would be repeated with the launches.
    return turns.RunTurn(index, moment);
  }
  return EnqueueNamed(turns, index, [&] { return turns.RunTurn(index, moment); });
}

auto CudaDevice::CudaQueue::EnqueueNamed(const Turns& turns, size_t index, const std::function<Status()>& enqueue)
    -> Status {
  DeviceProgress& progress = device_.progress_;
  progress.BeginTurn(turns, index);
  RETURN_IF_ERROR(Lag());
  RETURN_IF_ERROR(Judged(enqueue()));
  return Judged(progress.EndTurn(
      [this](size_t slot) { return CudaStatus(cudaEventRecord(device_.marks_[slot], stream), "recording an event"); }));
}

auto CudaDevice::EnqueueOnCompute(const Turns& turns, size_t last,
                                  const std::function<Status(cudaStream_t stream)>& enqueue) -> Status {
  CudaQueue& compute = queues_[static_cast<size_t>(Stream::Compute)];
  return compute.EnqueueNamed(turns, last, [&] { return enqueue(compute.stream); });
}

auto CudaDevice::CudaQueue::Wait(EventId event) -> Status {
  const auto index = static_cast<size_t>(event.index);
  if (device_.signalled_in_[index] != device_.section_) {
    return NeverSignalled(event);
  }
  return Judged(CudaStatus(cudaStreamWaitEvent(stream, device_.events_[index]), "waiting for an event"));
}

auto CudaDevice::CudaQueue::Signal(EventId event) -> Status {
  const auto index = static_cast<size_t>(event.index);
  device_.signalled_in_[index] = device_.section_;
  return Judged(CudaStatus(cudaEventRecord(device_.events_[index], stream), "recording an event"));
}

auto CudaDevice::CudaQueue::Read(const std::byte* from, int64_t bytes, HostScratch& scratch)
    -> ErrorOr<const std::byte*> {
  std::byte* const copy = scratch.Reserve(bytes);
  RETURN_IF_ERROR(Judged(device_.ring_.FromDevice(from, bytes, copy, stream)));
  return static_cast<const std::byte*>(copy);
}

auto CudaDevice::CudaQueue::BeginWrite(std::byte*, int64_t bytes, HostScratch& scratch) -> std::byte* {
  return scratch.Reserve(bytes);
}

auto CudaDevice::CudaQueue::EndWrite(std::byte* to, int64_t bytes, HostScratch& scratch) -> Status {
  return Judged(device_.ring_.ToDevice(scratch.Reserve(bytes), bytes, to, stream));
}

}  // namespace shardc
