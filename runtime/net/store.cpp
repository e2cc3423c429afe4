// How values lie in c10d's store:
//
//   a short value     as it is
//   a long value      its pieces under keys of their own, set first; then the key, with a text that names them. A short
//                     value that begins like such a text is stored as a long one.
//
// A key begins with the length of the prefix, so no prefix and key look like another prefix with another key.
#include "runtime/net/store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <random>
#include <utility>

#include "compiler/base/check.h"
#include "runtime/net/dial.h"
#include "runtime/net/error_text.h"
#include "runtime/net/tcp_store.h"

namespace shardc {

using std::chrono::milliseconds;

namespace {

/// Begins the text that names the pieces of a long value: "...PIECES FIRST_PIECE_KEY".
constexpr std::string_view PiecesMark = "\nshardc pieces: ";
/// Of a server that somebody has connected to. It may be busy, with thousands who connect at once.
constexpr milliseconds LongestGreeting{15000};
/// A server that does not answer for longer is silent.
constexpr Seconds LongestAnswer{5};

}  // namespace

static_assert(JobStore::MaxAppend <= TcpStore::MaxPayload);

static auto Randomly() -> std::string {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

auto JobStore::FullKey(const std::string& prefix, const std::string& key) -> std::string {
  return fmt::format("{}:{}/{}", prefix.size(), prefix, key);
}

JobStore::JobStore(const Endpoint& server, std::string prefix, Seconds timeout, WhileWaiting while_waiting)
    : address_(server.Text()),
      server_(server),
      prefix_(std::move(prefix)),
      timeout_(timeout),
      while_waiting_(std::move(while_waiting)),
      own_name_(Randomly()) {}

JobStore::~JobStore() = default;

auto JobStore::DeadlineIn(Seconds timeout) const -> Clock::time_point {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout.value));
}

auto JobStore::Connect(const Endpoint& server, std::string prefix, Seconds timeout, WhileWaiting while_waiting)
    -> ErrorOr<std::unique_ptr<JobStore>> {
  std::unique_ptr<JobStore> store(new JobStore(server, std::move(prefix), timeout, std::move(while_waiting)));
  RETURN_IF_ERROR(store->Open());
  return store;
}

struct JobStore::Telling {
  static constexpr Seconds First{5};
  static constexpr Seconds Between{30};

  const WhileWaiting& while_waiting;
  std::string key;
  Clock::time_point began = Clock::now();
  Seconds next = First;

  auto TellIfDue(JobStore& store) -> void {
    const Seconds waited{std::chrono::duration<double>(Clock::now() - began).count()};
    if (while_waiting.tell && waited >= next) {
      next = Seconds{waited.value + Between.value};
      while_waiting.tell(store, key, waited);
    }
  }
};

auto JobStore::RunCall(std::function<void()> call, Clock::time_point deadline, const std::function<void()>& meanwhile)
    -> bool {
  return thread_.Run(std::move(call), deadline, [&] {
    if (const Status goes_on = while_waiting_.interrupt ? while_waiting_.interrupt() : Status(Success{}); !goes_on) {
      interrupted_ = goes_on.error();
      return false;
    }
    if (meanwhile) {
      meanwhile();
    }
    return true;
  });
}

auto JobStore::Open() -> Status {
  const auto deadline = DeadlineIn(timeout_);
  Telling telling{.while_waiting = while_waiting_, .key = ""};
  const auto tell = [&] { telling.TellIfDue(*this); };
  const auto silent = [&]() -> Error {
    return interrupted_
               ? *interrupted_
               : Fail(ExitCode::Environment, "the store at {} did not answer within {} s", address_, timeout_.value);
  };
  // The thread may outlive this object: it owns what it works on.
  const auto address = std::make_shared<ErrorOr<SocketAddress>>(Error{});
  if (!RunCall([server = server_, deadline, address] { *address = Dial(server, deadline); }, deadline, tell)) {
    return silent();
  }
  FAIL_IF(!*address, ExitCode::Environment, address->error().kind, "cannot connect to the store at {} within {} s: {}",
          address_, timeout_.value, address->error().message);
  server_host_ = (**address).Host();
  const auto opened = std::make_shared<ErrorOr<std::unique_ptr<TcpStore>>>(nullptr);
  const auto rest = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  const auto longest = std::clamp(rest, milliseconds(1), LongestGreeting);
  // c10d's client does not bound the wait for the first answer.
  const bool is_over = RunCall([address, longest, opened] { *opened = TcpStore::Connect(**address, longest); },
                               std::min(deadline, Clock::now() + longest), tell);
  if (!is_over && (interrupted_ || longest < LongestGreeting)) {
    return silent();
  }
  FAIL_IF(!is_over, ExitCode::Environment,
          "cannot connect to the store at {}: what listens there has said nothing for {} s, so it is no store of "
          "shardc, or a store that is stopped",
          address_, std::chrono::ceil<std::chrono::seconds>(longest).count());
  FAIL_IF(!*opened, ExitCode::Environment,
          "cannot connect to the store at {}: what answers there is no store of shardc (it {})", address_,
          opened->error().message);
  client_ = std::move(**opened);
  return Success{};
}

