#include "compiler/data/file_pattern.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>

namespace shardc {

constexpr const char* PatternCharacters = "*?[";

auto IsFilePattern(const std::string& text) -> bool { return text.find_first_of(PatternCharacters) != text.npos; }

auto FindFiles(const std::string& folder, const std::string& pattern) -> std::vector<std::string> {
  std::string escaped;
  for (const char c : folder) {
    escaped += (c == '*' || c == '?' || c == '[' || c == '\\') ? std::string{'\\', c} : std::string{c};
  }
  const std::filesystem::path path = std::filesystem::path(escaped) / pattern;
  glob_t found{};
  std::vector<std::string> paths;
  // The order of the library depends on the locale.
  if (glob(path.c_str(), GLOB_NOSORT, nullptr, &found) == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  for (std::string& one : paths) {
    one = std::filesystem::path(one).lexically_normal().string();
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace shardc
