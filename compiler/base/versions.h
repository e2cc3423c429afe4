// Versions of programs, libraries and machines, by name.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace shardc {

using Versions = std::map<std::string, std::string>;

/// A version that differs between two sets; empty where one of them does not have it.
struct VersionDifference {
  std::string name;
  std::string before;
  std::string now;
};

/// Returns the versions that differ, in the order of their names.
inline auto DifferencesBetween(const Versions& before, const Versions& now) -> std::vector<VersionDifference> {
  Versions names = before;
  names.insert(now.begin(), now.end());
  const auto of = [](const Versions& versions, const std::string& name) {
    const auto found = versions.find(name);
    return found == versions.end() ? std::string() : found->second;
  };
  std::vector<VersionDifference> differences;
  for (const auto& [name, version] : names) {
    if (of(before, name) != of(now, name)) {
      differences.push_back({.name = name, .before = of(before, name), .now = of(now, name)});
    }
  }
  return differences;
}

}  // namespace shardc
