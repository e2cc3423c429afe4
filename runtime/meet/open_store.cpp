// A store at the address may be that of this launch; one that a launch left over (its process 0 has ended), which goes
// within seconds; that of another launch that runs; or no store at all. A process 0 that was killed a moment ago is
// still thought alive, so what looks alive is looked at for a while.
#include "runtime/meet/open_store.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "compiler/base/text/split.h"
#include "compiler/checkpoint/digest.h"

namespace shardc {

namespace {

using Clock = std::chrono::steady_clock;

/// How long the store stays at most after process 0 has failed, so that the others learn why.
constexpr Seconds Linger{20};
/// Silence of all processes, beyond the time that they wait for each other, after which the store gives them up.
constexpr Seconds BesideTimeout{2};
/// How long a store looks alive until it is believed.
constexpr Seconds AliveFor{2};
constexpr auto ProbeEvery = std::chrono::milliseconds(200);

/// Since when what is at the address has been alive, look by look.
class Patience {
 public:
  auto Elapsed() const -> double { return Since(begin_); }
  auto NoteAlive() -> void {
    alive_since_ = is_alive_ ? alive_since_ : Clock::now();
    is_alive_ = true;
  }
  auto NoteLeftOver() -> void {
    is_alive_ = false;
    has_seen_left_over_ = true;
  }
  auto has_seen_left_over() const -> bool { return has_seen_left_over_; }
  auto IsAliveFor(Seconds time) const -> bool { return is_alive_ && Since(alive_since_) > time.value; }
  auto is_believed() const -> bool { return IsAliveFor(AliveFor); }

