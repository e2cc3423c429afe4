#include "runtime/comm/cuda/nccl_library.h"

#include <dlfcn.h>
#include <nccl.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "runtime/device/cuda/cuda_error.h"
#include "runtime/device/cuda/versions.h"

namespace shardc {

namespace {

/// Functions of the library. Each has the type that NCCL's header gives it.
struct Functions {
#define FUNCTION(name) decltype(&::name) name = nullptr;
#define FUNCTIONS                  \
  FUNCTION(ncclGetVersion)         \
  FUNCTION(ncclGetErrorString)     \
  FUNCTION(ncclGetLastError)       \
  FUNCTION(ncclGetUniqueId)        \
  FUNCTION(ncclCommInitRankConfig) \
  FUNCTION(ncclCommGetAsyncError)  \
  FUNCTION(ncclAllGather)          \
  FUNCTION(ncclReduceScatter)      \
  FUNCTION(ncclAllReduce)          \
  FUNCTION(ncclGroupStart)         \
  FUNCTION(ncclSend)               \
  FUNCTION(ncclRecv)               \
  FUNCTION(ncclGroupEnd)           \
  FUNCTION(ncclCommFinalize)       \
  FUNCTION(ncclCommDestroy)        \
  FUNCTION(ncclCommAbort)
  FUNCTIONS
#undef FUNCTION
};

auto Load() -> ErrorOr<Functions> {
  constexpr const char* Name = "libnccl.so.2";
  void* const library = dlopen(Name, RTLD_NOW | RTLD_LOCAL);
  FAIL_IF(library == nullptr, ExitCode::Environment,
          "GPUs of several hosts exchange by NCCL, and it cannot be loaded: {}; install NVIDIA's package of NCCL "
          "for CUDA 13, or put the folder of {} on LD_LIBRARY_PATH",
          dlerror(), Name);
  Functions functions;
#define FUNCTION(name)                                                                          \
  functions.name = reinterpret_cast<decltype(functions.name)>(dlsym(library, #name));           \
  if (functions.name == nullptr) {                                                              \
    return Fail(ExitCode::Environment, "{} has no {}; NCCL 2.18 or newer has it", Name, #name); \
  }
  FUNCTIONS
#undef FUNCTION
#undef FUNCTIONS
  return functions;
}

struct LibraryCommunicator final : NcclApi::Communicator {
  ncclComm_t comm = nullptr;
  /// Number of its GPU. A thread that ends it takes this one: NCCL gives each thread back the GPU that it had, and
  /// would begin to use the first one for a thread that had none.
  int gpu = 0;
};

auto CommOf(NcclApi::Communicator& communicator) -> ncclComm_t {
  return static_cast<LibraryCommunicator&>(communicator).comm;
}

auto TypeOf(DType dtype) -> ncclDataType_t {
  CHECK(dtype == DType::F32 || dtype == DType::F64 || dtype == DType::I64, "NCCL sums {}", ToText(dtype));
  return dtype == DType::F32 ? ncclFloat32 : dtype == DType::F64 ? ncclFloat64 : ncclInt64;
}

class Library final : public NcclApi {
 public:
  auto Version() -> ErrorOr<std::string> override {
    RETURN_IF_ERROR(Open());
    int version = 0;
    RETURN_IF_ERROR(StatusOf(nccl_.ncclGetVersion(&version), nullptr, "telling its version"));
    return LibraryVersionText(static_cast<size_t>(version));
  }
  auto MakeUniqueId() -> ErrorOr<UniqueId> override {
    RETURN_IF_ERROR(Open());
    ncclUniqueId made;
    RETURN_IF_ERROR(StatusOf(nccl_.ncclGetUniqueId(&made), nullptr, "making a unique id"));
    UniqueId id{};
    static_assert(sizeof(id) == sizeof(made));
    std::memcpy(id.data(), &made, sizeof(made));
    return id;
  }
  auto BeginInit(const UniqueId& id, int64_t index, int64_t size) -> ErrorOr<Communicator*> override {
    RETURN_IF_ERROR(Open());
    ncclUniqueId unique_id;
    std::memcpy(&unique_id, id.data(), sizeof(unique_id));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    auto communicator = std::make_unique<LibraryCommunicator>();
    RETURN_IF_ERROR(CudaStatus(cudaGetDevice(&communicator->gpu), "asking for the GPU of a rank"));
    RETURN_IF_ERROR(StatusOf(nccl_.ncclCommInitRankConfig(&communicator->comm, static_cast<int>(size), unique_id,
                                                          static_cast<int>(index), &config),
                             nullptr, "connecting GPUs of several hosts"));
    return communicator.release();
  }
  auto StateOf(Communicator& communicator) -> ErrorOr<State> override {
    ncclResult_t state = ncclSuccess;
    const ncclComm_t comm = CommOf(communicator);
    RETURN_IF_ERROR(StatusOf(nccl_.ncclCommGetAsyncError(comm, &state), comm, "telling its state"));
    RETURN_IF_ERROR(StatusOf(state, comm, "exchanging with other hosts"));
    return state == ncclInProgress ? State::InProgress : State::Ready;
  }
  auto AllGather(Communicator& communicator, Stream stream, const std::byte* mine, int64_t bytes, std::byte* all)
      -> Status override {
    const ncclComm_t comm = CommOf(communicator);
    return StatusOf(nccl_.ncclAllGather(mine, all, static_cast<size_t>(bytes), ncclUint8, comm, stream), comm,
                    "gathering");
  }
  auto ReduceScatter(Communicator& communicator, Stream stream, const std::byte* from, std::byte* to, int64_t count)
      -> Status override {
    const ncclComm_t comm = CommOf(communicator);
    return StatusOf(nccl_.ncclReduceScatter(from, to, static_cast<size_t>(count), ncclFloat32, ncclSum, comm, stream),
                    comm, "summing");
  }
  auto AllReduce(Communicator& communicator, Stream stream, std::byte* data, int64_t count, DType dtype)
      -> Status override {
    const ncclComm_t comm = CommOf(communicator);
    return StatusOf(nccl_.ncclAllReduce(data, data, static_cast<size_t>(count), TypeOf(dtype), ncclSum, comm, stream),
                    comm, "summing");
  }
  auto BeginGroup() -> Status override { return StatusOf(nccl_.ncclGroupStart(), nullptr, "beginning a group"); }
  auto Send(Communicator& communicator, Stream stream, const std::byte* data, int64_t bytes, int64_t to)
      -> Status override {
    const ncclComm_t comm = CommOf(communicator);
    return StatusOf(nccl_.ncclSend(data, static_cast<size_t>(bytes), ncclUint8, static_cast<int>(to), comm, stream),
                    comm, "sending");
  }
  auto Receive(Communicator& communicator, Stream stream, std::byte* data, int64_t bytes, int64_t from)
      -> Status override {
    const ncclComm_t comm = CommOf(communicator);
    return StatusOf(nccl_.ncclRecv(data, static_cast<size_t>(bytes), ncclUint8, static_cast<int>(from), comm, stream),
                    comm, "receiving");
  }
  auto EndGroup() -> Status override { return StatusOf(nccl_.ncclGroupEnd(), nullptr, "ending a group"); }
  auto Abort(Communicator& communicator) -> Status override {
    const std::unique_ptr<LibraryCommunicator> ended(static_cast<LibraryCommunicator*>(&communicator));
    cudaSetDevice(ended->gpu);
    return StatusOf(nccl_.ncclCommAbort(ended->comm), nullptr, "aborting");
  }
  auto Destroy(Communicator& communicator) -> Status override {
    const std::unique_ptr<LibraryCommunicator> ended(static_cast<LibraryCommunicator*>(&communicator));
    cudaSetDevice(ended->gpu);
    RETURN_IF_ERROR(StatusOf(nccl_.ncclCommFinalize(ended->comm), ended->comm, "ending"));
    auto state = StateOf(communicator);
    while (state && *state == State::InProgress) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      state = StateOf(communicator);
    }
    return StatusOf(nccl_.ncclCommDestroy(ended->comm), nullptr, "ending");
  }

 private:
  /// Loads the library, whichever thread comes first.
  auto Open() -> Status {
    std::call_once(opened_, [&] {
      const auto loaded = Load();
      loaded ? static_cast<void>(nccl_ = *loaded) : static_cast<void>(status_ = loaded.error());
    });
    return status_;
  }
  /// Returns the status of a call. `comm`: may have more to say, or is null. `what`: what was done.
  auto StatusOf(ncclResult_t code, ncclComm_t comm, std::string_view what) const -> Status {
    if (code == ncclSuccess || code == ncclInProgress) {
      return Success{};
    }
    const char* const last = nccl_.ncclGetLastError(comm);
    const std::string_view more = last == nullptr ? "" : last;
    return Fail(ExitCode::Environment, "NCCL, {}: {}{}{}", what, nccl_.ncclGetErrorString(code),
                more.empty() ? "" : ": ", more);
  }

  std::once_flag opened_;
  Status status_ = Success{};
  Functions nccl_;
};

}  // namespace

auto NcclLibrary() -> NcclApi& {
  static auto* const library = new Library;
  return *library;
}

}  // namespace shardc
