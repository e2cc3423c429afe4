// shardc: checks recipes, makes plans, explains them, and hands them to shardc-run.

#include <csignal>
#include <cstdlib>

#include "compiler/base/standard_streams.h"
#include "compiler/cluster/launcher_end.h"
#include "compiler/driver/command.h"

auto main(int argc, char** argv) -> int {
  shardc::OpenStandardStreams();
  // A file that reaches its limit (ulimit -f) is an error of the write, and no reason to die without a word.
  std::signal(SIGXFSZ, SIG_IGN);
  shardc::EndWithLauncher(std::getenv);
  return static_cast<int>(shardc::RunCommandLine(argc, argv));
}
