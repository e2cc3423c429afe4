// Functions of our own that ask NCCL for what is needed: the library is one body of these, and tests have another one,
// which needs no GPU.
//
// A communicator never blocks the thread that calls: after BeginInit, and after each call that takes it, it is in
// progress until StateOf says that it is ready. Only then it takes the next call, and only then what was enqueued is on
// the stream. A call between BeginGroup and EndGroup is under way at EndGroup. Abort and Destroy may never return, and
// are allowed while another thread is in a call of the same communicator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/plan/types.h"

/// `cudaStream_t` is a pointer to it.
struct CUstream_st;

namespace shardc {

/// Errors: ExitCode::Environment, as the library says it.
class NcclApi {
 public:
  /// A communicator, as the body knows it. It is gone after Abort or Destroy.
  struct Communicator {
    virtual ~Communicator() = default;
  };
  using Stream = CUstream_st*;
  /// Name of a communicator. One member makes it, and all members have it.
  using UniqueId = std::array<char, 128>;
  enum class State : uint8_t { Ready, InProgress };

  virtual ~NcclApi() = default;

  /// Returns "2.28.9". Errors: the library is missing.
  virtual auto Version() -> ErrorOr<std::string> = 0;
  virtual auto MakeUniqueId() -> ErrorOr<UniqueId> = 0;
  virtual auto BeginInit(const UniqueId& id, int64_t index, int64_t size) -> ErrorOr<Communicator*> = 0;
  /// Errors: those that came up since it was last ready, here or on the way to a peer.
  virtual auto StateOf(Communicator& communicator) -> ErrorOr<State> = 0;

  /// Enqueues: all = every member's `bytes` of `mine`, in the order of the communicator.
  virtual auto AllGather(Communicator& communicator, Stream stream, const std::byte* mine, int64_t bytes,
                         std::byte* all) -> Status = 0;
  /// Enqueues: to = the sum of every member's `count` f32 for this member, of which `from` has one row for each. `to`
  /// may be the own row.
  virtual auto ReduceScatter(Communicator& communicator, Stream stream, const std::byte* from, std::byte* to,
                             int64_t count) -> Status = 0;
  /// Enqueues: data = its sum over the members. Dtypes F32, F64, I64.
  virtual auto AllReduce(Communicator& communicator, Stream stream, std::byte* data, int64_t count, DType dtype)
      -> Status = 0;
  virtual auto BeginGroup() -> Status = 0;
  virtual auto Send(Communicator& communicator, Stream stream, const std::byte* data, int64_t bytes, int64_t to)
      -> Status = 0;
  virtual auto Receive(Communicator& communicator, Stream stream, std::byte* data, int64_t bytes, int64_t from)
      -> Status = 0;
  virtual auto EndGroup() -> Status = 0;

  /// Leaves what is enqueued as it is.
  virtual auto Abort(Communicator& communicator) -> Status = 0;
  /// Waits until all members have done what was enqueued.
  virtual auto Destroy(Communicator& communicator) -> Status = 0;
};

}  // namespace shardc
