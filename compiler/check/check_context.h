// What the rules of all sections share: the recipe, where to report, and which values are known to be bad, so that
// nothing that depends on them is reported.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "compiler/check/file_checks.h"
#include "compiler/expr/expr.h"
#include "compiler/recipe/owned_keys.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

class CheckContext {
 public:
  CheckContext(const Recipe& recipe, Diagnostics& diagnostics) : recipe_(recipe), diagnostics_(diagnostics) {}

  auto recipe() const -> const Recipe& { return recipe_; }
  auto diags() -> Diagnostics& { return diagnostics_; }

  template <class T>
  auto MarkFaulty(const Located<T>& leaf) -> void {
    faulty_.insert(&leaf);
  }
  /// Have all of these a value without a fault? If not, the rule that asks waits, and is counted.
  template <class... Leaves>
  auto IsSound(const Leaves&... leaves) const -> bool {
    const bool are_sound = ((leaves.is_known && !faulty_.contains(&leaves)) && ...);
    num_waiting_ += are_sound ? 0 : 1;
    return are_sound;
  }
  /// Could the list of tables `path`, as "init.rule", be read?
  auto IsRead(std::string_view path) const -> bool { return !recipe_.unread_lists.contains(path); }
  auto num_waiting() const -> int { return num_waiting_; }

 private:
  const Recipe& recipe_;
  Diagnostics& diagnostics_;
  /// Addresses of leaves.
  std::set<const void*> faulty_;
  mutable int num_waiting_ = 0;
};

/// Ranges and words of single keys, by the rows of recipe_values.def. The rules of the sections come after it.
auto CheckValues(CheckContext& context) -> void;

/// Keys that the optimizer or the family lacks. A key that belongs to another one says nothing of this one.
auto CheckOwnedKeys(CheckContext& context, std::span<const OwnedKey> rows = OwnedKeys()) -> void;

/// One function a section with rules of its own, each in the file of the section's name.
auto CheckModel(CheckContext& context) -> void;
/// Called by CheckModel, after it has checked the sizes.
auto CheckRopeFrequency(CheckContext& context) -> void;
auto CheckMesh(CheckContext& context) -> void;
auto CheckShard(CheckContext& context) -> void;
auto CheckPrecision(CheckContext& context) -> void;
auto CheckAdapter(CheckContext& context) -> void;
auto CheckRecompute(CheckContext& context) -> void;
auto CheckInit(CheckContext& context) -> void;
auto CheckOptimizer(CheckContext& context) -> void;
auto CheckData(CheckContext& context) -> void;
/// Does [data] make its tokens, by `synthetic`?
auto MakesTokens(const CheckContext& context) -> bool;
/// Of CheckData.
auto CheckDataSources(CheckContext& context) -> void;
auto CheckDocuments(CheckContext& context) -> void;
auto CheckDataFiles(CheckContext& context, FileChecks checks) -> void;
auto CheckBatch(CheckContext& context) -> void;
auto CheckLoss(CheckContext& context) -> void;
auto CheckTrain(CheckContext& context) -> void;
auto CheckCheckpoint(CheckContext& context) -> void;
auto CheckStart(CheckContext& context) -> void;
auto CheckRun(CheckContext& context) -> void;

/// What single sections do not tell: how large the plan will be.
auto CheckPlanSize(CheckContext& context) -> void;

/// Numbers of elements stay below 2^56, so that their bytes and the sums of those fit 64 bits; operations and the
/// tokens of a run stay below 2^62.
constexpr double MaxElements = 0x1p56;
constexpr double MaxCount = 0x1p62;

/// Are the family and all sizes of [model] sound? Then there is a model whose parameters and ops can be looked at.
auto HasSoundModel(const CheckContext& context) -> bool;

/// "64MiB" for "64MB", which people write for it; any other text as it is.
auto InBinaryUnit(std::string text) -> std::string;

/// Reports byte-limit-invalid if the value of a key, which stands in the table without its section, is not a limit.
auto CheckByteLimit(CheckContext& context, std::string_view key, const Located<ByteSize>& leaf) -> void;

/// Reports unknown-choice for `word` of a key, which stands at `at`, with the words that the key knows.
auto ReportUnknownWord(CheckContext& context, const SourceRange& at, std::string_view key, std::string_view word,
                       const std::vector<std::string_view>& known) -> void;

/// Reports faults of an expression at their places inside the value `at`.
auto ReportExprErrors(CheckContext& context, const SourceRange& at, const std::vector<ExprError>& errors) -> void;
/// Reports those of a schedule at a step of the run.
auto ReportStepErrors(CheckContext& context, const SourceRange& at, const std::vector<ExprError>& errors, int64_t step)
    -> void;

/// Letters a to z, digits and _, beginning with a letter.
auto IsLowercaseName(std::string_view name) -> bool;

/// True if `path` can name a file; reports path-invalid at `at` else.
auto CheckPath(CheckContext& context, const SourceRange& at, std::string_view key, std::string_view path,
               std::string_view what) -> bool;

/// Reports path-invalid where a list of files is empty, or the first path of it that cannot name one.
auto CheckFiles(CheckContext& context, std::string_view key, const Located<std::vector<std::string>>& files) -> void;

}  // namespace shardc
