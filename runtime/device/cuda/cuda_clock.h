// The clock of a GPU: marks are events with times, which it takes when it comes to them. The times of all streams are
// placed on the host's by one event, for which the host waits when the clock starts.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/device/device_progress.h"

namespace shardc {

class CudaClock final : public DeviceClock {
 public:
  CudaClock(DeviceProgress* progress, std::function<cudaStream_t(Stream)> stream_of)
      : progress_(*progress), stream_of_(std::move(stream_of)) {}

  auto Start() -> Status override;
  auto Leave(Stream stream) -> Status override;
  auto Read() -> ErrorOr<std::vector<int64_t>> override;
  /// Gives the events back, while the device is there.
  auto Destroy() -> void;

 private:
  /// Records an event of this index, and makes it before if need be.
  auto Record(size_t index, Stream stream) -> Status;

  DeviceProgress& progress_;
  std::function<cudaStream_t(Stream)> stream_of_;
  /// The origin, and one for each mark; those of earlier starts are used again.
  std::vector<cudaEvent_t> events_;
  size_t num_marks_ = 0;
  /// When the device came to the origin, by the host's clock.
  int64_t origin_ns_ = 0;
};

}  // namespace shardc
