#include "tests/support/emulated/cuda.h"

#include <sys/mman.h>

#include <algorithm>
#include <deque>

#include "runtime/device/cpu/shuffled_device.h"
#include "runtime/device/cuda/bad_ids.h"
#include "runtime/device/cuda/stream.h"
#include "runtime/device/family.h"
#include "runtime/kernels/host/host.h"
#include "runtime/kernels/reference/reference.h"

namespace shardc {

/// A device that shuffles, whose queues open its memory for their copies.
class EmulatedDevice final : public RankDevice {
 public:
  static auto Create(const Plan& plan, const DevicePlace& place) -> ErrorOr<std::unique_ptr<RankDevice>> {
    const Interval ranks{place.rank, place.rank + 1};
    auto shared = SharedArenas::Create(plan.arena_bytes, ranks);
    if (!shared) {
      return shared.error();
    }
    return std::unique_ptr<RankDevice>(std::make_unique<EmulatedDevice>(plan, *std::move(shared), place.rank));
  }

  EmulatedDevice(const Plan& plan, SharedArenas shared, int64_t rank)
      : plan_(plan),
        shared_(std::move(shared)),
        inner_(plan, *ArenaSet::Create(shared_, rank)),
        queues_(NumStreams, OpeningQueue(this)) {
    for (size_t i = 0; i < NumStreams; ++i) {
      queues_[i].inner = &inner_.queue(static_cast<Stream>(i));
    }
    Protect(PROT_NONE);
  }
  EmulatedDevice(const EmulatedDevice&) = delete;
  auto operator=(const EmulatedDevice&) -> EmulatedDevice& = delete;

  auto Base(Arena arena) const -> std::byte* override { return inner_.Base(arena); }
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
  auto MeasureUse() const -> std::vector<ArenaUse> override { return inner_.MeasureUse(); }

  /// Returns the word of shardc::BadIdsOf.
  auto BadIdsOf(int64_t vocabulary) -> unsigned long long* {
    const auto known = std::ranges::find(bad_ids_, vocabulary, &BadIds::vocabulary);
    return known != bad_ids_.end() ? &known->word : &bad_ids_.emplace_back(vocabulary).word;
  }

  /// Runs `access` while the memory is open.
  template <class Access>
  auto Open(const Access& access) {
    Protect(PROT_READ | PROT_WRITE);
    auto result = access();
    Protect(PROT_NONE);
    return result;
  }

  class OpeningQueue final : public Queue {
   public:
    explicit OpeningQueue(EmulatedDevice* device) : device_(*device) {}
    auto Enqueue(Turns& turns, size_t index, const Moment& moment) -> Status override {
      return inner->Enqueue(turns, index, moment);
    }
    auto Wait(EventId event) -> Status override { return inner->Wait(event); }
    auto Signal(EventId event) -> Status override { return inner->Signal(event); }
    auto Read(const std::byte* from, int64_t bytes, HostScratch& scratch) -> ErrorOr<const std::byte*> override {
      return device_.Open([&] { return inner->Read(from, bytes, scratch); });
    }
    auto BeginWrite(std::byte* to, int64_t bytes, HostScratch& scratch) -> std::byte* override {
      return inner->BeginWrite(to, bytes, scratch);
    }
    auto EndWrite(std::byte* to, int64_t bytes, HostScratch& scratch) -> Status override {
      return device_.Open([&] { return inner->EndWrite(to, bytes, scratch); });
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

  auto Protect(int access) -> void {
    for (size_t i = 0; i < NumArenas; ++i) {
      std::byte* const base = inner_.Base(static_cast<Arena>(i));
      CHECK(base == nullptr || mprotect(base, static_cast<size_t>(plan_.arena_bytes[i]), access) == 0,
            "the memory of arena {} cannot be protected", i);
    }
  }

  const Plan& plan_;
  SharedArenas shared_;
  ShuffledDevice inner_;
  std::vector<OpeningQueue> queues_;
  /// Kernels keep the addresses of words.
  std::deque<BadIds> bad_ids_;
};

static auto DeviceOf(Queue& queue) -> EmulatedDevice& {
  return static_cast<EmulatedDevice::OpeningQueue&>(queue).device();
}

auto StreamOf(Queue&) -> CUstream_st* { return nullptr; }

auto BadIdsOf(Queue& queue, int64_t vocabulary) -> unsigned long long* { return DeviceOf(queue).BadIdsOf(vocabulary); }

static auto BindEmulated(const OpBody& body, Binder& binder) -> Kernel {
  Kernel kernel = VisitBody(body, [&]<class Body>(const Body& concrete) -> Kernel {
    if constexpr (host::HasKernel<Body>) {
      CHECK(false, "{} works on the host", Body::Mnemonic);
    } else if constexpr (std::is_same_v<Body, op::Matmul>) {
      return reference::Bind(concrete, binder);
    } else {
      return cuda::Bind(concrete, binder);
    }
  });
  return [kernel = std::move(kernel), &device = DeviceOf(binder.queue())](const Moment& moment) {
    return device.Open([&] { return kernel(moment); });
  };
}

auto UseEmulatedCuda() -> void {
  static constexpr FamilyParts Parts{.resolve_device = [](Plan& plan) -> Status {
                                       plan.device = Device::CudaSm90;
                                       return Success{};
                                     },
                                     .make_device = EmulatedDevice::Create,
                                     .bind_op = BindEmulated};
  SetParts(DeviceFamily::Cuda, &Parts);
}

}  // namespace shardc
