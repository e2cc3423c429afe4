// Before a run trains for the first time, all of its token ids are looked at: one that lies outside of the vocabulary
// would end the run when it comes to that sample, which may be hours later. The run directory has on record which files
// were looked at, by their fingerprint, so that no later launch does it again.
#pragma once

#include <functional>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"
#include "runtime/metrics/run_log.h"
#include "runtime/record/run_directory.h"

namespace shardc {

/// The record, a JSON object in the run directory: `scanned` has a line for each set of files, the newest last.
constexpr const char* ScanRecordName = "scanned.json";

/// Looks at all ids unless the record in `run_dir` says that it was done, or the files have more bytes than data.scan
/// allows. `may_continue`: asked several times a second; its error ends the scan. Returns what is to be put on record;
/// empty if nothing was looked at. Errors: those of TokenReader::Open, ScanIds and `may_continue`.
auto ScanTokens(const Plan& plan, const std::string& run_dir, const std::function<Status()>& may_continue,
                const RunLog& log) -> ErrorOr<std::string>;

/// Requires: this launch owns the run directory. An empty text is nothing to record.
auto RecordScan(const RunDirectory& directory, const std::string& scanned) -> Status;

}  // namespace shardc
