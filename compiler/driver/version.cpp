// The version of the program, and of the formats that it reads and writes.

#include "compiler/driver/version.h"

#include <nlohmann/json.hpp>

#include "compiler/plan/plan.h"

namespace shardc {

static constexpr const char* Version = SHARDC_VERSION;

auto VersionText(bool as_json) -> std::string {
  if (!as_json) {
    return fmt::format("shardc {}\n", Version);
  }
  const nlohmann::ordered_json json{
      {"name", "shardc"}, {"version", Version}, {"plan_format", Plan::Version}, {"compiler", "g++ " __VERSION__}};
  return json.dump() + "\n";
}

}  // namespace shardc
