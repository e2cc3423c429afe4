#include "runtime/device/cuda/pinned_ring.h"

#include <algorithm>
#include <cstring>

namespace shardc {

auto PinnedRing::Create() -> Status {
  for (size_t i = 0; i < NumPieces; ++i) {
    void* piece = nullptr;
    RETURN_IF_ERROR(
        CudaStatus(cudaHostAlloc(&piece, static_cast<size_t>(PieceBytes), cudaHostAllocDefault), "pinning memory"));
    pieces_[i] = static_cast<std::byte*>(piece);
    RETURN_IF_ERROR(CudaStatus(cudaEventCreateWithFlags(&over_[i], cudaEventDisableTiming), "making an event"));
  }
  return Success{};
}

PinnedRing::~PinnedRing() {
  if (progress_.is_lost()) {
    return;
  }
  for (size_t i = 0; i < NumPieces; ++i) {
    if (over_[i] != nullptr) {
      cudaEventDestroy(over_[i]);
    }
    if (pieces_[i] != nullptr) {
      cudaFreeHost(pieces_[i]);
    }
  }
}

auto PinnedRing::Wait(size_t piece) -> Status {
  return progress_.Wait([event = over_[piece]] { return IsOver(cudaEventQuery(event)); });
}

auto PinnedRing::FromDevice(const std::byte* from, int64_t bytes, std::byte* to, cudaStream_t stream) -> Status {
  constexpr std::string_view What = "copying from the device";
  int64_t asked = 0;
  const auto ask = [&](size_t piece) -> Status {
    const int64_t count = std::min(PieceBytes, bytes - asked);
    RETURN_IF_ERROR(CudaStatus(
        cudaMemcpyAsync(pieces_[piece], from + asked, static_cast<size_t>(count), cudaMemcpyDeviceToHost, stream),
        What));
    asked += count;
    return CudaStatus(cudaEventRecord(over_[piece], stream), What);
  };
  for (size_t piece = 0; piece < NumPieces && asked < bytes; ++piece) {
    RETURN_IF_ERROR(ask(piece));
  }
  size_t piece = 0;
  for (int64_t at = 0; at < bytes; at += PieceBytes) {
    RETURN_IF_ERROR(Wait(piece));
    std::memcpy(to + at, pieces_[piece], static_cast<size_t>(std::min(PieceBytes, bytes - at)));
    if (asked < bytes) {
      RETURN_IF_ERROR(ask(piece));
    }
    piece = (piece + 1) % NumPieces;
  }
  return Success{};
}

auto PinnedRing::ToDevice(const std::byte* from, int64_t bytes, std::byte* to, cudaStream_t stream) -> Status {
  constexpr std::string_view What = "copying to the device";
  size_t piece = 0;
  for (int64_t at = 0; at < bytes; at += PieceBytes) {
    const auto count = static_cast<size_t>(std::min(PieceBytes, bytes - at));
    // The wait for an event that was never recorded ends at once.
    RETURN_IF_ERROR(Wait(piece));
    std::memcpy(pieces_[piece], from + at, count);
    RETURN_IF_ERROR(CudaStatus(cudaMemcpyAsync(to + at, pieces_[piece], count, cudaMemcpyHostToDevice, stream), What));
    RETURN_IF_ERROR(CudaStatus(cudaEventRecord(over_[piece], stream), What));
    piece = (piece + 1) % NumPieces;
  }
  for (piece = 0; piece < NumPieces; ++piece) {
    RETURN_IF_ERROR(Wait(piece));
  }
  return Success{};
}

}  // namespace shardc
