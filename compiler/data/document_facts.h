// Facts about the documents of a run before it: how many there are, how they fill samples, what is cut, and how many
// targets are left, of each step too. One pass over the tables of documents, and over files of targets, which are read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/data/packed_split.h"
#include "compiler/data/step_targets.h"

namespace shardc {

/// Facts about the documents that a source is trained on, of its first epoch, or of those of data.eval.
struct DocumentFacts {
  std::string source;
  bool is_eval = false;
  DocumentCounts counts;
  /// Documents without tokens.
  int64_t empty = 0;
  int64_t samples = 0;
  /// Places of the samples that have a token; the others are padding.
  int64_t tokens = 0;
  int64_t targets = 0;
  /// Pairs of a place and one that it attends to. Without documents a sample has seq (seq + 1) / 2.
  double attended_pairs = 0;
  /// Documents that have a target, and those of them of which no target is left.
  int64_t with_targets = 0;
  int64_t lost = 0;
};

/// Facts about the documents of a run.
struct RunDocuments {
  /// One for each source, and one for data.eval, if it names files; none if documents are nothing to the model.
  std::vector<DocumentFacts> sources;
  /// Targets of the steps of training. Unset if no step can be made of the sources.
  std::optional<StepTargets> per_step;
};

/// Returns true if a look at the documents takes no longer than a launch may look at its files: an index has their
/// borders, and there are no files of targets, or all files together have at most `data.scan` bytes.
auto IsQuickToLookAt(const Plan& plan) -> bool;

/// Returns the facts of each source of a plan that splits documents, then those of data.eval, if it names files;
/// nothing if documents are nothing to the model. Requires: files that are whole and sound. `threads`: those of
/// DocumentTable::Find. Errors: its errors, those of PackedSplit::Create, and of reading files of targets.
auto LookAtDocuments(const Plan& plan, int64_t threads) -> ErrorOr<RunDocuments>;

/// Checks that a source has targets, data.eval too, and that no more documents than `data.max_lost` lose all that they
/// have. Errors: ExitCode::RecipeRejected.
auto CheckKeepsTargets(const DataSource& data, const DocumentFacts& facts) -> Status;

/// Returns a line for each source of a plan that does not split documents, if the files say where they end: how many
/// there are. Requires and errors: as LookAtDocuments, without files of targets.
auto StreamDocumentsText(const Plan& plan, int64_t threads) -> ErrorOr<std::string>;

/// Returns a line for each: "documents: 12 documents of 3 to 90 tokens (mean 31.5); ...", and one on steps.
auto DocumentsText(const Plan& plan, const RunDocuments& documents) -> std::string;

/// Returns the share of places that are padding, and the share of attention that is left within documents, both of 1.
auto PaddingShare(const DataSource& data, const DocumentFacts& facts) -> double;
auto AttentionShare(const DataSource& data, const DocumentFacts& facts) -> double;

}  // namespace shardc
