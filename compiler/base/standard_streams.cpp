#include "compiler/base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

namespace shardc {

auto OpenStandardStreams() -> void {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) < 0) {
      // The lowest number that is free is this one. Results that nobody gets are an error: writing to stdout fails.
      [[maybe_unused]] const int opened = open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

auto CloseAllBut(std::vector<int> kept) -> void {
  const int nowhere = open("/dev/null", O_RDWR);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (std::ranges::find(kept, stream) == kept.end()) {
      dup2(nowhere, stream);
    }
  }
  std::ranges::sort(kept);
  unsigned first = STDERR_FILENO + 1;
  for (const int number : kept) {
    const auto next = static_cast<unsigned>(number);
    if (next > first) {
      close_range(first, next - 1, 0);
    }
    first = std::max(first, next + 1);
  }
  close_range(first, ~0U, 0);
}

}  // namespace shardc
