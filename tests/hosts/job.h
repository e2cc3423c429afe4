// A launch of several processes, as another launcher starts them: one for each rank, or one for each host. The hosts
// are this machine, as often as asked; tests/cluster has hosts with names and addresses of their own.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "tests/support/training.h"

namespace shardc {

struct Shape {
  int64_t hosts = 2;
  /// Of each host.
  int64_t processes = 1;
};

/// How much later than its bound anything may end on a busy machine.
constexpr double LoadAllowance = 5;

class Job {
 public:
  /// `commands`: of each process; the last one of all further ones too. The store is at a port that was free.
  Job(const Shape& shape, const std::vector<std::vector<std::string>>& commands);

  auto processes() const -> const std::vector<std::unique_ptr<Process>>& { return processes_; }
  auto at(size_t process) const -> Process& { return *processes_[process]; }
  /// Until each has ended. Those of `left_out` are not waited for.
  auto Wait(const std::vector<size_t>& left_out = {}) -> std::vector<Outcome>;

 private:
  std::vector<std::unique_ptr<Process>> processes_;
};

/// The server of the store that the process has started, as soon as it has its name.
auto StoreOf(const Process& process) -> std::optional<pid_t>;

/// A port of the loopback interface that nobody listens on.
auto FreePort() -> uint16_t;

/// The lines that begin with "error: ".
auto ErrorLinesIn(const std::string& text) -> std::vector<std::string>;
/// Expects that there is one such line.
auto OnlyErrorIn(const std::string& text) -> std::string;

/// All that the processes wrote to stderr.
auto ErrorsOf(const std::vector<Outcome>& outcomes) -> std::string;

}  // namespace shardc
