// Broken plans that are no change of the sample: ids out of range, numbers that are none, hostile sizes.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace shardc {

struct CodedCase {
  std::string what;
  std::string label;
  /// The findings.
  std::function<std::vector<std::string>()> judge;
};
auto CodedCases() -> std::vector<CodedCase>;
/// Plans of one op, which break a constraint of it.
auto OneOpCases() -> std::vector<CodedCase>;

}  // namespace shardc
