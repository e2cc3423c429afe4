#include "runtime/control/agree_on_versions.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "compiler/base/text/split.h"
#include "runtime/control/agree.h"

namespace shardc {

/// Parts of a machine that may differ: the others are a mistake of whoever installed them.
static constexpr std::array<std::string_view, 2> OfMachines{"card", "driver"};

/// Returns one line for each version.
static auto TextOf(const Versions& versions) -> std::string {
  std::string text;
  for (const auto& [name, version] : versions) {
    text += fmt::format("{} {}\n", name, version);
  }
  return text;
}

static auto VersionsIn(std::string_view text) -> Versions {
  Versions versions;
  for (const std::string_view line : SplitLines(text)) {
    const size_t space = std::min(line.find(' '), line.size());
    versions[std::string(line.substr(0, space))] = line.substr(std::min(space + 1, line.size()));
  }
  return versions;
}

/// Returns "cudnn 9.19.0 on rank 0, 9.26.0 here" for each version that differs, of machines or of all else.
static auto DifferencesOf(const Versions& of_rank_zero, const Versions& here, bool of_machines)
    -> std::vector<std::string> {
  const auto shown = [](const std::string& version) { return version.empty() ? "none" : version; };
  std::vector<std::string> differences;
  for (const VersionDifference& difference : DifferencesBetween(of_rank_zero, here)) {
    if ((std::ranges::find(OfMachines, difference.name) != OfMachines.end()) == of_machines) {
      differences.push_back(
          fmt::format("{} {} on rank 0, {} here", difference.name, shown(difference.before), shown(difference.now)));
    }
  }
  return differences;
}

auto AgreeOnVersions(RankControl& control, const Versions& versions) -> ErrorOr<std::string> {
  ASSIGN_OR_RETURN(const auto text, TextOfRankZero(control, TextOf(versions)));
  const Versions expected = VersionsIn(text);
  const auto judged = [&](bool of_machines) {
    const std::vector<std::string> differences = DifferencesOf(expected, versions, of_machines);
    return AgreeOnStatus(control, differences.empty() ? Status(Success{})
                                                      : Fail(ExitCode::Environment, "has other versions: {}",
                                                             fmt::join(differences, "; ")));
  };
  RETURN_IF_ERROR(judged(false));
  const Status machines = judged(true);
  // It fails if the reason is not that machines differ, but that a rank is gone.
  RETURN_IF_ERROR(control.Barrier(AxisSet::All()));
  return machines ? ErrorOr<std::string>("") : ErrorOr<std::string>(machines.error().message);
}

}  // namespace shardc
