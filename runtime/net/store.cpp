// How values lie in c10d's store:
//
//   a short value     as it is
//   a long value      its pieces under keys of their own, set first; then the key, with a text that names them. A short
//                     value that begins like such a text is stored as a long one.
//   a gather          KEY/records: what the members append, each with its index. KEY/come: how many came. KEY/done: set
//                     by the last one, after all records; the others wait for it.
//
// A key begins with the length of the prefix, so no prefix and key look like another prefix with another key.
#include "runtime/net/store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <random>
#include <type_traits>
#include <utility>

#include "compiler/base/check.h"
#include "runtime/net/dial.h"
#include "runtime/net/tcp_store.h"

namespace shardc {

using std::chrono::milliseconds;

namespace {

/// Begins the text that names the pieces of a long value: "...PIECES FIRST_PIECE_KEY".
constexpr std::string_view PiecesMark = "\nshardc pieces: ";
/// A server that does not answer for longer is silent.
constexpr Seconds LongestAnswer{5};
/// Members that an error names.
constexpr size_t MostNamed = 8;

/// Stands before the bytes of a record. Records of one member may be several, each with a range of its bytes.
struct RecordHead {
  int64_t index = 0;
  int64_t bytes = 0;
  int64_t offset = 0;
  int64_t total = 0;
};

}  // namespace

static_assert(JobStore::MaxAppend <= TcpStore::MaxPayload);

static auto Randomly() -> std::string {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

JobStore::JobStore(const Endpoint& server, std::string prefix, Seconds timeout)
    : address_(server.Text()),
      server_(server),
      prefix_(fmt::format("{}:{}/", prefix.size(), prefix)),
      timeout_(timeout),
      own_name_(Randomly()) {}

JobStore::~JobStore() = default;

auto JobStore::DeadlineIn(Seconds timeout) const -> Clock::time_point {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout.value));
}

auto JobStore::Connect(const Endpoint& server, std::string prefix, Seconds timeout)
    -> ErrorOr<std::unique_ptr<JobStore>> {
  std::unique_ptr<JobStore> store(new JobStore(server, std::move(prefix), timeout));
  RETURN_IF_ERROR(store->Open());
  return store;
}

auto JobStore::Open() -> Status {
  const auto deadline = DeadlineIn(timeout_);
  // The thread may outlive this object: it owns what it works on.
  const auto opened = std::make_shared<ErrorOr<std::unique_ptr<TcpStore>>>(nullptr);
  const bool is_over = thread_.Run(
      [server = server_, deadline, opened] {
        const auto address = Dial(server, deadline);
        const auto rest = std::chrono::ceil<milliseconds>(deadline - Clock::now());
        *opened = address ? TcpStore::Connect(*address, std::max(rest, milliseconds(1))) : address.error();
      },
      deadline);
  if (!is_over) {
    return Fail(ExitCode::Environment, "the store at {} did not answer within {} s", address_, timeout_.value);
  }
  if (!*opened) {
    return Fail(ExitCode::Environment, "cannot connect to the store at {} within {} s: {}", address_, timeout_.value,
                opened->error().message);
  }
  client_ = std::move(**opened);
  return Success{};
}

