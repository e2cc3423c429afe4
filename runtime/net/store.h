// The store of a job: keys and values that its members on all hosts see. A client of it; the server is a StoreServer.
//
// Every call ends in time, unless somebody holds the others. A server that is silent (its host is gone, or it is
// stopped) is told apart from a key that nobody has set: it gets up to 5 s more for its answer. After an error other
// than a time that was over, every further call has that error.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/units.h"
#include "runtime/net/address.h"
#include "runtime/net/call_thread.h"

namespace shardc {

class TcpStore;

/// One thread at a time. Keys are at most a thousand bytes; values may have any length. Errors: ExitCode::Environment
/// with the address of the store.
class JobStore {
 public:
  /// What a client does besides while it waits. Each may be null.
  struct WhileWaiting {
    /// Asked ten times a second. An error of it ends the call, and every further call has that error.
    std::function<Status()> interrupt;
    /// Told after 5 s, and every 30 s from then on, which key is waited for, and how long; no key: the store itself is,
    /// and does not answer.
    std::function<void(JobStore& store, const std::string& key, Seconds waited)> tell;
    /// Asked when the time of a wait is over: for how long to wait on, until it is asked again; 0 ends the wait.
    std::function<Seconds(JobStore& store)> time_left;
  };

  /// Tries until `timeout`: the server may come later than its clients, and a name of a host later still. Two prefixes
  /// do not see each other's keys. `timeout` also bounds the calls that have none of their own.
  static auto Connect(const Endpoint& server, std::string prefix, Seconds timeout, WhileWaiting while_waiting = {})
      -> ErrorOr<std::unique_ptr<JobStore>>;
  ~JobStore();

  /// Returns when the store has the value.
  auto Set(const std::string& key, std::string_view value) -> Status;
  /// Waits for the key. Errors: that of Abandon, if somebody has called it.
  auto Get(const std::string& key, Seconds timeout) -> ErrorOr<std::string>;
  /// False: nobody has set the key within `timeout`. For those who look at something else meanwhile.
  auto Wait(const std::string& key, Seconds timeout) -> ErrorOr<bool>;
  auto TryGet(const std::string& key) -> ErrorOr<std::optional<std::string>>;
  /// The process that started the server has ended: the store is there for those who know it, and no launch begins in
  /// it.
  auto IsLeftOver() -> ErrorOr<bool>;
  /// The server was started for the job of this prefix.
  auto IsOfThisJob() -> ErrorOr<bool>;
  /// Puts `bytes` at the end of the value. Requires: at most MaxAppend of them.
  auto Append(const std::string& key, std::string_view bytes) -> Status;
  /// Adds to a count that begins at 0, and gives the sum.
  auto Add(const std::string& key, int64_t value) -> ErrorOr<int64_t>;

  /// Every member's bytes in the order of their indices, for all `count` members. Each makes the same number of calls
  /// to the store, however many there are. Once per key. Errors: those who did not come, if the time is over.
  auto Gather(const std::string& key, int64_t index, int64_t count, std::string_view mine, Seconds timeout)
      -> ErrorOr<std::vector<std::string>>;

  /// From now on bounds the calls that have no time of their own.
  auto BoundCalls(Seconds timeout) -> void { timeout_ = timeout; }

  /// This member does not go on: the waits of the others end, with this error. The first one stays.
  auto Abandon(const Error& error) -> Status;
  /// Errors: that of Abandon, if somebody has called it.
  auto CheckNotAbandoned() -> Status;
  /// The error of a call was that of Abandon.
  auto was_abandoned() const -> bool { return was_abandoned_; }
  /// Returns the members, of `count`, that have not come to the gather of this key yet.
  auto MissingAt(const std::string& key, int64_t count) -> ErrorOr<std::vector<int64_t>>;
  /// Returns true if an error of Gather or Get means that its time was over: its text names a key, which means nothing
  /// to people. Any other error says what happened.
  auto is_late() const -> bool { return !is_broken() && !was_abandoned_; }
  /// After an error of Gather: whom it lacked when its time was over. Empty after any other error.
  auto LateAt(const std::string& key, int64_t count) -> std::vector<int64_t>;

