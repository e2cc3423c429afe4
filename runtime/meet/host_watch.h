// What the processes of one host hear of the other hosts while ranks run, and tell them, by the store of the job: that
// a rank failed, and that the host is alive. One thread, which touches nothing that a rank waits for.
//
// Without the store nothing can be saved, so the job fails when it is lost. A store whose process has ended is known
// within seconds. One that is silent may be cut off for a while only: it is asked again and again, for as long as ranks
// wait for each other.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "compiler/base/timeout.h"
#include "runtime/comm/links.h"
#include "runtime/control/control_block.h"
#include "runtime/net/store.h"

namespace shardc {

class HostWatch {
 public:
  struct Options {
    Network network;
    int64_t host = 0;
    /// Listens to the other hosts and gives signs of life, for all processes of the host.
    bool speaks_for_host = true;
    /// Looks whether processes of ranks have ended; a launcher that forked them does so itself.
    bool watches_processes = false;
    /// Called once, `grace` after the first failure, wherever it was; null: never.
    std::function<void()> after_grace;
    /// The member of the job that this process is (JobStore::Join), and its name, if its connection of the meeting is
    /// closed.
    std::optional<int64_t> member;
    std::string member_name;
    Seconds grace{3};
    /// How long ranks wait for each other.
    Seconds timeout = DefaultTimeout;
  };

  /// Requires: `block` outlives the watch.
  HostWatch(ControlBlock& block, Options options);
  ~HostWatch();

 private:
  using Clock = std::chrono::steady_clock;

  auto Run() -> void;
  auto Connect(Seconds timeout) -> Status;
  auto HasStore() const -> bool { return store_ != nullptr && !store_->is_broken(); }
  /// Connects again, now and then. If that does not help, the job fails.
  auto SeekStore(Clock::time_point now) -> void;
  /// Looks for ranks on this host whose processes are gone.
  auto LookAtProcesses() -> void;
  auto Beat() -> void;
  auto Publish() -> void;
  auto Listen() -> void;
  auto RanksHaveEnded() const -> bool;

  ControlBlock& block_;
  Options options_;
  std::shared_ptr<JobStore> store_;
  /// The connection of the member. It stays open for as long as this process lives, also when the store is silent: by
  /// that the server sees that it does.
  std::shared_ptr<JobStore> joined_;
  /// When the store answered, and when it was last sought.
  Clock::time_point answered_ = Clock::now();
  Clock::time_point sought_;
  /// How long after `sought_` it is sought again.
  Clock::duration seek_after_ = std::chrono::seconds(1);
  int64_t num_beats_ = 0;
  std::atomic<bool> ends_ = false;
  bool has_published_ = false;
  std::thread thread_;
};

/// Finds hosts that give no sign of life, for the error of a rank that waited in vain. It looks twice, some seconds
/// apart, because the clocks of hosts differ: a host is silent if its heartbeat did not change between two reads.
class SilentHosts {
 public:
  using Clock = std::chrono::steady_clock;

  /// Takes the first look. Both looks are over at `end`, whether the store answers or not.
  SilentHosts(const Network& network, int64_t num_hosts, Clock::time_point end);
  /// Returns true if the store does not answer: a second look would show nothing new.
  auto has_no_answer() const -> bool { return !trouble_.empty(); }
  /// Takes the second look. Returns "no sign of life from host 1 (node-b)"; empty if all hosts gave one.
  auto Text() -> std::string;

 private:
  auto Beats() -> std::vector<std::string>;
  /// Returns the time until the end, which is more than nothing.
  auto Rest() const -> Seconds;

  int64_t num_hosts_;
  Clock::time_point end_;
  std::unique_ptr<JobStore> store_;
  std::string trouble_;
  std::vector<std::string> before_;
};

}  // namespace shardc