template <class Result>
auto JobStore::Call(const std::string& asked, Clock::time_point deadline,
                    std::function<ErrorOr<Result>(TcpStore&)> call) -> ErrorOr<Result> {
  if (broken_) {
    return *broken_;
  }
  ++num_operations_;
  const auto result = std::make_shared<std::optional<ErrorOr<Result>>>();
  const auto begin = Clock::now();
  const bool is_over = thread_.Run([client = client_, result, call = std::move(call)] { *result = call(*client); },
                                   std::max(deadline, begin + milliseconds(1)));
  if (!is_over) {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    broken_ = Fail(ExitCode::Environment, "the store at {} did not answer for {:.1f} s when asked to {}", address_,
                   seconds, asked);
    return *broken_;
  }
  if (!**result) {
    broken_ =
        Fail(ExitCode::Environment, "the store at {} {} when asked to {}", address_, (*result)->error().message, asked);
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
    return Call<Success>(fmt::format("set {}", key), deadline, [full_key, bytes = std::string(bytes)](TcpStore& store) {
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
  return Call<bool>(fmt::format("wait for {}", key), answered_by,
                    [full_key = FullKey(key), waits](TcpStore& store) { return store.Wait(full_key, waits); });
}

auto JobStore::Wait(const std::string& key, Seconds timeout) -> ErrorOr<bool> { return Wait(key, DeadlineIn(timeout)); }

auto JobStore::Read(const std::string& key, Clock::time_point deadline) -> ErrorOr<std::string> {
  const auto get = [&](const std::string& full_key) {
    return Call<std::string>(fmt::format("get {}", key), deadline,
                             [full_key](TcpStore& store) { return store.Get(full_key); });
  };
  auto value = get(FullKey(key));
  if (!value || !value->starts_with(PiecesMark)) {
    return value;
  }
  const char* end = value->data() + value->size();
  size_t num_pieces = 0;
  const auto parsed = std::from_chars(value->data() + PiecesMark.size(), end, num_pieces);
  if (parsed.ec != std::errc() || parsed.ptr == end) {
    return Fail(ExitCode::Environment, "the store at {} has a value of {} that this program did not set", address_,
                key);
  }
  const std::string piece_key(parsed.ptr + 1, end);
  std::string whole;
  for (size_t i = 0; i < num_pieces; ++i) {
    const auto piece = get(FullKey(fmt::format("{}.{}", piece_key, i)));
    if (!piece) {
      return piece.error();
    }
    whole += *piece;
  }
  return whole;
}

auto JobStore::Get(const std::string& key, Seconds timeout) -> ErrorOr<std::string> {
  const auto deadline = DeadlineIn(timeout);
  const auto is_there = Wait(key, deadline);
  if (!is_there) {
    return is_there.error();
  }
  if (!*is_there) {
    return Fail(ExitCode::Environment, "nobody has set {} in the store at {} within {} s", key, address_,
                timeout.value);
  }
  // A value that came late may be long, too.
  return Read(key, std::max(deadline, DeadlineIn(timeout_)));
}

auto JobStore::TryGet(const std::string& key) -> ErrorOr<std::optional<std::string>> {
  const auto deadline = DeadlineIn(timeout_);
  const auto is_there = Call<bool>(fmt::format("look for {}", key), deadline,
                                   [full_key = FullKey(key)](TcpStore& store) { return store.Has(full_key); });
  if (!is_there) {
    return is_there.error();
  }
  if (!*is_there) {
    return std::optional<std::string>();
  }
  auto value = Read(key, deadline);
  return value ? ErrorOr<std::optional<std::string>>(*std::move(value)) : value.error();
}

auto JobStore::IsLeftOver() -> ErrorOr<bool> {
  return Call<bool>("look whether the store is left over", DeadlineIn(timeout_),
                    [](TcpStore& store) { return store.Has(LeftOverKey); });
}

auto JobStore::Append(const std::string& key, std::string_view bytes) -> Status {
  return Append(key, bytes, DeadlineIn(timeout_));
}

auto JobStore::Append(const std::string& key, std::string_view bytes, Clock::time_point deadline) -> Status {
  CHECK(bytes.size() <= MaxAppend && !bytes.starts_with(PiecesMark), "{} bytes to append to {}", bytes.size(), key);
  ++num_operations_;
  return Call<Success>(fmt::format("append to {}", key), deadline,
                       [full_key = FullKey(key), bytes = std::string(bytes)](TcpStore& store) {
                         return Acknowledged(store, full_key, store.Append(full_key, bytes));
                       });
}

auto JobStore::Add(const std::string& key, int64_t value) -> ErrorOr<int64_t> {
  return Add(key, value, DeadlineIn(timeout_));
}

auto JobStore::Add(const std::string& key, int64_t value, Clock::time_point deadline) -> ErrorOr<int64_t> {
  return Call<int64_t>(fmt::format("count {}", key), deadline,
                       [full_key = FullKey(key), value](TcpStore& store) { return store.Add(full_key, value); });
}

auto JobStore::AppendRecord(const std::string& key, int64_t index, std::string_view bytes, Clock::time_point deadline)
    -> Status {
  constexpr size_t Most = MaxAppend - sizeof(RecordHead);
  size_t offset = 0;
  do {
    const std::string_view piece = bytes.substr(offset, Most);
    const RecordHead head{.index = index,
                          .bytes = static_cast<int64_t>(piece.size()),
                          .offset = static_cast<int64_t>(offset),
                          .total = static_cast<int64_t>(bytes.size())};
    std::string record(reinterpret_cast<const char*>(&head), sizeof head);
    record += piece;
    RETURN_IF_ERROR(Append(key, record, deadline));
    offset += piece.size();
  } while (offset < bytes.size());
  return Success{};
}

namespace {

/// What the records of a gather have of each member.
struct Gathered {
  std::vector<std::string> values;
  /// Bytes that came; none: -1.
  std::vector<int64_t> came;
};

}  // namespace

/// Errors: a clause about the records.
static auto ReadRecords(std::string_view records, int64_t count) -> ErrorOr<Gathered> {
  const auto size = static_cast<size_t>(count);
  Gathered gathered{.values = std::vector<std::string>(size), .came = std::vector<int64_t>(size, -1)};
  while (!records.empty()) {
    RecordHead head;
    if (records.size() < sizeof head) {
      return Fail(ExitCode::Environment, "its records are no records");
    }
    std::memcpy(&head, records.data(), sizeof head);
    records.remove_prefix(sizeof head);
    if (head.bytes < 0 || head.offset < 0 || head.total < 0 || head.bytes > static_cast<int64_t>(records.size()) ||
        head.offset > head.total - head.bytes) {
      return Fail(ExitCode::Environment, "its records are no records");
    }
    if (head.index < 0 || head.index >= count) {
      return Fail(ExitCode::Environment, "member {} came, and there are {}", head.index, count);
    }
    std::string& value = gathered.values[static_cast<size_t>(head.index)];
    int64_t& came = gathered.came[static_cast<size_t>(head.index)];
    // The pieces of one member come in their order: it sends them by one connection.
    if (came == -1 ? head.offset != 0 : came != head.offset || came == head.total) {
      return Fail(ExitCode::Environment, "two members have the index {}", head.index);
    }
    value.append(records.substr(0, static_cast<size_t>(head.bytes)));
    came = head.offset + head.bytes;
    records.remove_prefix(static_cast<size_t>(head.bytes));
  }
  return gathered;
}

auto JobStore::Missing(const std::string& key, int64_t count, Seconds timeout) -> Error {
  const auto records = TryGet(key + "/records");
  if (!records) {
    return records.error();
  }
  const auto gathered = ReadRecords(records->value_or(""), count);
  if (!gathered) {
    return Fail(ExitCode::Environment, "{} in the store at {}: {}", key, address_, gathered.error().message);
  }
  std::vector<int64_t> missing;
  for (int64_t i = 0; i < count; ++i) {
    if (gathered->came[static_cast<size_t>(i)] == -1) {
      missing.push_back(i);
    }
  }
  const auto named = std::min(missing.size(), MostNamed);
  return Fail(ExitCode::Environment, "{} of {} members did not come to {} in the store at {} within {} s: {}{}",
              missing.size(), count, key, address_, timeout.value,
              fmt::join(missing.begin(), missing.begin() + static_cast<ptrdiff_t>(named), ", "),
              named < missing.size() ? ", ..." : "");
}

static constexpr const char* AbandonedKey = "abandoned";

auto JobStore::Abandon(const std::string& reason) -> Status { return Set(AbandonedKey, reason); }

auto JobStore::Gather(const std::string& key, int64_t index, int64_t count, std::string_view mine, Seconds timeout)
    -> ErrorOr<std::vector<std::string>> {
  CHECK(index >= 0 && index < count, "member {} of {}", index, count);
  const auto deadline = DeadlineIn(timeout);
  RETURN_IF_ERROR(AppendRecord(key + "/records", index, mine, deadline));
  const auto come = Add(key + "/come", 1, deadline);
  if (!come) {
    return come.error();
  }
  if (*come == count) {
    RETURN_IF_ERROR(Set(key + "/done", "1"));
  }
  // In turns with a look whether somebody has given the others up.
  constexpr auto BetweenLooks = std::chrono::seconds(2);
  while (true) {
    const auto is_done = Wait(key + "/done", std::min(deadline, Clock::now() + BetweenLooks));
    if (!is_done) {
      return is_done.error();
    }
    if (*is_done) {
      break;
    }
    const auto reason = TryGet(AbandonedKey);
    if (!reason || *reason) {
      return reason ? Error{ExitCode::Environment, **reason} : reason.error();
    }
    if (Clock::now() >= deadline) {
      return Missing(key, count, timeout);
    }
  }
  const auto records = Read(key + "/records", std::max(deadline, DeadlineIn(timeout_)));
  if (!records) {
    return records.error();
  }
  auto gathered = ReadRecords(*records, count);
  if (!gathered) {
    return Fail(ExitCode::Environment, "{} in the store at {}: {}", key, address_, gathered.error().message);
  }
  return std::move(gathered->values);
}

}  // namespace shardc
