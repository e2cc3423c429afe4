#include "runtime/meet/host_watch.h"

#include <algorithm>

#include "runtime/net/error_text.h"

namespace shardc {

static constexpr auto LookEvery = std::chrono::milliseconds(100);
static constexpr auto ListenEvery = std::chrono::milliseconds(500);
static constexpr auto BeatEvery = std::chrono::seconds(1);
/// For each call to the store: it delays nothing but the watch itself.
static constexpr Seconds StoreTimeout{5};
/// Time for a call that a process makes before it ends: it should not end long after `--timeout`.
static constexpr Seconds LastCallTimeout{1};

static auto BeatKey(int64_t host) -> std::string { return fmt::format("beat/{}", host); }
static constexpr const char* FailureKey = "failure";

HostWatch::HostWatch(ControlBlock& block, Options options) : block_(block), options_(std::move(options)) {
  thread_ = std::thread([this] { Run(); });
}

HostWatch::~HostWatch() {
  ends_ = true;
  thread_.join();
}

auto HostWatch::Connect(Seconds timeout) -> Status {
  ASSIGN_OR_RETURN(store_, JobStore::Connect(options_.network.store, options_.network.prefix, timeout));
  // Only the host's first process polls the store, and by the time of its call has noticed that the store is silent.
  // The others call it once, when the host fails, so they get the short timeout.
  store_->BoundCalls(options_.speaks_for_host ? StoreTimeout : LastCallTimeout);
  if (joined_ == nullptr && options_.member) {
    joined_ = store_;
    static_cast<void>(store_->Join(*options_.member, options_.member_name));
  }
  return Success{};
}

auto HostWatch::Run() -> void {
  // If it fails, who speaks for the host seeks the store below.
  static_cast<void>(Connect(StoreTimeout));
  Clock::time_point listened;
  Clock::time_point beat;
  Clock::time_point failed_at;
  while (!ends_) {
    const auto now = Clock::now();
    LookAtProcesses();
    if (options_.speaks_for_host && !block_.FirstFailure()) {
      SeekStore(now);
    }
    if (HasStore() && options_.speaks_for_host && now - beat >= BeatEvery) {
      beat = now;
      Beat();
    }
    const auto failure = block_.FirstFailure();
    if (failure && failed_at == Clock::time_point{}) {
      failed_at = now;
    }
    if (HasStore() && failure) {
      Publish();
    }
    if (HasStore() && !failure && options_.speaks_for_host && now - listened >= ListenEvery) {
      listened = now;
      Listen();
    }
    if (failure && options_.after_grace && now - failed_at >= std::chrono::duration<double>(options_.grace.value)) {
      options_.after_grace();
      options_.after_grace = nullptr;
    }
    std::this_thread::sleep_for(LookEvery);
  }
  LookAtProcesses();
  // The others may not have heard yet of what happened just before the end.
  if (HasStore() && block_.FirstFailure()) {
    Publish();
  }
  if (HasStore() && options_.member) {
    static_cast<void>(store_->Part(*options_.member));
  }
}

auto HostWatch::LookAtProcesses() -> void {
  if (!options_.watches_processes) {
    return;
  }
  for (const int64_t rank : block_.GoneRanks()) {
    block_.MarkFailed(rank, ExitCode::Environment, -1);
  }
}

auto HostWatch::RanksHaveEnded() const -> bool {
  for (int64_t rank = block_.ranks().begin; rank < block_.ranks().end; ++rank) {
    if (block_.StateOf(rank) != RankState::Finished) {
      return false;
    }
  }
  return true;
}

auto HostWatch::SeekStore(Clock::time_point now) -> void {
  constexpr auto Shortest = std::chrono::seconds(1);
  constexpr auto Longest = std::chrono::seconds(10);
  // Ranks that feel what has happened to the host of the store have the first word, and name a rank: they wait half a
  // second longer than for ranks of their own host, and 2.5 s for the cause.
  constexpr Seconds FirstWord{3};
  if (HasStore()) {
    answered_ = now;
    seek_after_ = Shortest;
    return;
  }
  const Seconds waited{std::chrono::duration<double>(now - answered_).count()};
  const bool is_late = waited.value >= FirstWord.value + options_.timeout.value;
  if (now - sought_ < (is_late ? Shortest : seek_after_)) {
    return;
  }
  sought_ = now;
  const Status connected = Connect(LastCallTimeout);
  if (connected) {
    return;
  }
  const bool is_gone = connected.error().kind == ErrorKind::NobodyListens;
  // A store that accepts a connection and says nothing keeps it, and the thread that waits for its word.
  seek_after_ = is_gone ? Shortest : std::min<Clock::duration>(2 * seek_after_, Longest);
  if (!(is_late || (is_gone && waited.value >= FirstWord.value)) || RanksHaveEnded()) {
    return;
  }
  const std::string where =
      fmt::format("the store of the job, at {} on {},", options_.network.store.Text(), options_.network.store_host);
  block_.MarkFailedElsewhere(
      ExitCode::Environment,
      is_gone ? fmt::format("{} is gone: its process has ended, and hosts cannot agree on a save without it", where)
              : fmt::format("{} has not answered for {:.0f} s, and hosts cannot agree on a save without it", where,
                            waited.value));
}

auto HostWatch::Beat() -> void {
  const std::string text =
      fmt::format("{} {} {}", ++num_beats_, options_.network.host_name, block_.WhereIs(block_.ranks().begin));
  static_cast<void>(store_->Set(BeatKey(options_.host), text));
}

auto HostWatch::Publish() -> void {
  const auto failure = block_.FirstFailure();
  if (has_published_ || failure->rank == RankFailure::Elsewhere) {
    return;
  }
  has_published_ = true;
  const auto claims = store_->Add("failures", 1);
  if (claims && *claims == 1) {
    static_cast<void>(store_->Set(FailureKey, PackError({failure->code, block_.FailureReport(*failure)})));
  }
}

auto HostWatch::Listen() -> void {
  // What a rank failed of, and who has left without a word to anybody.
  for (const char* key : {FailureKey, JobStore::AbandonedKey}) {
    const auto text = store_->TryGet(key);
    if (!text) {
      return;
    }
    if (*text) {
      Error error = UnpackError(**text);
      if (key == JobStore::AbandonedKey) {
        // The store does not know where in the run that was.
        const int64_t first = block_.ranks().begin;
        error.message += fmt::format("; {} was {}", block_.NameOf(first), block_.WhereIs(first));
      }
      block_.MarkFailedElsewhere(error.code, error.message);
      return;
    }
  }
}

auto SilentHosts::Rest() const -> Seconds {
  constexpr double Least = 0.01;
  const double rest = std::chrono::duration<double>(end_ - Clock::now()).count();
  return Seconds{std::clamp(rest, Least, LastCallTimeout.value)};
}

SilentHosts::SilentHosts(const Network& network, int64_t num_hosts, Clock::time_point end)
    : num_hosts_(num_hosts), end_(end) {
  auto store = JobStore::Connect(network.store, network.prefix, Rest());
  if (!store) {
    trouble_ = fmt::format("the store of the job does not answer ({})", store.error().message);
    return;
  }
  store_ = *std::move(store);
  before_ = Beats();
}

auto SilentHosts::Beats() -> std::vector<std::string> {
  std::vector<std::string> beats;
  for (int64_t host = 0; host < num_hosts_ && trouble_.empty(); ++host) {
    store_->BoundCalls(Rest());
    const auto text = store_->TryGet(BeatKey(host));
    if (!text) {
      trouble_ = fmt::format("the store of the job does not answer ({})", text.error().message);
    }
    beats.push_back(text ? text->value_or("") : "");
  }
  return beats;
}

auto SilentHosts::Text() -> std::string {
  const std::vector<std::string> now = trouble_.empty() ? Beats() : std::vector<std::string>();
  if (!trouble_.empty()) {
    return trouble_;
  }
  std::vector<std::string> silent;
  for (size_t host = 0; host < now.size(); ++host) {
    const std::string& beat = now[host];
    if (beat == before_[host]) {
      const size_t name = beat.find(' ') + 1;
      silent.push_back(beat.empty()
                           ? fmt::format("host {}", host)
                           : fmt::format("host {} ({})", host, beat.substr(name, beat.find(' ', name) - name)));
    }
  }
  return silent.empty() ? "" : fmt::format("no sign of life from {}", fmt::join(silent, ", "));
}

}  // namespace shardc
