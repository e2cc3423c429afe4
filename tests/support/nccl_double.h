// NCCL without a GPU, for tests: processes and threads of one machine that exchange memory of the host over sockets. As
// on a GPU, what is enqueued is not over when the call is, and a communicator that has lost a peer leaves it so.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/comm/nccl/nccl_api.h"

namespace shardc {

class NcclDouble final : public NcclApi {
 public:
  /// Faults, and other things that may happen. Set before the first call.
  struct Switches {
    /// The call that fails, counted from 0 without those of StateOf; -1: none.
    int64_t fails_at = -1;
    /// The enqueued operation that the communicator fails in later, counted from 0; -1: none.
    int64_t breaks_at = -1;
    /// How late operations begin, and communicators are ready: at random, at most so much.
    double longest_delay_ms = 1;
    bool abort_hangs = false;
    std::string version = "2.28.9";
  };
  Switches switches;

  /// Calls so far, but those of StateOf.
  auto num_calls() const -> int64_t { return num_calls_; }
  /// Communicators that were begun, and that were aborted or destroyed.
  std::atomic<int64_t> num_begun = 0;
  std::atomic<int64_t> num_aborted = 0;
  std::atomic<int64_t> num_destroyed = 0;

  /// Returns true if all that was enqueued on the stream is over.
  auto IsOver(Stream stream) -> bool;

  auto Version() -> ErrorOr<std::string> override;
  auto MakeUniqueId() -> ErrorOr<UniqueId> override;
  auto BeginInit(const UniqueId& id, int64_t index, int64_t size) -> ErrorOr<Communicator*> override;
  auto StateOf(Communicator& communicator) -> ErrorOr<State> override;
  auto AllGather(Communicator& communicator, Stream stream, const std::byte* mine, int64_t bytes, std::byte* all)
      -> Status override;
  auto ReduceScatter(Communicator& communicator, Stream stream, const std::byte* from, std::byte* to, int64_t count)
      -> Status override;
  auto AllReduce(Communicator& communicator, Stream stream, std::byte* data, int64_t count, DType dtype)
      -> Status override;
  auto BeginGroup() -> Status override;
  auto Send(Communicator& communicator, Stream stream, const std::byte* data, int64_t bytes, int64_t to)
      -> Status override;
  auto Receive(Communicator& communicator, Stream stream, std::byte* data, int64_t bytes, int64_t from)
      -> Status override;
  auto EndGroup() -> Status override;
  auto Abort(Communicator& communicator) -> Status override;
  auto Destroy(Communicator& communicator) -> Status override;

  class Body;

 private:
  /// Counts a call. Fails if it is the one that has to.
  auto Next(const char* name) -> Status;

  std::atomic<int64_t> num_calls_ = 0;
  std::atomic<int64_t> num_operations_ = 0;
  std::mutex mutex_;
  /// Guarded by the mutex: operations of each stream that are not over.
  std::map<Stream, int64_t> under_way_;
};

/// Returns the double of this process, which every rank of the emulated CUDA family uses.
auto TheNcclDouble() -> NcclDouble&;

}  // namespace shardc
