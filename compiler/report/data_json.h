// What the report for programs has of the data.
#pragma once

#include <nlohmann/json.hpp>

#include "compiler/report/report.h"

namespace shardc {

/// Returns null if there is nothing to report of the data.
auto DataJson(const Report& report) -> nlohmann::ordered_json;

}  // namespace shardc
