// Looks at every id of a list of files, to find one that is outside of its vocabulary before a run trains on it, and
// takes the digest of all bytes on the way.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/data/data_files.h"

namespace shardc {

struct ScanOptions {
  /// Of this process, the caller among them.
  int64_t threads = 1;
  /// Called by the caller's thread several times a second, with the bytes that were looked at, and at the end.
  std::function<void(int64_t done, int64_t all)> tell = {};
  /// Asked by the caller's thread as often: an error ends the scan with this error.
  std::function<Status()> may_continue = {};
};

/// Results of a scan for one list of files.
struct ScannedList {
  /// Digest of all bytes of the files, as docs/checkpoint_format.md defines it. Names and folders do not count.
  std::string digest;
  /// Targets of the positions of all samples that are trained on, and of those that are held out. Of tokens 0.
  int64_t train_targets = 0;
  int64_t eval_targets = 0;
};

struct ScanResult {
  int64_t files = 0;
  int64_t bytes = 0;
  /// Results in the order of the lists.
  std::vector<ScannedList> lists;
};

/// The bytes that a scan of these lists reads, as their files are now. Files that are not here count as 0.
auto BytesToScan(const std::vector<FileList>& lists, TokenFormat format) -> int64_t;

/// Opens one file of the list, and looks at no id but at each entry of Megatron's index. Errors: what OpenTokenFile and
/// the index find, with the place of the list.
auto CheckFile(const FileList& list, const std::string& path, TokenFormat format) -> Status;
/// CheckFile of each file.
auto CheckFiles(const std::vector<FileList>& lists, TokenFormat format) -> Status;

/// Returns a text that identifies the contents of the files without reading them: by each file's size, inode, times of
/// the last write and of the last change, and type of ids. Hosts that share the files get the same text. Errors: those
/// of OpenTokenFile.
auto IdentityOf(const std::vector<FileList>& lists, TokenFormat format) -> ErrorOr<std::string>;

/// Opens all files of the lists and looks at each id. CheckFiles looks at what else they hold.
/// Errors: what OpenTokenFile finds; the first id, in the order of lists, files and ids, that is outside of its
///   vocabulary (ExitCode::RecipeRejected, with file, byte and token, whatever the number of threads); a file that
///   cannot be read (ExitCode::Environment); what `may_continue` says. Those of a file end with the place of its list.
auto ScanIds(const std::vector<FileList>& lists, TokenFormat format, const ScanOptions& options) -> ErrorOr<ScanResult>;

/// Checks, by the scan of the plan's lists, that each head has targets to train on, and that an evaluation has some.
/// Errors: those of CheckHoldsTarget and CheckHoldsEvalTarget.
auto CheckHasTargets(const Plan& plan, const ScanResult& scanned) -> Status;

}  // namespace shardc
