// The files of a plan's data, opened and judged: those of each source, and those of each head's targets. What the
// compiler reports of them before a launch, and what is scanned, is what is found here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/data/splits.h"
#include "compiler/data/token_file.h"
#include "compiler/data/token_ids.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// How a list of targets is cut into samples, as splits.h cuts the tokens.
struct TargetCut {
  int64_t seq = 0;
  int64_t eval_tokens = 0;
};

/// A list of files that is read as one stream.
struct FileList {
  /// Of the source or of the head; empty for the one stream.
  std::string name;
  FilePurpose purpose;
  VocabRange range;
  std::vector<std::string> paths;
  /// Where the recipe names the files, for errors of scans: "from recipe line 9, data.tokens". Empty if the errors do
  /// not say where.
  std::string place = {};
  /// Unset of tokens.
  std::optional<TargetCut> cut = {};
  /// Files of data.eval: nothing of them is trained on.
  bool is_eval = false;
  /// Targets beside the source of this name.
  bool is_of_source = false;

  /// Returns "head image", "source answers": to whom targets belong.
  auto OwnerText() const -> std::string { return (is_of_source ? "source " : "head ") + name; }
};

/// Errors: ExitCode::RecipeRejected with a source that names no files, though its tokens are read.
auto CheckNamesFiles(const DataSource& data) -> Status;

using HeadTable = IdVector<HeadId, TargetHead>;

/// Returns the lists of the sources, those of the targets beside sources, those of the heads, and at last that of
/// data.eval. Data that are made have none.
auto ListFiles(const DataSource& data, const HeadTable& heads) -> std::vector<FileList>;

/// Returns how the files of a source, or of a head, are named by messages and keys.
auto TokenPurpose(const TokenSource& source) -> FilePurpose;
auto TokenRange(const DataSource& data) -> VocabRange;
auto TargetPurpose() -> FilePurpose;
/// Returns the list of a source's tokens.
auto TokenList(const DataSource& data, const TokenSource& source) -> FileList;
/// Returns the list of the targets beside a source.
auto TargetList(const DataSource& data, const TokenSource& source) -> FileList;
/// Returns the list of data.eval.
auto EvalList(const DataSource& data) -> FileList;
auto TargetRange(const TargetHead& head) -> VocabRange;
/// Returns the range of the targets that lie beside a source.
auto TargetRange(const DataSource& data) -> VocabRange;

/// What was found of a list.
struct OpenedList {
  /// Those that are not here.
  std::vector<std::string> missing;
  /// Faults of the others, each file once.
  std::vector<std::string> faults;
  /// Of the files that are here and sound.
  int64_t num_ids = 0;
  int64_t file_bytes = 0;

  auto is_whole() const -> bool { return missing.empty() && faults.empty(); }
};

/// Each file is open for as long as it is looked at. Never fails: a list may lie on another machine.
auto OpenList(const FileList& list, TokenFormat format) -> OpenedList;

/// Checks that the files of data.eval hold what they held when the plan was made. Errors: ExitCode::RecipeRejected.
auto CheckEvalTokens(const DataSource& data, int64_t num_ids) -> Status;

/// Checks that a head, or a source, has a target for each token. Errors: ExitCode::RecipeRejected.
auto CompareTargets(const std::string& owner, int64_t num_targets, int64_t num_tokens) -> Status;

/// Checks that the target files of a head, or of a source, have a target for the training samples. Errors:
/// ExitCode::RecipeRejected.
auto CheckHoldsTarget(const std::string& owner, int64_t num_targets) -> Status;
/// Checks that the target files of all heads together have one for the held-out samples. Errors: as CheckHoldsTarget.
auto CheckHoldsEvalTarget(int64_t num_targets) -> Status;

/// What the files of a source give a run, where all of them are here and sound.
struct SourceFacts {
  bool is_known = false;
  int64_t tokens = 0;
  Splits splits;
};

/// Returns what is known of each source of the plan, in its order. Errors: the first fault of files that are here.
auto LookAtData(const Plan& plan) -> ErrorOr<std::vector<SourceFacts>>;

}  // namespace shardc
