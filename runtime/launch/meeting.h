// How the processes of a launch over several hosts meet before any rank runs: in the store of process 0. They compare
// what they were started with, tell each other what keeps them from starting, and so start all or none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/timeout.h"
#include "compiler/base/units.h"
#include "compiler/cluster/place.h"
#include "runtime/comm/links.h"
#include "runtime/launch/meeting_texts.h"
#include "runtime/net/peer_group.h"
#include "runtime/net/store.h"
#include "runtime/net/store_server.h"

namespace shardc {

/// Whether other hosts of the launch cannot reach this one by the address: it is one that a host has for itself alone.
/// Not if process 0 is named by such an address too: all "hosts" are one machine then.
auto IsHiddenFromOthers(const LaunchPlace& place, const std::string& own_address) -> bool;

class Meeting {
 public:
  struct Options {
    /// In process 0: the store is not there yet.
    bool opens_store = true;
    /// Address or name of the interface by which other hosts reach this one; empty: that of the way to process 0.
    std::string own_address;
    /// How long a process waits for the others.
    Seconds timeout = DefaultTimeout;
    /// For how long no process may ask the store anything, until the store takes them for gone; none: a little longer
    /// than `timeout`.
    std::optional<Seconds> longest_silence = std::nullopt;
    /// What was asked for, which has to be the same in all processes.
    std::string command = "shardc run";
    /// Appended to the name of the host, where hosts are played by one machine.
    std::string host_suffix;
    /// JobStore::WhileWaiting: has this process been told to stop?
    std::function<Status()> interrupt;
  };

  /// Opens the store in process 0, and connects to it. Errors: ExitCode::Environment with the address.
  static auto Open(const LaunchPlace& place, const Options& options) -> ErrorOr<Meeting>;

  auto place() const -> const LaunchPlace& { return place_; }
  auto network() const -> const Network& { return network_; }
  auto host_name() const -> const std::string& { return host_name_; }
  /// "process 3 (node1)".
  auto OwnName() const -> std::string { return fmt::format("process {} ({})", place_.process, host_name_); }
  /// How long a process waits for the others.
  auto timeout() const -> Seconds { return options_.timeout; }
  auto is_first() const -> bool { return place_.process == 0; }
  auto is_first_of_host() const -> bool { return place_.local_process == 0; }

  /// Errors, the same in all processes: ExitCode::Environment with the facts that differ, or processes of what should
  /// be one host that are on several. `own`: an error of this process, which all have then.
  auto Compare(const Facts& facts, const Status& own) -> Status;
  /// Success if `mine` is in all processes; else, in all of them, the errors, each text once with the host that has it.
  auto Agree(const std::string& what, const Status& mine) -> Status;
  /// The last error is one that all processes have.
  auto error_is_shared() const -> bool { return error_is_shared_; }
  /// The texts of all processes, in their order.
  auto Gather(const std::string& what, const std::string& text) -> ErrorOr<std::vector<std::string>>;
  /// A group of `size` processes, of which this is member `index`.
  auto Connect(const std::string& name, int64_t index, int64_t size) -> ErrorOr<std::unique_ptr<PeerGroup>>;
  /// Called by process 0 again and again while it does what may take longer than the others wait: they wait on. Errors:
  /// that of another process, which has given up.
  auto Hold() -> Status;
  /// From now on nobody waits for longer.
  auto EndHold() -> Status;
  /// A text for all processes, or for those of this host, and the text that process `from` tells.
  auto Tell(const std::string& key, const std::string& text) -> Status { return store_->Set(key, text); }
  auto Hear(const std::string& key, int64_t from) -> ErrorOr<std::string>;

  /// Closes the connection to the store: afterwards this process has no thread beside its own. Its HostWatch connects
  /// within seconds, as the same member of the job.
  auto Disconnect() -> void;
  /// The end of this process's part, with what came of it. The store goes when the last process has left. If one died
  /// and cannot leave, the store stays a while, for the others to read.
  auto Close(const ErrorOr<ExitCode>& result) -> void;

 private:
  Meeting(LaunchPlace place, Options options) : place_(std::move(place)), options_(std::move(options)) {}
  auto CompareWorlds() -> Status;
  auto Shared(Error error) -> Error;
  /// Why processes may not find each other that have both come; empty after they have met.
  auto WhyNotMet() const -> std::string;
  auto Leave() -> void;
  /// Is there a connection, or can one be made?
  auto Connected() -> bool;
  auto TellOthers(const Error& error) -> void;
  auto CheckPlaces(const std::vector<Introduction>& all) const -> Status;

  LaunchPlace place_;
  Options options_;
  Network network_;
  std::string host_name_;
  /// Of all processes, once they have met.
  std::shared_ptr<std::vector<std::string>> host_names_ = std::make_shared<std::vector<std::string>>();
  std::optional<StoreServer> server_;
  std::unique_ptr<JobStore> store_;
  std::optional<std::chrono::steady_clock::time_point> held_at_;
  int64_t num_holds_ = 0;
  bool error_is_shared_ = false;
  /// No process asks the store anything more.
  bool all_have_left_ = false;
};

}  // namespace shardc
