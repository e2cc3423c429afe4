#include "runtime/launch/host_watch.h"

#include <algorithm>
#include <vector>

#include "runtime/net/error_text.h"

namespace shardc {

static constexpr auto LookEvery = std::chrono::milliseconds(100);
static constexpr auto ListenEvery = std::chrono::milliseconds(500);
static constexpr auto BeatEvery = std::chrono::seconds(1);
/// For each call to the store: it delays nothing but the watch itself.
static constexpr Seconds StoreTimeout{5};
/// Where a process waits for the call before it ends: it should not end long after `--timeout`.
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

auto HostWatch::Run() -> void {
  auto store = JobStore::Connect(options_.network.store, options_.network.prefix, StoreTimeout);
  if (store) {
    store_ = *std::move(store);
    if (!options_.speaks_for_host) {
      // It calls the store once, if its host fails. Who speaks for the host has noticed by then that the store is
      // silent.
      store_->BoundCalls(LastCallTimeout);
    }
  }
  bool is_reachable = store_ != nullptr;
  if (is_reachable && options_.member) {
    is_reachable = store_->Join(*options_.member, options_.member_name).ok();
  }
  Clock::time_point listened;
  Clock::time_point beat;
  Clock::time_point failed_at;
  int64_t num_beats = 0;
  while (!ends_) {
    const auto now = Clock::now();
    if (options_.watches_processes) {
      for (const int64_t rank : block_.GoneRanks()) {
        block_.MarkFailed(rank, ExitCode::Environment, -1);
      }
    }
    if (is_reachable && options_.speaks_for_host && now - beat >= BeatEvery) {
      beat = now;
      const std::string text =
          fmt::format("{} {} {}", ++num_beats, options_.network.host_name, block_.WhereIs(block_.ranks().begin));
      is_reachable = store_->Set(BeatKey(options_.host), text).ok();
    }
    const auto failure = block_.FirstFailure();
    if (failure && failed_at == Clock::time_point{}) {
      failed_at = now;
    }
    is_reachable = is_reachable && (!failure || Publish());
    if (is_reachable && !failure && options_.speaks_for_host && now - listened >= ListenEvery) {
      listened = now;
      is_reachable = Listen();
    }
    if (failure && options_.after_grace && now - failed_at >= std::chrono::duration<double>(options_.grace.value)) {
      options_.after_grace();
      options_.after_grace = nullptr;
    }
    std::this_thread::sleep_for(LookEvery);
  }
  // The others may not have heard yet of what happened just before the end.
  if (is_reachable && block_.FirstFailure()) {
    is_reachable = Publish();
  }
  if (is_reachable && options_.member) {
    static_cast<void>(store_->Part(*options_.member));
  }
}

auto HostWatch::Publish() -> bool {
  const auto failure = block_.FirstFailure();
  if (has_published_ || failure->rank == RankFailure::Elsewhere) {
    return true;
  }
  has_published_ = true;
  const auto claims = store_->Add("failures", 1);
  if (!claims || *claims > 1) {
    return claims.ok();
  }
  return store_->Set(FailureKey, PackError({failure->code, block_.FailureReport(*failure)})).ok();
}

auto HostWatch::Listen() -> bool {
  // What a rank failed of, and who has left without a word to anybody.
  for (const char* key : {FailureKey, JobStore::AbandonedKey}) {
    const auto text = store_->TryGet(key);
    if (!text) {
      return false;
    }
    if (*text) {
      const Error error = UnpackError(**text);
      block_.MarkFailedElsewhere(error.code, error.message);
      break;
    }
  }
  return true;
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
