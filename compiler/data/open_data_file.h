// Opens a file of data, whatever its format: is it there, and is it a regular file? What it holds is judged by those
// who know the format.
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"

namespace shardc {

/// The use of the files, in the words of messages.
struct FilePurpose {
  /// "token": begins "token file ...".
  std::string noun = "token";
  /// The recipe's key that names the files.
  std::string key = "data.tokens";
};

/// Opens a regular file for reading. Errors: ExitCode::RecipeRejected, naming the file and what was found.
auto OpenDataFile(const std::string& path, const FilePurpose& purpose) -> ErrorOr<Descriptor>;

/// Is nothing there under this name? Then another machine may have the file.
auto IsMissing(const std::string& path) -> bool;

/// Returns "source web: ", which a line about a source begins with; nothing for the one stream, which has no name.
auto OfSource(const std::string& name) -> std::string;

}  // namespace shardc
