#include "runtime/device/cuda/cuda_clock.h"

#include <chrono>
#include <cmath>
#include <numeric>

#include "runtime/device/cuda/cuda_error.h"

namespace shardc {

static auto HostNow() -> int64_t {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

auto CudaClock::Record(size_t index, Stream stream) -> Status {
  if (index == events_.size()) {
    RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&events_.emplace_back(nullptr)), "making an event"));
  }
  return CudaStatus(cudaEventRecord(events_[index], stream_of_(stream)), "recording an event");
}

auto CudaClock::Start() -> Status {
  num_marks_ = 0;
  // The first time may include what the driver makes when it is first called so.
  for (int i = 0; i < 2; ++i) {
    const int64_t before = HostNow();
    RETURN_IF_ERROR(Record(0, Stream::Compute));
    RETURN_IF_ERROR(progress_.Wait([this] { return IsOver(cudaEventQuery(events_[0])); }));
    origin_ns_ = std::midpoint(before, HostNow());
  }
  return Success{};
}

auto CudaClock::Leave(Stream stream) -> Status { return Record(++num_marks_, stream); }

auto CudaClock::Read() -> ErrorOr<std::vector<int64_t>> {
  std::vector<int64_t> times;
  times.reserve(num_marks_);
  for (size_t i = 1; i <= num_marks_; ++i) {
    float ms = 0;
    RETURN_IF_ERROR(CudaStatus(cudaEventElapsedTime(&ms, events_[0], events_[i]), "reading the time of an event"));
    constexpr double NsPerMs = 1e6;
    times.push_back(origin_ns_ + std::llround(NsPerMs * static_cast<double>(ms)));
  }
  return times;
}

auto CudaClock::Destroy() -> void {
  for (const cudaEvent_t event : events_) {
    if (event != nullptr) {
      cudaEventDestroy(event);
    }
  }
  events_.clear();
}

}  // namespace shardc
