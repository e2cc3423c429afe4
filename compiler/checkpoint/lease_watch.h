// Looks at a lease that may be another's, and judges from look to look whether its owner lives.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/base/units.h"
#include "compiler/checkpoint/lease_record.h"

namespace shardc {

/// A file, or something else, that bears a lease's name.
struct LeaseSighting {
  bool is_there = false;
  /// Differs after every change that the owner makes, and for another file.
  std::string fingerprint;
  /// Empty if it does not read as a whole lease.
  std::optional<LeaseRecord> record;
  /// Since the last change, by this host's clock, which may differ from the file server's.
  int64_t age_s = 0;

  auto token() const -> std::string { return record ? record->token : ""; }
  /// Returns "run tiny on host a (process 12, since 2026-11-23T00:10:07Z, last sign of life 2 s ago)".
  auto OwnerText() const -> std::string;
};

/// Looks at a name, without following a link or waiting on a FIFO. Errors: ExitCode::Environment.
auto LookAtLease(const Descriptor& directory, const std::string& name) -> ErrorOr<LeaseSighting>;

/// Held: the owner lives. Stale: it is gone, or has stood still for long enough. Undecided: look again.
enum class LeaseVerdict : uint8_t { Held, Stale, Undecided };

class LeaseWatch {
 public:
  /// Judges the next look. Requires: something is there.
  auto Judge(const LeaseSighting& seen, Seconds stale_after) -> LeaseVerdict;
  /// Returns how long what was judged last has stood still.
  auto watched() const -> Seconds {
    return Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count()};
  }

 private:
  std::string fingerprint_;
  std::string token_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace shardc
