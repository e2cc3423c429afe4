// Ids as they lie in files, as numbers of a vocabulary.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/data/token_file.h"

namespace shardc {

/// What the ids of a file may be.
struct VocabRange {
  /// They stay below it.
  int64_t vocab = 0;
  /// Its name in messages: "`model.vocab`".
  std::string vocab_name;
  /// 1 if the type's greatest number says that there is no id (-1 in a signed type); else 0.
  uint8_t none = 0;
};

/// Writes `count` ids to `ids`, -1 where there is none. Returns the index of the first id that is not in the range, or
/// -1 if all are.
auto WidenIds(const uint8_t* raw, int64_t count, IdType type, const VocabRange& range, int32_t* ids) -> int64_t;
/// Checks the ids as WidenIds does, without writing them.
auto FindBadId(const uint8_t* raw, int64_t count, IdType type, const VocabRange& range) -> int64_t;
/// Counts the ids, but for numbers that mean "no id". Requires: FindBadId returns -1.
auto CountIds(const uint8_t* raw, int64_t count, IdType type, const VocabRange& range) -> int64_t;

/// That the type of the file has a number left that says that there is no id, if the range has one.
/// Errors: ExitCode::RecipeRejected.
auto CheckNoneFits(const TokenFile& file, const std::string& noun, const VocabRange& range) -> Status;

/// That id `index` of the file, which lies at `raw`, is outside of the range.
/// Errors: ExitCode::RecipeRejected, always.
auto BadId(const TokenFile& file, const std::string& noun, TokenFormat format, int64_t index, const uint8_t* raw,
           const VocabRange& range) -> Error;

}  // namespace shardc
