// Copies between memory of the device and of the host, through a few pieces of pinned memory: the device copies into
// one piece while the host empties another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "runtime/device/cuda/cuda_error.h"
#include "runtime/device/device_progress.h"

namespace shardc {

class PinnedRing {
 public:
  /// Waits by `progress`, which outlives the ring.
  explicit PinnedRing(DeviceProgress* progress) : progress_(*progress) {}
  PinnedRing(const PinnedRing&) = delete;
  auto operator=(const PinnedRing&) -> PinnedRing& = delete;
  ~PinnedRing();

  auto Create() -> Status;
  /// Copies from the device, and below to it, after the work that was enqueued on the stream. Returns when the copy is
  /// over.
  auto FromDevice(const std::byte* from, int64_t bytes, std::byte* to, cudaStream_t stream) -> Status;
  auto ToDevice(const std::byte* from, int64_t bytes, std::byte* to, cudaStream_t stream) -> Status;

 private:
  static constexpr int64_t PieceBytes = int64_t{16} << 20;
  static constexpr size_t NumPieces = 2;

  /// Waits until the last copy between device and piece is over.
  auto Wait(size_t piece) -> Status;

  DeviceProgress& progress_;
  std::array<std::byte*, NumPieces> pieces_{};
  /// Events: the last copy between device and piece is over.
  std::array<cudaEvent_t, NumPieces> over_{};
};

}  // namespace shardc
