// Names of files with *, ? and [...], as a shell has them: which files a pattern stands for is decided when a recipe is
// read, and the plan lists them.
#pragma once

#include <string>
#include <vector>

namespace shardc {

/// Returns true if the text has a character that patterns have.
auto IsFilePattern(const std::string& text) -> bool;

/// Returns the paths that glob(7) finds from a folder, in the order of their bytes. Characters of patterns in the
/// folder stand for themselves.
auto FindFiles(const std::string& folder, const std::string& pattern) -> std::vector<std::string>;

}  // namespace shardc
