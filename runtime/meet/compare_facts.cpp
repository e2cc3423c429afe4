#include "runtime/meet/compare_facts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace shardc {

namespace {

/// A fact in which processes differ from process 0.
struct Difference {
  std::string name;
  std::string in_first;
  std::string in_others;
  std::vector<size_t> processes;
};

}  // namespace

static auto Shortened(std::string_view value) -> std::string {
  constexpr size_t Most = 200;
  return value.empty()         ? "nothing"
         : value.size() > Most ? fmt::format("{}...", value.substr(0, Most))
                               : std::string(value);
}

static auto DifferencesOf(const std::vector<Introduction>& all) -> std::vector<Difference> {
  std::vector<Difference> differences;
  for (size_t i = 1; i < all.size(); ++i) {
    // One that has no plan says why, later.
    const size_t num_facts = std::min(all[0].facts.size(), all[i].facts.size());
    bool differs = false;
    for (size_t k = 0; k < num_facts; ++k) {
      const auto& [name, expected] = all[0].facts[k];
      const std::string& here = all[i].facts[k].second;
      // The last one, the plan, follows from the others.
      if (here == expected || (differs && k + 1 == num_facts)) {
        continue;
      }
      differs = true;
      const auto known = std::ranges::find_if(differences, [&name = name, &here](const Difference& other) {
        return other.name == name && other.in_others == here;
      });
      if (known == differences.end()) {
        differences.push_back({name, expected, here, {i}});
      } else {
        known->processes.push_back(i);
      }
    }
  }
  return differences;
}

/// Returns the processes as text: "process 2 (node1)", "4 processes, the first of which is process 2 (node1)".
static auto ProcessesOf(const std::vector<Introduction>& all, const std::vector<size_t>& processes) -> std::string {
  const std::string first = fmt::format("process {} ({})", processes.front(), all[processes.front()].host);
  return processes.size() == 1 ? first : fmt::format("{} processes, the first of which is {}", processes.size(), first);
}

auto CheckFactsAreEqual(const std::vector<Introduction>& all) -> Status {
  constexpr size_t MostShown = 3;
  std::vector<std::string> shown;
  for (const Difference& difference : DifferencesOf(all)) {
    if (shown.size() < MostShown) {
      shown.push_back(fmt::format("{}: {} in process 0 ({}), {} in {}", difference.name, Shortened(difference.in_first),
                                  all[0].host, Shortened(difference.in_others),
                                  ProcessesOf(all, difference.processes)));
    }
  }
  return shown.empty() ? Status(Success{})
                       : Fail(ExitCode::Environment, "processes of one launch differ; {}", fmt::join(shown, "; "));
}

}  // namespace shardc
