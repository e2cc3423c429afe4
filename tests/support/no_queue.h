// The queue of a caller that does everything at once: for what takes a queue and has nothing to enqueue.
#pragma once

#include "runtime/device/device.h"

namespace shardc {

class NoQueue final : public Queue {
 public:
  auto Enqueue(Turns&, size_t, const Moment&) -> Status override { return Unused(); }
  auto Wait(EventId) -> Status override { return Unused(); }
  auto Signal(EventId) -> Status override { return Unused(); }
  auto Read(const std::byte* from, int64_t, HostScratch&) -> ErrorOr<const std::byte*> override { return from; }
  auto BeginWrite(std::byte* to, int64_t, HostScratch&) -> std::byte* override { return to; }
  auto EndWrite(std::byte*, int64_t, HostScratch&) -> Status override { return Success{}; }

 private:
  static auto Unused() -> Status { return Fail(ExitCode::InternalFault, "no op is enqueued here"); }
};

}  // namespace shardc
