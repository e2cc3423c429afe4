// Absolute form of a path, for messages and records.
#pragma once

#include <filesystem>
#include <string>

namespace shardc {

/// Returns the path from the root. In a folder that is gone it stays as it is.
inline auto AbsolutePath(const std::string& path) -> std::string {
  std::error_code unknown;
  const auto absolute = std::filesystem::absolute(path, unknown);
  return unknown ? path : absolute.lexically_normal().string();
}

}  // namespace shardc
