// The command line of shardc-run, and of programs that run plans for other devices too.
#pragma once

namespace shardc {

/// Runs a plan on the ranks of this host, as the arguments of the program ask. Returns the program's exit code.
auto RunCommand(int argc, char** argv) -> int;

}  // namespace shardc
