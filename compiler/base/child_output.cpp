#include "compiler/base/child_output.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace shardc {

auto ReadChild(const std::function<int(int pipe)>& body) -> ErrorOr<ChildOutput> {
  std::array<int, 2> ends{};
  FAIL_IF(pipe(ends.data()) != 0, ExitCode::Environment, "cannot make a pipe: {}", std::strerror(errno));
  const pid_t child = fork();
  if (child == 0) {
    _exit(body(ends[1]));
  }
  const int why = errno;
  close(ends[1]);
  ChildOutput output;
  std::array<char, 4096> part{};
  for (ssize_t count = 1; child > 0 && count > 0;) {
    count = read(ends[0], part.data(), part.size());
    output.text.append(part.data(), static_cast<size_t>(std::max<ssize_t>(count, 0)));
  }
  close(ends[0]);
  FAIL_IF(child < 0, ExitCode::Environment, "cannot start a process: {}", std::strerror(why));
  int status = 0;
  output.ended_well = waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return output;
}

}  // namespace shardc
