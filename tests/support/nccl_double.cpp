#include "tests/support/nccl_double.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace shardc {

using Clock = std::chrono::steady_clock;

namespace {

constexpr const char* LostPeer = "remote process exited or there was a network error";

/// One message to a peer, or from it.
struct Message {
  int64_t peer = 0;
  std::byte* data = nullptr;
  int64_t bytes = 0;
  bool is_sent = false;
};

/// Messages that are under way together; those of one peer and direction one after another.
struct Operation {
  NcclApi::Stream stream = nullptr;
  std::vector<Message> messages;
  /// Called once all messages are through; or empty.
  std::function<void()> finish;
  Clock::time_point begin;
  bool breaks = false;
};

/// Calls of a thread since BeginGroup.
struct CallGroup {
  bool is_open = false;
  NcclDouble::Body* body = nullptr;
  Operation operation;
};

auto DelayOf(double longest_ms) -> Clock::duration {
  thread_local std::mt19937 random(std::random_device{}());
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double, std::milli>(longest_ms * static_cast<double>(random() % 1000) / 1000));
}

/// Writes a name of the abstract namespace, which leaves nothing in the file system. Returns its length.
auto AddressOf(const NcclApi::UniqueId& id, int64_t index, sockaddr_un& address) -> socklen_t {
  address = {};
  address.sun_family = AF_UNIX;
  const std::string name = fmt::format("{}-{}", id.data(), index);
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

thread_local CallGroup call_group;

}  // namespace

/// A communicator: a thread that connects it, and then makes one operation after another.
class NcclDouble::Body final : public NcclApi::Communicator {
 public:
  Body(NcclDouble* of, const UniqueId& id, int64_t index, int64_t size)
      : of_(*of),
        id_(id),
        index_(index),
        sockets_(static_cast<size_t>(size), -1),
        delay_ms_(of->switches.longest_delay_ms),
        thread_([this] { Work(); }) {}
  Body(const Body&) = delete;
  ~Body() override {
    ends_ = true;
    changed_.notify_all();
    thread_.join();
    for (const int number : sockets_) {
      close(number);
    }
  }

  auto index() const -> int64_t { return index_; }
  auto size() const -> int64_t { return std::ssize(sockets_); }

  auto State() -> ErrorOr<NcclApi::State> {
    const std::lock_guard lock(mutex_);
    if (error_) {
      return *error_;
    }
    return is_connected_ && Clock::now() >= ready_at_ ? NcclApi::State::Ready : NcclApi::State::InProgress;
  }
  /// Requires: the communicator is ready.
  auto Enqueue(Operation operation) -> Status {
    const auto state = State();
    if (!state || *state != NcclApi::State::Ready) {
      return Fail(ExitCode::Environment, "invalid usage: the communicator is not ready");
    }
    operation.begin = Clock::now() + DelayOf(delay_ms_);
    operation.breaks = of_.num_operations_++ == of_.switches.breaks_at;
    {
      const std::lock_guard of_streams(of_.mutex_);
      ++of_.under_way_[operation.stream];
    }
    const std::lock_guard lock(mutex_);
    ready_at_ = Clock::now() + DelayOf(delay_ms_);
    operations_.push_back(std::move(operation));
    changed_.notify_all();
    return Success{};
  }
  /// Waits until all is over, or never will be.
  auto Drain() -> void {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return error_ || (operations_.empty() && !works_); });
  }

 private:
  auto Work() -> void;
  auto Connect() -> Status;
  auto Make(const Operation& operation) -> Status;
  /// Sends or receives until all of it is through.
  auto Transfer(int number, std::byte* data, int64_t bytes, bool is_sent) -> Status;
  auto Await(int number, short events) -> Status;

  NcclDouble& of_;
  const UniqueId id_;
  const int64_t index_;
  std::vector<int> sockets_;
  const double delay_ms_;
  std::atomic<bool> ends_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  /// Guarded by the mutex.
  bool is_connected_ = false;
  bool works_ = false;
  Clock::time_point ready_at_;
  std::deque<Operation> operations_;
  std::optional<Error> error_;
  std::thread thread_;
};

