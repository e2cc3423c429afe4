// The exit codes in the help of the programs.

#include "compiler/base/exit_code_text.h"

#include <gtest/gtest.h>

namespace shardc {

TEST(ExitCodeTable, NamesEachCodeOnALineOfItsOwn) {
  EXPECT_EQ(ExitCodeTable(),
            "Exit codes:\n"
            "    0  ok\n"
            "    1  internal fault\n"
            "    2  usage\n"
            "    3  recipe or plan rejected\n"
            "    4  does not fit into memory or the format\n"
            "    5  checkpoint missing or damaged\n"
            "    6  environment (peers, files)\n"
            "    7  training diverged\n"
            "   10  what is compared differs\n"
            "   75  stopped by a signal; a run has saved\n"
            "128+n  killed by signal n");
}

}  // namespace shardc
