#include "tests/hosts/job.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "compiler/base/process_stat.h"

namespace shardc {

auto FreePort() -> uint16_t {
  const int number = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  CHECK(bind(number, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
            getsockname(number, reinterpret_cast<sockaddr*>(&address), &size) == 0,
        "no port is free");
  close(number);
  return ntohs(address.sin_port);
}

Job::Job(const Shape& shape, const std::vector<std::vector<std::string>>& commands) {
  const std::string port = std::to_string(FreePort());
  const int64_t world = shape.hosts * shape.processes;
  for (int64_t rank = 0; rank < world; ++rank) {
    const ProcessOptions options{.environment = {"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port,
                                                 fmt::format("RANK={}", rank), fmt::format("WORLD_SIZE={}", world),
                                                 fmt::format("LOCAL_RANK={}", rank % shape.processes),
                                                 fmt::format("LOCAL_WORLD_SIZE={}", shape.processes)}};
    const size_t command = std::min(static_cast<size_t>(rank), commands.size() - 1);
    processes_.push_back(std::make_unique<Process>(commands[command], options));
  }
}

auto Job::Wait(const std::vector<size_t>& left_out) -> std::vector<Outcome> {
  std::vector<Outcome> outcomes(processes_.size());
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (std::find(left_out.begin(), left_out.end(), i) == left_out.end()) {
      outcomes[i] = processes_[i]->Wait();
    }
  }
  for (size_t i = 0; i < outcomes.size(); ++i) {
    // What process 0 has started, the store, lives until the others have ended.
    outcomes[i].all_gone = outcomes[i].all_gone || (outcomes[i].status >= 0 && processes_[i]->AwaitAllGone());
  }
  return outcomes;
}

auto StoreOf(const Process& process) -> std::optional<pid_t> {
  for (const pid_t child : process.Children()) {
    if (const auto stat = ReadProcessStat(child); stat && stat->name == "shardc-store") {
      return child;
    }
  }
  return std::nullopt;
}

auto ErrorLinesIn(const std::string& text) -> std::vector<std::string> {
  std::vector<std::string> lines;
  std::istringstream rest(text);
  for (std::string line; std::getline(rest, line);) {
    if (line.starts_with("error: ")) {
      lines.push_back(line);
    }
  }
  return lines;
}

auto OnlyErrorIn(const std::string& text) -> std::string {
  const std::vector<std::string> lines = ErrorLinesIn(text);
  EXPECT_EQ(lines.size(), 1U) << text;
  return lines.empty() ? "" : lines.front();
}

auto ErrorsOf(const std::vector<Outcome>& outcomes) -> std::string {
  std::string errors;
  for (const Outcome& outcome : outcomes) {
    errors += outcome.err;
  }
  return errors;
}

}  // namespace shardc
