// How a process of a launch gets to the store in which all of them meet: process 0 opens it, and everybody takes a seat
// there, once.
#pragma once

#include <memory>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/timeout.h"
#include "compiler/base/units.h"
#include "compiler/cluster/place.h"
#include "runtime/net/store.h"
#include "runtime/net/store_server.h"

namespace shardc {

/// The seat of a process in the store of its launch.
struct Seat {
  Endpoint address;
  std::string prefix;
  LaunchPlace place;
  std::string host_name;
  Seconds timeout = DefaultTimeout;
  /// As Meeting::Options::longest_silence.
  std::optional<Seconds> longest_silence;
  JobStore::WhileWaiting while_waiting;
};

/// Returns the prefix of this launch's keys. It contains the restart count and the job token, so processes left over
/// from an earlier start and strangers see other keys.
auto PrefixOf(const LaunchPlace& place) -> std::string;

/// Opens the store, in process 0. Waits for the store of a launch that has just failed to go. Errors:
/// ExitCode::Environment with the program that holds the address, after seconds.
auto OpenStore(const Seat& seat) -> ErrorOr<StoreServer>;

/// Waits for the store, and takes the seat. Errors: somebody else has the seat, who gets the error too; or the launch
/// that is there goes on without this process.
auto EnterStore(const Seat& seat) -> ErrorOr<std::unique_ptr<JobStore>>;

/// Returns how many processes have taken their seats.
auto NumCome(JobStore& store) -> ErrorOr<int64_t>;

/// Returns true if all processes of the store's launch have met.
auto HaveMet(JobStore& store) -> ErrorOr<bool>;
/// Marks the processes as met. From now on no process takes a seat in the store.
auto CloseStore(JobStore& store) -> Status;

}  // namespace shardc
