// shardc: checks recipes, makes plans, explains them, and hands them to shardc-run.

#include "compiler/base/standard_streams.h"
#include "compiler/driver/command.h"

auto main(int argc, char** argv) -> int {
  shardc::OpenStandardStreams();
  return static_cast<int>(shardc::RunCommandLine(argc, argv));
}
