#include "compiler/base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

namespace shardc {

auto OpenStandardStreams() -> void {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) < 0) {
      // The lowest number that is free is this one. Results that nobody gets are an error: writing to stdout fails.
      [[maybe_unused]] const int opened = open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

}  // namespace shardc
