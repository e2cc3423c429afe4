// The version of the program, and of the formats that it reads and writes.

#include "compiler/driver/version.h"

#include <fmt/format.h>

#include "compiler/base/version.h"
#include "compiler/plan/plan.h"

namespace shardc {

auto VersionText(bool as_json) -> std::string {
  if (!as_json) {
    return fmt::format("shardc {}\n", ProgramVersion());
  }
  return fmt::format(R"({{"name":"shardc","version":"{}","plan_format":{},"compiler":"g++ {}"}})"
                     "\n",
                     ProgramVersion(), Plan::Version, __VERSION__);
}

}  // namespace shardc
