// How a kernel that works on the host reaches its operands: through the queue of its op.
#pragma once

#include "runtime/kernels/view_checks.h"

namespace shardc {

/// Reads a value, and writes one.
class HostMemory {
 public:
  /// Requires: called by Bind, as the queue is that of the op that is bound.
  explicit HostMemory(Binder& binder) : queue_(&binder.queue()) {}

  /// The first element of a value.
  template <class T>
  auto First(const View& view, const Moment& moment) -> ErrorOr<T> {
    ASSIGN_OR_RETURN(const auto bytes, queue_->Read(view.At<std::byte>(moment), sizeof(T), scratch_));
    return *reinterpret_cast<const T*>(bytes);
  }

  auto Read(const std::byte* from, int64_t bytes) -> ErrorOr<const std::byte*> {
    return queue_->Read(from, bytes, scratch_);
  }

  /// Calls fill(memory), which puts something into each of `count` elements that lie at `to`.
  /// Errors: those of `fill`; nothing is written then.
  template <class T, class Fill>
  auto Write(T* to, int64_t count, const Fill& fill) -> Status {
    auto* const at = reinterpret_cast<std::byte*>(to);
    const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
    RETURN_IF_ERROR(fill(reinterpret_cast<T*>(queue_->BeginWrite(at, bytes, scratch_))));
    return queue_->EndWrite(at, bytes, scratch_);
  }

 private:
  Queue* queue_;
  HostScratch scratch_;
};

}  // namespace shardc
