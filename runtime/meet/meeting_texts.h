// What the processes of a launch tell each other when they meet, as texts for the store. That a process has another
// version of this program is one of the facts that they compare, so World and Introduction should keep their form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardc {

/// Facts that each process was started with, by name: "recipe", "shardc". They have to be the same in all processes.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// The launch that a process was started for.
struct World {
  int64_t num_processes = 0;
  int64_t local_num_processes = 0;
  std::string command;

  auto ToText() const -> std::string;
  static auto FromText(std::string_view text) -> World;
};

/// A process as it introduces itself to the others.
struct Introduction {
  std::string host;
  Facts facts;
  /// Why this process cannot start; code 0: it can.
  int64_t code = 0;
  std::string error;

  auto ToText() const -> std::string;
  static auto FromText(std::string_view text) -> Introduction;
};

/// How something went in a process; code 0: well.
struct ToldOutcome {
  int64_t code = 0;
  std::string error;
  /// The host that an error comes from.
  std::string host;

  auto ToText() const -> std::string;
  static auto FromText(std::string_view text) -> ToldOutcome;
};

}  // namespace shardc