  // The server of the store abandons in the name of a member whose connection ends between Join and Part
  // (member_watch.h).
  /// `name`: in messages.
  auto Join(int64_t member, const std::string& name) -> Status;
  /// This connection ends, and another one joins within seconds.
  auto Move(int64_t member) -> Status;
  /// This member ends. Takes at most a second, because the store of a job that fails may be silent.
  auto Part(int64_t member) -> Status;

  /// A call had an error after which the connection is of no use.
  auto is_broken() const -> bool { return broken_.has_value(); }
  /// That error was that the store did not answer in time.
  auto is_silent() const -> bool { return is_silent_; }
  /// Disables the callbacks of WhileWaiting.
  auto WaitOnly() -> void { while_waiting_ = {}; }

  /// The key of Abandon, with the error as PackError has it.
  static constexpr const char* AbandonedKey = "abandoned";
  /// As the server has it.
  static auto FullKey(const std::string& prefix, const std::string& key) -> std::string;

  /// Calls to the store so far.
  auto num_operations() const -> int64_t { return num_operations_; }
  auto address() const -> const std::string& { return address_; }
  /// "10.0.0.1": of the addresses that the server's name stands for, the one that answered.
  auto server_host() const -> const std::string& { return server_host_; }

  static constexpr size_t MaxAppend = size_t{4} << 20;

 private:
  using Clock = std::chrono::steady_clock;

  JobStore(const Endpoint& server, std::string prefix, Seconds timeout, WhileWaiting while_waiting);

  /// When to tell how long has been waited.
  struct Telling;
  /// On the thread. False: it has been given up.
  auto RunCall(std::function<void()> call, Clock::time_point deadline, const std::function<void()>& meanwhile) -> bool;

  /// `call` of c10d's client, on the thread, until `deadline`.
  template <class Result>
  auto Call(Clock::time_point deadline, std::function<ErrorOr<Result>(TcpStore&)> call) -> ErrorOr<Result>;
  auto Open() -> Status;
  auto DeadlineIn(Seconds timeout) const -> Clock::time_point;
  auto FullKey(const std::string& key) const -> std::string { return FullKey(prefix_, key); }
  /// Looks now and then whether somebody has abandoned, and tells of the wait. False: the time is over.
  auto Await(const std::string& key, Clock::time_point deadline) -> ErrorOr<bool>;
  auto Wait(const std::string& key, Clock::time_point deadline) -> ErrorOr<bool>;
  /// The value of a key that is there.
  auto Read(const std::string& key, Clock::time_point deadline) -> ErrorOr<std::string>;
  auto Append(const std::string& key, std::string_view bytes, Clock::time_point deadline) -> Status;
  auto Add(const std::string& key, int64_t value, Clock::time_point deadline) -> ErrorOr<int64_t>;
  auto AppendRecord(const std::string& key, int64_t index, std::string_view bytes, Clock::time_point deadline)
      -> Status;
  auto Missing(const std::string& key, int64_t count, Seconds timeout) -> Error;

  std::string address_;
  Endpoint server_;
  std::string server_host_;
  std::string prefix_;
  Seconds timeout_;
  std::shared_ptr<TcpStore> client_;
  CallThread thread_;
  WhileWaiting while_waiting_;
  /// What `interrupt` said.
  std::optional<Error> interrupted_;
  bool was_abandoned_ = false;
  bool is_silent_ = false;
  /// The first error after which the connection is of no use.
  std::optional<Error> broken_;
  int64_t num_operations_ = 0;
  /// Makes the keys of the pieces of long values differ.
  std::string own_name_;
  int64_t num_long_values_ = 0;
};

}  // namespace shardc
