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
#include "runtime/meet/meeting_texts.h"
#include "runtime/net/peer_group.h"
#include "runtime/net/store.h"
#include "runtime/net/store_server.h"

namespace shardc {

/// Returns true if other hosts of the launch cannot reach this one by the address, because it is valid on one host
/// only. Returns false if process 0 has such an address too: all "hosts" are one machine then.
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
    /// The command that was given, which has to be the same in all processes.
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
  /// Returns the name of this process in messages: "process 3 (node1)".
  auto OwnName() const -> std::string { return fmt::format("process {} ({})", place_.process, host_name_); }
  /// Returns how long a process waits for the others.
  auto timeout() const -> Seconds { return options_.timeout; }
  auto is_first() const -> bool { return place_.process == 0; }
  auto is_first_of_host() const -> bool { return place_.local_process == 0; }

  /// Compares the facts of all processes. `own`: an error of this process, which all processes then return. Errors, the
  /// same in all processes: ExitCode::Environment with the facts that differ, or with processes that should share a
  /// host and do not.
  auto Compare(const Facts& facts, const Status& own) -> Status;
  /// Returns success if `mine` is a success in all processes; else, in all of them, the errors, each text once with the
  /// host that has it.
  auto Agree(const std::string& what, const Status& mine) -> Status;
  /// Returns true if the last error is one that all processes have.
  auto error_is_shared() const -> bool { return error_is_shared_; }
  /// Gathers the texts of all processes, in their order.
  auto Gather(const std::string& what, const std::string& text) -> ErrorOr<std::vector<std::string>>;
  /// Connects a group of `size` processes, of which this is member `index`.
  auto Connect(const std::string& name, int64_t index, int64_t size) -> ErrorOr<std::unique_ptr<PeerGroup>>;
  /// Makes the other processes wait on. Called by a process again and again while its work may take longer than they
  /// wait. Errors: that of another process, which has given up.
  auto Hold() -> Status;
  /// Ends the longer waits of the other processes, as far as this process caused them.
  auto EndHold() -> Status;
  /// Stores a text for all processes, or for those of this host. Hear waits for the text that process `from` stores.
  auto Tell(const std::string& key, const std::string& text) -> Status { return store_->Set(key, text); }
  auto Hear(const std::string& key, int64_t from) -> ErrorOr<std::string>;

  /// Closes the connection to the store: afterwards this process has no thread beside its own. Its HostWatch connects
  /// within seconds, as the same member of the job.
  auto Disconnect() -> void;
  /// Ends the part of this process, with its result. The store goes when the last process has left. If one died and
  /// cannot leave, the store stays a while, for the others to read.
  auto Close(const ErrorOr<ExitCode>& result) -> void;

 private:
  Meeting(LaunchPlace place, Options options) : place_(std::move(place)), options_(std::move(options)) {}
  auto CompareWorlds() -> Status;
  auto Shared(Error error) -> Error;
  /// Returns why two processes that have both come may not find each other; empty after they have met.
  auto WhyNotMet() const -> std::string;
  auto Leave() -> void;
  /// Returns true if there is a connection, or if one can be made.
  auto Connected() -> bool;
  auto TellOthers(const Error& error) -> void;
  auto CheckPlaces(const std::vector<Introduction>& all) const -> Status;

  LaunchPlace place_;
  Options options_;
  Network network_;
  std::string host_name_;
  /// Host names of all processes, once they have met.
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
