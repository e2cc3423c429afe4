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

/// Where a process sits in the store of its launch.
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

/// Of the keys of a launch. A process that the launcher left over from the last time it started the job does not find
/// the keys of this time, and who does not know SHARDC_JOB_TOKEN finds none.
auto PrefixOf(const LaunchPlace& place) -> std::string;

/// Of process 0. Waits for the store of a launch that has just failed to go. Errors: ExitCode::Environment with who is
/// there already, after seconds.
auto OpenStore(const Seat& seat) -> ErrorOr<StoreServer>;

/// Waits for the store, and takes the seat. Errors: somebody else has the seat, who gets the error too; or the launch
/// that is there goes on without this process.
auto EnterStore(const Seat& seat) -> ErrorOr<std::unique_ptr<JobStore>>;

/// How many processes have taken their seats.
auto NumCome(JobStore& store) -> ErrorOr<int64_t>;

/// Whether the processes of the launch whose store this is have all met.
auto HaveMet(JobStore& store) -> ErrorOr<bool>;
/// They have. From now on nobody else takes a seat in the store.
auto CloseStore(JobStore& store) -> Status;

}  // namespace shardc
