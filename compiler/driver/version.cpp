// The version of the program, and of the formats that it reads and writes.

#include "compiler/driver/version.h"

#include <fmt/format.h>

#include "compiler/base/text/json_text.h"
#include "compiler/base/version.h"
#include "compiler/plan/plan.h"

namespace shardc {

auto VersionText(bool as_json) -> std::string {
  if (!as_json) {
    return fmt::format("shardc {}\n", ProgramVersion());
  }
  JsonObject version;
  version.Text("name", "shardc").Text("version", ProgramVersion()).Integer("plan_format", Plan::Version);
  return version.Text("compiler", fmt::format("g++ {}", __VERSION__)).text() + "\n";
}

}  // namespace shardc
