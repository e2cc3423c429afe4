// gemm.json of a run directory: the algorithms by which a library multiplies matrices on a GPU, as it chose them for a
// card, or as they were chosen by measurement there. A restart on the same card with the same version of the library
// multiplies as before, whatever the library or another measurement would choose now. An attempt keeps a copy.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"

namespace shardc {

constexpr const char* ProductRecordName = "gemm.json";

/// How long a product took when its algorithms were measured.
struct ProductTimes {
  /// Median times by the library's first answer and by the algorithm that was chosen.
  double first_us = 0;
  double chosen_us = 0;
  /// Algorithms that were measured.
  int64_t measured = 0;

  friend auto operator==(const ProductTimes&, const ProductTimes&) -> bool = default;
};

struct ProductRecord {
  /// The card and the version of the library, by name.
  std::map<std::string, std::string> chosen_for;
  /// Algorithms by product, each as the text that the library's wrapper makes of it.
  std::map<std::string, std::string> algorithms;
  /// Times by product, for those that were measured.
  std::map<std::string, ProductTimes> times;

  friend auto operator==(const ProductRecord&, const ProductRecord&) -> bool = default;
};

/// Returns the text of a file. Without times it has all that the bits of products depend on.
auto TextOf(const ProductRecord& record) -> std::string;
/// Returns the record that a text holds; nothing if no launch wrote the text.
auto ProductRecordIn(std::string_view text) -> std::optional<ProductRecord>;

/// Returns the record; nothing if the run has no such file. Errors: the file is a link or no regular file, or does not
/// read.
auto ReadProductRecord(const Descriptor& run_dir) -> ErrorOr<std::optional<ProductRecord>>;
/// Puts the record into a run directory or the folder of an attempt.
auto PutProductRecord(const Descriptor& folder, const ProductRecord& record) -> Status;
/// Returns the record in a file that a user named. Errors: the file cannot be read, or no launch wrote it.
auto ReadProductFile(const std::string& path) -> ErrorOr<ProductRecord>;

/// Returns "card B, was A; cudnn 9.26.0, was 9.19.0"; empty if nothing differs.
auto VersionsDiffer(const std::map<std::string, std::string>& before, const std::map<std::string, std::string>& now)
    -> std::string;

}  // namespace shardc
