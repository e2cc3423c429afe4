// shardc-run: runs a plan on the ranks of this host.
#include "runtime/launch/command.h"

auto main(int argc, char** argv) -> int { return shardc::RunCommand(argc, argv); }
