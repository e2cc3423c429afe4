// Looks at all token ids before a run trains: an id outside of the vocabulary would end the run at its sample, which
// may be hours later. The scan also takes the digest of all bytes. By it, hosts compare their files, and a restart
// compares them with those of the checkpoint. The run directory has a record of the files that were scanned, so that no
// later launch scans them again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"
#include "runtime/meet/meeting.h"
#include "runtime/metrics/run_log.h"
#include "runtime/record/run_directory.h"

namespace shardc {

/// Results of a scan of a plan's token files.
struct ScannedTokens {
  /// Identity of the files (IdentityOf), and the vocabularies that their ids were compared with. Empty: no scan.
  std::string files;
  /// Digests of the files, as in ManifestData.
  std::vector<std::string> digests;
  /// True if the record does not have it yet.
  bool is_new = false;

  auto ToText() const -> std::string;
  static auto FromText(std::string_view text) -> ScannedTokens;
};

/// Context of a scan: the record of earlier scans, and the ties to the launch.
struct TokenScan {
  /// Directory with the record; it need not exist yet.
  std::string run_dir;
  int64_t host = 0;
  /// Function that the scan calls several times a second; its error ends the scan.
  std::function<Status()> may_continue;
  const RunLog* log = nullptr;
  /// True if the launch trains, so that it needs targets to train on.
  bool trains = true;
};

/// Scans the files, unless this host's record or `known` has the result. Files with more bytes than data.scan allows
/// are not scanned, and the log reports it. Errors: those of TokenReader::Open, ScanIds, CheckHasTargets and
/// `may_continue`.
auto ScanTokens(const Plan& plan, const TokenScan& scan, const ScannedTokens& known = {}) -> ErrorOr<ScannedTokens>;

/// Calls ScanTokens in process 0, and in the first process of each host that has other files than process 0. Checks
/// that all hosts have the same digests. Collective over all processes. Errors: the same in all processes.
auto ScanTokensTogether(const Plan& plan, const TokenScan& scan, Meeting& meeting) -> ErrorOr<ScannedTokens>;

/// Returns the name of a host's record, a JSON object in the run directory: `scanned` has a line for each set of files,
/// the newest last.
auto ScanRecordName(int64_t host) -> std::string;

/// Adds a new result to the record. Requires: this launch owns the run directory.
auto RecordScan(const RunDirectory& directory, int64_t host, const ScannedTokens& scanned) -> Status;

}  // namespace shardc