template <class Result>
auto JobStore::Call(Clock::time_point deadline, std::function<ErrorOr<Result>(TcpStore&)> call) -> ErrorOr<Result> {
  if (broken_) {
    return *broken_;
  }
  ++num_operations_;
  const auto result = std::make_shared<std::optional<ErrorOr<Result>>>();
  const auto begin = Clock::now();
  const bool is_over = RunCall([client = client_, result, call = std::move(call)] { *result = call(*client); },
                               std::max(deadline, begin + milliseconds(1)), {});
  if (!is_over && interrupted_) {
    broken_ = interrupted_;
    return *broken_;
  }
  if (!is_over) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    is_silent_ = true;
    broken_ = Fail(ExitCode::Environment, "the store at {} did not answer for {:.1f} s", address_, seconds);
    return *broken_;
  }
  if (!**result) {
    broken_ = Fail(ExitCode::Environment, "the store at {} {}", address_, (*result)->error().message);
    return *broken_;
  }
  return std::move(**result);
}

/// c10d's server does not answer to what is written. So it is asked for the key: one more operation.
static auto Acknowledged(TcpStore& store, const std::string& full_key, const Status& written) -> Status {
  if (!written) {
    return written;
  }
  const auto is_there = store.Has(full_key);
  return is_there ? Status(Success{}) : is_there.error();
}

auto JobStore::Set(const std::string& key, std::string_view value) -> Status {
  const auto deadline = DeadlineIn(timeout_);
  const auto set = [&](const std::string& full_key, std::string_view bytes) -> Status {
    ++num_operations_;
    return Call<Success>(deadline, [full_key, bytes = std::string(bytes)](TcpStore& store) {
      return Acknowledged(store, full_key, store.Set(full_key, bytes));
    });
  };
  if (value.size() <= TcpStore::MaxPayload && !value.starts_with(PiecesMark)) {
    return set(FullKey(key), value);
  }
  const std::string piece_key = fmt::format("{}/{}-{}", key, own_name_, num_long_values_++);
  size_t num_pieces = 0;
  for (size_t offset = 0; offset < value.size(); offset += TcpStore::MaxPayload) {
    RETURN_IF_ERROR(
        set(FullKey(fmt::format("{}.{}", piece_key, num_pieces++)), value.substr(offset, TcpStore::MaxPayload)));
  }
  return set(FullKey(key), fmt::format("{}{} {}", PiecesMark, num_pieces, piece_key));
}

auto JobStore::Wait(const std::string& key, Clock::time_point deadline) -> ErrorOr<bool> {
  const auto waits = std::max(std::chrono::ceil<milliseconds>(deadline - Clock::now()), milliseconds(1));
  // That the time is over is the server's answer. It may be late, where machines are busy.
  const auto answered_by = deadline + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(std::min(timeout_.value, LongestAnswer.value)));
  return Call<bool>(answered_by,
                    [full_key = FullKey(key), waits](TcpStore& store) { return store.Wait(full_key, waits); });
}

auto JobStore::Wait(const std::string& key, Seconds timeout) -> ErrorOr<bool> { return Wait(key, DeadlineIn(timeout)); }

