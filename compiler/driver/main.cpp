// shardc: checks recipes, makes plans, explains them, and hands them to shardc-run.

#include "compiler/driver/command.h"

auto main(int argc, char** argv) -> int { return static_cast<int>(shardc::RunCommandLine(argc, argv)); }
