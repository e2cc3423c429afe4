// Before a run trains, all of its token ids are looked at: one that lies outside of the vocabulary would end the run
// when it comes to that sample, which may be hours later. The digest of all bytes is taken on the way. By it the hosts
// of a launch compare their files, and a restart compares them with those of the checkpoint. The run directory has on
// record which files were looked at, so that no later launch reads them for it again.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"
#include "runtime/launch/meeting.h"
#include "runtime/metrics/run_log.h"
#include "runtime/record/run_directory.h"

namespace shardc {

/// What was found of the token files of a plan.
struct ScannedTokens {
  /// Which files they are, by IdentityOf, and what their ids were compared with; empty if nobody looked at them.
  std::string files;
  /// ManifestData::digests.
  std::vector<std::string> digests;
  /// The record does not have it yet.
  bool is_new = false;

  auto ToText() const -> std::string;
  static auto FromText(std::string_view text) -> ScannedTokens;
};

/// Where a launch looks for what is known of its files, and what it does besides.
struct TokenScan {
  /// Has the record; it need not exist yet.
  std::string run_dir;
  int64_t host = 0;
  /// Asked several times a second; its error ends the scan.
  std::function<Status()> may_continue;
  const RunLog* log = nullptr;
};

/// Looks at all ids unless this host's record or `known` says what that gives, or the files have more bytes than
/// data.scan allows, which the log says. Errors: those of TokenReader::Open, ScanIds, CheckHasTargets and
/// `may_continue`.
auto ScanTokens(const Plan& plan, const TokenScan& scan, const ScannedTokens& known = {}) -> ErrorOr<ScannedTokens>;

/// ScanTokens in process 0, and on each other host that does not see the files of process 0; the digests have to be the
/// same on all hosts. Collective over all processes. Errors: the same in all processes.
auto ScanTokensTogether(const Plan& plan, const TokenScan& scan, Meeting& meeting) -> ErrorOr<ScannedTokens>;

/// The record of a host, a JSON object in the run directory: `scanned` has a line for each set of files, the newest
/// last.
auto ScanRecordName(int64_t host) -> std::string;

/// Requires: this launch owns the run directory. Nothing is recorded that is not new.
auto RecordScan(const RunDirectory& directory, int64_t host, const ScannedTokens& scanned) -> Status;

}  // namespace shardc