auto JobStore::Await(const std::string& key, Clock::time_point deadline) -> ErrorOr<bool> {
  // In turns with a look whether somebody has given the others up.
  constexpr auto BetweenLooks = std::chrono::seconds(2);
  Telling telling{.while_waiting = while_waiting_, .key = key};
  while (true) {
    const auto moved = thread_.moved();
    const auto is_there = Wait(key, std::min(deadline, Clock::now() + BetweenLooks));
    if (!is_there || *is_there) {
      return is_there;
    }
    RETURN_IF_ERROR(CheckNotAbandoned());
    // The time in which the whole job was suspended does not count.
    deadline += thread_.moved() - moved;
    if (Clock::now() >= deadline) {
      const Seconds more = while_waiting_.time_left ? while_waiting_.time_left(*this) : Seconds{};
      if (more <= Seconds{}) {
        return false;
      }
      deadline = DeadlineIn(more);
    }
    telling.TellIfDue(*this);
  }
}

auto JobStore::Read(const std::string& key, Clock::time_point deadline) -> ErrorOr<std::string> {
  const auto get = [&](const std::string& full_key) {
    return Call<std::string>(deadline, [full_key](TcpStore& store) { return store.Get(full_key); });
  };
  auto value = get(FullKey(key));
  if (!value || !value->starts_with(PiecesMark)) {
    return value;
  }
  const char* end = value->data() + value->size();
  size_t num_pieces = 0;
  const auto parsed = std::from_chars(value->data() + PiecesMark.size(), end, num_pieces);
  FAIL_IF(parsed.ec != std::errc() || parsed.ptr == end, ExitCode::Environment,
          "the store at {} has a value of {} that this program did not set", address_, key);
  const std::string piece_key(parsed.ptr + 1, end);
  std::string whole;
  for (size_t i = 0; i < num_pieces; ++i) {
    ASSIGN_OR_RETURN(const auto piece, get(FullKey(fmt::format("{}.{}", piece_key, i))));
    whole += piece;
  }
  return whole;
}

auto JobStore::Get(const std::string& key, Seconds timeout) -> ErrorOr<std::string> {
  const auto deadline = DeadlineIn(timeout);
  ASSIGN_OR_RETURN(const auto is_there, Await(key, deadline));
  FAIL_IF(!is_there, ExitCode::Environment, "nobody has set {} in the store at {} within {} s", key, address_,
          timeout.value);
  // A value that came late may be long, too.
  return Read(key, std::max(deadline, DeadlineIn(timeout_)));
}

auto JobStore::TryGet(const std::string& key) -> ErrorOr<std::optional<std::string>> {
  const auto deadline = DeadlineIn(timeout_);
  ASSIGN_OR_RETURN(const auto is_there,
                   Call<bool>(deadline, [full_key = FullKey(key)](TcpStore& store) { return store.Has(full_key); }));
  if (!is_there) {
    return std::optional<std::string>();
  }
  auto value = Read(key, deadline);
  return value ? ErrorOr<std::optional<std::string>>(*std::move(value)) : value.error();
}

auto JobStore::IsLeftOver() -> ErrorOr<bool> {
  return Call<bool>(DeadlineIn(timeout_), [](TcpStore& store) { return store.Has(LeftOverKey); });
}

auto JobStore::IsOfThisJob() -> ErrorOr<bool> {
  return Call<bool>(DeadlineIn(timeout_), [prefix = prefix_](TcpStore& store) -> ErrorOr<bool> {
    const auto is_there = store.Has(JobKey);
    if (!is_there || !*is_there) {
      return is_there;
    }
    const auto job = store.Get(JobKey);
    return job ? ErrorOr<bool>(*job == prefix) : job.error();
  });
}

auto JobStore::Append(const std::string& key, std::string_view bytes) -> Status {
  return Append(key, bytes, DeadlineIn(timeout_));
}

auto JobStore::Append(const std::string& key, std::string_view bytes, Clock::time_point deadline) -> Status {
  CHECK(bytes.size() <= MaxAppend && !bytes.starts_with(PiecesMark), "{} bytes to append to {}", bytes.size(), key);
  ++num_operations_;
  return Call<Success>(deadline, [full_key = FullKey(key), bytes = std::string(bytes)](TcpStore& store) {
    return Acknowledged(store, full_key, store.Append(full_key, bytes));
  });
}

auto JobStore::Add(const std::string& key, int64_t value) -> ErrorOr<int64_t> {
  return Add(key, value, DeadlineIn(timeout_));
}

auto JobStore::Add(const std::string& key, int64_t value, Clock::time_point deadline) -> ErrorOr<int64_t> {
  return Call<int64_t>(deadline,
                       [full_key = FullKey(key), value](TcpStore& store) { return store.Add(full_key, value); });
}

}  // namespace shardc
