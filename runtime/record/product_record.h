// gemm.json of a run directory: the algorithms by which a library multiplies matrices on a GPU, as it chose them for a
// card. A restart on the same card with the same version of the library multiplies as before, whatever the library
// would choose now.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"

namespace shardc {

constexpr const char* ProductRecordName = "gemm.json";

struct ProductRecord {
  /// The card and the version of the library, by name.
  std::map<std::string, std::string> chosen_for;
  /// Algorithms by product, each as the text that the library's wrapper makes of it.
  std::map<std::string, std::string> algorithms;
};

/// Returns the record; nothing if the run has none. Errors: the file is a link or no regular file, or does not read.
auto ReadProductRecord(const Descriptor& run_dir) -> ErrorOr<std::optional<ProductRecord>>;
auto PutProductRecord(const Descriptor& run_dir, const ProductRecord& record) -> Status;

/// Returns "card B, was A; cudnn 9.26.0, was 9.19.0"; empty if nothing differs.
auto VersionsDiffer(const std::map<std::string, std::string>& before, const std::map<std::string, std::string>& now)
    -> std::string;

}  // namespace shardc