 private:
  static auto Since(Clock::time_point begin) -> double {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  Clock::time_point begin_ = Clock::now();
  Clock::time_point alive_since_ = begin_;
  bool is_alive_ = false;
  bool has_seen_left_over_ = false;
};

struct StoreState {
  bool is_left_over = false;
  /// Started for the launch that looks.
  bool is_own = false;
  bool have_met = false;
};

constexpr const char* ClosedKey = "met";
constexpr const char* ComeKey = "come";

}  // namespace

auto PrefixOf(const LaunchPlace& place) -> std::string {
  return fmt::format("shardc/{}/{}/{}", place.job, place.restart, place.token.empty() ? "" : DigestOf(place.token));
}

static auto SeatKey(const Seat& seat) -> std::string { return fmt::format("seat/{}", seat.place.process); }

/// Errors: the launch at this address is under way.
static auto UnderWay(const Seat& seat) -> Error {
  return Fail(ExitCode::Environment,
              "at {} there is the store of a launch that is under way, and its processes have met without this one; "
              "give this launch another MASTER_PORT",
              seat.address.Text());
}

/// Returns the error of two processes with one number: "two processes say RANK=1 (node0, node1)".
static auto Twice(const Seat& seat, const std::string& lines) -> Error {
  const bool has_rank = seat.place.launcher == "torchrun" || seat.place.launcher.starts_with("RANK");
  return Fail(ExitCode::Environment, "two processes say {}{} ({}), at {}; number each process once{}",
              has_rank ? "RANK=" : "that they are process ", seat.place.process, fmt::join(SplitLines(lines), ", "),
              seat.address.Text(), seat.place.job.empty() ? ", and give each launch a MASTER_PORT of its own" : "");
}

/// Takes the seat of this process. Errors: another process has the same number.
static auto TakeSeat(const Seat& seat, JobStore& store) -> Status {
  RETURN_IF_ERROR(store.Append(SeatKey(seat), fmt::format("{} process {}\n", seat.host_name, getpid())));
  ASSIGN_OR_RETURN(const auto lines, store.TryGet(SeatKey(seat)));
  if (std::ranges::count(lines.value_or(""), '\n') > 1) {
    const Error twice = Twice(seat, *lines);
    RETURN_IF_ERROR(store.Abandon(twice));
    return twice;
  }
  RETURN_IF_ERROR(store.Join(seat.place.process, fmt::format("process {} ({})", seat.place.process, seat.host_name)));
  const auto come = store.Add(ComeKey, 1);
  return come ? Status(Success{}) : come.error();
}

/// Sleeps, unless this process is told to stop.
static auto Pause(const Seat& seat) -> Status {
  std::this_thread::sleep_for(ProbeEvery);
  return seat.while_waiting.interrupt ? seat.while_waiting.interrupt() : Status(Success{});
}

/// Returns the error if another program holds the address of process 0 and is not about to release it.
static auto InUse(const Seat& seat, JobStore& store, const Error& failed) -> Error {
  const auto have_met = HaveMet(store);
  const auto taken = store.TryGet(SeatKey(seat));
  if (have_met && *have_met) {
    return UnderWay(seat);
  }
  if (taken && *taken) {
    const Status twice = TakeSeat(seat, store);
    return twice ? failed : twice.error();
  }
  return Fail(ExitCode::Environment, "{} by the store of another launch", failed.message);
}

auto OpenStore(const Seat& seat) -> ErrorOr<StoreServer> {
  constexpr Seconds Longest{Linger.value + 5};
  constexpr Seconds LongestProbe{3};
  const Seconds silence = seat.longest_silence.value_or(Seconds{seat.timeout.value + BesideTimeout.value});
  Patience patience;
  while (true) {
    auto server = StoreServer::Start(seat.address, {.linger = Linger, .prefix = seat.prefix, .silence = silence});
    if (server || server.error().kind != ErrorKind::AddressInUse) {
      return server;
    }
    auto store = JobStore::Connect(seat.address, seat.prefix, LongestProbe,
                                   {.interrupt = seat.while_waiting.interrupt, .tell = {}});
    const auto is_left_over = store ? (*store)->IsLeftOver() : ErrorOr<bool>(store.error());
    if (is_left_over && *is_left_over) {
      patience.NoteLeftOver();
    } else {
      patience.NoteAlive();
    }
    if (patience.is_believed() && is_left_over) {
      return InUse(seat, **store, server.error());
    }
    FAIL_IF(patience.is_believed() || patience.Elapsed() > Longest.value, ExitCode::Environment, "{}{}",
            server.error().message, is_left_over ? "" : fmt::format("; {}", is_left_over.error().message));
    // A store that is left over waits for its clients, and this one has only looked.
    store = std::unique_ptr<JobStore>();
    RETURN_IF_ERROR(Pause(seat));
  }
}

static auto LookAt(JobStore& store) -> ErrorOr<StoreState> {
  const auto is_left_over = store.IsLeftOver();
  const auto is_own = is_left_over ? store.IsOfThisJob() : is_left_over;
  const auto have_met = is_own ? HaveMet(store) : is_own;
  return have_met ? ErrorOr<StoreState>(StoreState{*is_left_over, *is_own, *have_met}) : have_met.error();
}

auto EnterStore(const Seat& seat) -> ErrorOr<std::unique_ptr<JobStore>> {
  // The store of an attempt before this one may not know yet that it is left over.
  const Seconds longest_of_other{std::min(AliveFor.value, seat.timeout.value / 2)};
  Patience patience;
  while (true) {
    auto store = JobStore::Connect(seat.address, seat.prefix, seat.timeout, seat.while_waiting);
    if (!store) {
      // The store of the last launch may have gone in the middle of the greeting.
      if (!patience.has_seen_left_over() || store.error().code != ExitCode::Environment ||
          patience.Elapsed() >= seat.timeout.value) {
        return store;
      }
      RETURN_IF_ERROR(Pause(seat));
      continue;
    }
    // A store that is about to go may break any call.
    const auto state = LookAt(**store);
    const bool is_alive = state && !state->is_left_over;
    if (is_alive && !state->have_met && (state->is_own || patience.IsAliveFor(longest_of_other))) {
      RETURN_IF_ERROR(TakeSeat(seat, **store));
      return store;
    }
    if (is_alive) {
      patience.NoteAlive();
    } else {
      patience.NoteLeftOver();
    }
    if (is_alive && state->have_met && patience.is_believed()) {
      return UnderWay(seat);
    }
    if (patience.Elapsed() > seat.timeout.value) {
      return state ? Fail(ExitCode::Environment,
                          "at {} there is the store of a launch that has ended, and none of this one",
                          seat.address.Text())
                   : state.error();
    }
    store->reset();
    RETURN_IF_ERROR(Pause(seat));
  }
}

auto HaveMet(JobStore& store) -> ErrorOr<bool> {
  const auto closed = store.TryGet(ClosedKey);
  return closed ? ErrorOr<bool>(closed->has_value()) : closed.error();
}

auto NumCome(JobStore& store) -> ErrorOr<int64_t> { return store.Add(ComeKey, 0); }

auto CloseStore(JobStore& store) -> Status { return store.Set(ClosedKey, "1"); }

}  // namespace shardc