auto NcclDouble::Body::Await(int number, short events) -> Status {
  pollfd watched{.fd = number, .events = events, .revents = 0};
  while (!ends_) {
    if (poll(&watched, 1, 10) > 0) {
      return Success{};
    }
  }
  return Fail(ExitCode::Environment, "aborted");
}

auto NcclDouble::Body::Transfer(int number, std::byte* data, int64_t bytes, bool is_sent) -> Status {
  while (bytes > 0) {
    const auto length = static_cast<size_t>(bytes);
    const ssize_t count =
        is_sent ? send(number, data, length, MSG_DONTWAIT | MSG_NOSIGNAL) : recv(number, data, length, MSG_DONTWAIT);
    if (count > 0) {
      data += count;
      bytes -= count;
    } else if (count < 0 && errno == EAGAIN) {
      RETURN_IF_ERROR(Await(number, is_sent ? POLLOUT : POLLIN));
    } else {
      return Fail(ExitCode::Environment, "{}", LostPeer);
    }
  }
  return Success{};
}

auto NcclDouble::Body::Connect() -> Status {
  sockaddr_un address;
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const socklen_t length = AddressOf(id_, index_, address);
  CHECK(bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0 && listen(listener, 64) == 0,
        "no socket for member {}: {}", index_, std::strerror(errno));
  Status status = Success{};
  for (int64_t peer = 0; peer < index_ && status; ++peer) {
    const int number = sockets_[static_cast<size_t>(peer)] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const socklen_t peer_length = AddressOf(id_, peer, address);
    while (connect(number, reinterpret_cast<sockaddr*>(&address), peer_length) != 0 && !ends_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    int64_t own = index_;
    status = Transfer(number, reinterpret_cast<std::byte*>(&own), sizeof(own), true);
  }
  for (int64_t left = size() - index_ - 1; left > 0 && status; --left) {
    int64_t peer = 0;
    status = Await(listener, POLLIN);
    if (status) {
      const int number = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      status = Transfer(number, reinterpret_cast<std::byte*>(&peer), sizeof(peer), false);
      sockets_[static_cast<size_t>(peer)] = number;
    }
  }
  close(listener);
  return status;
}

auto NcclDouble::Body::Make(const Operation& operation) -> Status {
  while (Clock::now() < operation.begin && !ends_) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (operation.breaks) {
    return Fail(ExitCode::Environment, "unhandled system error");
  }
  // A thread for all that is sent, so that nobody waits for a peer that waits for it.
  Status sent = Success{};
  const auto transfer = [&](bool is_sent) -> Status {
    for (const Message& message : operation.messages) {
      if (message.is_sent == is_sent && message.peer != index_) {
        const int number = sockets_[static_cast<size_t>(message.peer)];
        RETURN_IF_ERROR(Transfer(number, message.data, message.bytes, is_sent));
      }
    }
    return Success{};
  };
  std::thread sender([&] { sent = transfer(true); });
  const Status received = transfer(false);
  sender.join();
  if (received && sent && operation.finish) {
    operation.finish();
  }
  return received ? sent : received;
}

auto NcclDouble::Body::Work() -> void {
  Status status = Connect();
  std::unique_lock lock(mutex_);
  is_connected_ = true;
  ready_at_ = Clock::now() + DelayOf(delay_ms_);
  while (true) {
    if (!status) {
      error_ = status.error();
    }
    works_ = false;
    changed_.notify_all();
    changed_.wait(lock, [&] { return ends_ || (status && !operations_.empty()); });
    if (ends_) {
      return;
    }
    const Operation operation = std::move(operations_.front());
    operations_.pop_front();
    works_ = true;
    lock.unlock();
    status = Make(operation);
    if (status) {
      // An operation that fails is never over.
      const std::lock_guard of_streams(of_.mutex_);
      --of_.under_way_[operation.stream];
    }
    lock.lock();
  }
}

auto NcclDouble::Next(const char* name) -> Status {
  return num_calls_++ == switches.fails_at ? Status(Fail(ExitCode::Environment, "NCCL: {} broke", name))
                                           : Status(Success{});
}

auto NcclDouble::IsOver(Stream stream) -> bool {
  const std::lock_guard lock(mutex_);
  return under_way_[stream] == 0;
}

auto NcclDouble::Version() -> ErrorOr<std::string> {
  RETURN_IF_ERROR(Next("version"));
  return switches.version;
}

auto NcclDouble::MakeUniqueId() -> ErrorOr<UniqueId> {
  RETURN_IF_ERROR(Next("unique_id"));
  UniqueId id{};
  std::random_device random;
  fmt::format_to_n(id.data(), id.size() - 1, "shardc-nccl-double-{:08x}{:08x}", random(), random());
  return id;
}

auto NcclDouble::BeginInit(const UniqueId& id, int64_t index, int64_t size) -> ErrorOr<Communicator*> {
  RETURN_IF_ERROR(Next("init"));
  ++num_begun;
  return new Body(this, id, index, size);
}

auto NcclDouble::StateOf(Communicator& communicator) -> ErrorOr<State> {
  return static_cast<Body&>(communicator).State();
}

auto NcclDouble::BeginGroup() -> Status {
  RETURN_IF_ERROR(Next("begin_group"));
  CHECK(!call_group.is_open, "a group in a group");
  call_group = {.is_open = true, .body = nullptr, .operation = {}};
  return Success{};
}

auto NcclDouble::Send(Communicator& communicator, Stream stream, const std::byte* data, int64_t bytes, int64_t to)
    -> Status {
  RETURN_IF_ERROR(Next("send"));
  CHECK(call_group.is_open, "a message outside of a group");
  call_group.body = &static_cast<Body&>(communicator);
  call_group.operation.stream = stream;
  call_group.operation.messages.push_back(
      {.peer = to, .data = const_cast<std::byte*>(data), .bytes = bytes, .is_sent = true});
  return Success{};
}

auto NcclDouble::Receive(Communicator& communicator, Stream stream, std::byte* data, int64_t bytes, int64_t from)
    -> Status {
  RETURN_IF_ERROR(Next("receive"));
  CHECK(call_group.is_open, "a message outside of a group");
  call_group.body = &static_cast<Body&>(communicator);
  call_group.operation.stream = stream;
  call_group.operation.messages.push_back({.peer = from, .data = data, .bytes = bytes, .is_sent = false});
  return Success{};
}

auto NcclDouble::EndGroup() -> Status {
  CallGroup calls = std::exchange(call_group, {});
  RETURN_IF_ERROR(Next("end_group"));
  // A group may be empty.
  return calls.body == nullptr ? Status(Success{}) : calls.body->Enqueue(std::move(calls.operation));
}

auto NcclDouble::AllGather(Communicator& communicator, Stream stream, const std::byte* mine, int64_t bytes,
                           std::byte* all) -> Status {
  RETURN_IF_ERROR(Next("all_gather"));
  Body& body = static_cast<Body&>(communicator);
  std::byte* const own = all + body.index() * bytes;
  Operation operation{.stream = stream};
  for (int64_t peer = 0; peer < body.size(); ++peer) {
    operation.messages.push_back({.peer = peer, .data = const_cast<std::byte*>(mine), .bytes = bytes, .is_sent = true});
    operation.messages.push_back({.peer = peer, .data = all + peer * bytes, .bytes = bytes, .is_sent = false});
  }
  std::memmove(own, mine, static_cast<size_t>(bytes));
  return body.Enqueue(std::move(operation));
}

/// Adds terms in the order in which a ring passes them on: it begins after the member that has the sum in the end.
template <class T>
static auto SumInRing(const std::vector<std::vector<std::byte>>& terms, int64_t last, int64_t begin, int64_t end,
                      std::byte* to) -> void {
  const auto size = std::ssize(terms);
  for (int64_t i = begin; i < end; ++i) {
    T sum{};
    for (int64_t k = 1; k <= size; ++k) {
      T term;
      std::memcpy(&term, terms[static_cast<size_t>((last + k) % size)].data() + i * int64_t{sizeof(T)}, sizeof(T));
      sum = k == 1 ? term : static_cast<T>(sum + term);
    }
    std::memcpy(to + (i - begin) * int64_t{sizeof(T)}, &sum, sizeof(T));
  }
}

static auto SumInRing(DType dtype, const std::vector<std::vector<std::byte>>& terms, int64_t last, int64_t begin,
                      int64_t end, std::byte* to) -> void {
  switch (dtype) {
    case DType::F32: return SumInRing<float>(terms, last, begin, end, to);
    case DType::F64: return SumInRing<double>(terms, last, begin, end, to);
    default: return SumInRing<int64_t>(terms, last, begin, end, to);
  }
}

/// Returns messages by which each member gets `bytes` of every other one, from the row of its index in `from`, rows
/// `stride` apart, and the buffers into which they come; the own one is filled.
static auto ExchangeOf(NcclDouble::Body& body, NcclApi::Stream stream, const std::byte* from, int64_t stride,
                       int64_t bytes, std::vector<std::vector<std::byte>>& terms) -> Operation {
  Operation operation{.stream = stream};
  for (int64_t peer = 0; peer < body.size(); ++peer) {
    auto& term = terms.emplace_back(static_cast<size_t>(bytes));
    std::byte* const row = const_cast<std::byte*>(from) + peer * stride;
    operation.messages.push_back({.peer = peer, .data = row, .bytes = bytes, .is_sent = true});
    operation.messages.push_back({.peer = peer, .data = term.data(), .bytes = bytes, .is_sent = false});
  }
  return operation;
}

auto NcclDouble::ReduceScatter(Communicator& communicator, Stream stream, const std::byte* from, std::byte* to,
                               int64_t count) -> Status {
  RETURN_IF_ERROR(Next("reduce_scatter"));
  Body& body = static_cast<Body&>(communicator);
  const int64_t bytes = count * int64_t{sizeof(float)};
  auto terms = std::make_shared<std::vector<std::vector<std::byte>>>();
  Operation operation = ExchangeOf(body, stream, from, bytes, bytes, *terms);
  operation.finish = [terms, from, to, count, bytes, index = body.index()] {
    std::memcpy((*terms)[static_cast<size_t>(index)].data(), from + index * bytes, static_cast<size_t>(bytes));
    SumInRing(DType::F32, *terms, index, 0, count, to);
  };
  return body.Enqueue(std::move(operation));
}

auto NcclDouble::AllReduce(Communicator& communicator, Stream stream, std::byte* data, int64_t count, DType dtype)
    -> Status {
  RETURN_IF_ERROR(Next("all_reduce"));
  Body& body = static_cast<Body&>(communicator);
  const int64_t bytes = count * SizeOf(dtype);
  auto terms = std::make_shared<std::vector<std::vector<std::byte>>>();
  Operation operation = ExchangeOf(body, stream, data, 0, bytes, *terms);
  operation.finish = [terms, data, count, bytes, dtype, index = body.index()] {
    std::memcpy((*terms)[static_cast<size_t>(index)].data(), data, static_cast<size_t>(bytes));
    const auto size = std::ssize(*terms);
    for (int64_t part = 0; part < size; ++part) {
      const int64_t begin = part * count / size;
      SumInRing(dtype, *terms, part, begin, (part + 1) * count / size, data + begin * SizeOf(dtype));
    }
  };
  return body.Enqueue(std::move(operation));
}

auto NcclDouble::Abort(Communicator& communicator) -> Status {
  RETURN_IF_ERROR(Next("abort"));
  while (switches.abort_hangs) {
    pause();
  }
  delete &communicator;
  ++num_aborted;
  return Success{};
}

auto NcclDouble::Destroy(Communicator& communicator) -> Status {
  RETURN_IF_ERROR(Next("destroy"));
  static_cast<Body&>(communicator).Drain();
  delete &communicator;
  ++num_destroyed;
  return Success{};
}

auto TheNcclDouble() -> NcclDouble& {
  static NcclDouble* const instance = new NcclDouble;
  return *instance;
}

}  // namespace shardc
