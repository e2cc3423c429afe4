// A directory has one owner at a time: whoever made `lease.json` in it. No flock is needed, so it holds on file systems
// that hosts share; no hard links are needed either.
//
// 1. The owner makes the file with O_EXCL, and from then on rewrites a count in it every few seconds, through the
//    descriptor that it has: after a takeover that is the old file's, so nothing of the new owner's is touched.
// 2. A lease is stale at once where its process is known to be gone (same boot, same pid namespace). Any other lease
//    whose process is not known to run is watched: it is stale once it has stood still for `stale_after` by the clock
//    of the one who watches. A file that does not read is the lease of an unknown owner.
// 3. Takeover: a claim, named after the stale lease and made with O_EXCL, lets one taker in at a time. That one looks
//    again, renames the lease away, looks at what it has moved, and puts it back where that is another. Then 1.
// 4. What the owner does for good it does after Check: an owner that was stopped learns there that it lost the
//    directory.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/base/units.h"
#include "compiler/checkpoint/lease_record.h"
#include "compiler/checkpoint/lease_watch.h"
#include "compiler/checkpoint/manifest.h"

namespace shardc {

struct LeaseOptions {
  /// For messages: "checkpoint directory".
  std::string what = "directory";
  /// For messages: what to do beside waiting, "set `checkpoint.dir` to another folder".
  std::string remedy;
  std::string file_name = LeaseName;
  Seconds beat{5};
  /// False: the owner calls StartBeating itself, within stale_after. For an owner that forks first: a thread may hold a
  /// lock at that moment, which would stay locked in the forked process for ever.
  bool beats_at_once = true;
  Seconds stale_after{30};
  Seconds poll{0.1};
  /// Called between looks while the directory may be another's. An error ends Acquire.
  std::function<Status()> while_waiting;
  /// Told once what is waited for.
  std::function<void(const std::string&)> note;
  Fs* fs = &PosixFs();
};

class Lease {
 public:
  /// Makes the directory where it is missing, and becomes its owner; takes the place of an owner that is gone.
  /// Errors: ExitCode::Environment: another owns it (named, with the remedy), or the file cannot be made.
  static auto Acquire(const std::string& directory, const std::string& run_id, LeaseOptions options)
      -> ErrorOr<std::unique_ptr<Lease>>;
  Lease(const Lease&) = delete;
  auto operator=(const Lease&) -> Lease& = delete;
  /// Gives the directory back, if it is still this owner's. In a process forked from the owner: nothing.
  ~Lease();

  /// Starts the thread that rewrites the count. Once, unless the lease beats at once. Errors: ExitCode::Environment.
  auto StartBeating() -> Status;

  /// Checks that the directory is still this owner's. It looks for a file that is missing a few times more: a taker may
  /// be about to put it back.
  /// Errors: ExitCode::Environment, naming the new owner.
  auto Check() const -> Status;

  /// Returns 32 hex digits that no other lease has.
  auto token() const -> const std::string& { return record_.token; }

 private:
  Lease(std::string directory, const std::string& run_id, LeaseOptions options);

  /// Makes a file of this name. The descriptor is not open if the name exists.
  auto Create(const Descriptor& directory, const std::string& name) const -> ErrorOr<Descriptor>;
  /// Takes step 3 with one stale lease. The next look shows whether it has succeeded.
  auto TakeAway(const Descriptor& directory, const LeaseSighting& stale, LeaseWatch& claims) const -> Status;
  auto ClaimName(const LeaseSighting& stale) const -> std::string;
  auto Pause() const -> Status;
  auto Beat() -> void;
  /// Removes what takers that were killed left of leases and claims whose owners are gone.
  auto ClearRemains(const Descriptor& directory) const -> void;
  auto Release() -> void;

  std::string path_;
  LeaseOptions options_;
  LeaseRecord record_;
  Descriptor file_;
  /// The thread that keeps the lease, and what it needs. In one piece: a process forked from the owner has a copy
  /// without its thread, which can be neither used nor destroyed.
  struct Beater {
    std::mutex mutex;
    std::condition_variable ended;
    bool has_ended = false;
    std::thread thread;
  };
  std::unique_ptr<Beater> beater_;
};

}  // namespace shardc
