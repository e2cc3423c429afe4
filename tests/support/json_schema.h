// Does a JSON value keep to a schema? As much of JSON Schema as this project writes: type, const, enum, required,
// properties, additionalProperties, items, oneOf and $ref to definitions. Another keyword is a fault of the schema.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace shardc {

/// The first place where `value` does not keep to `schema`, a part of `root`, and why; or "".
auto FaultOf(const nlohmann::json& value, const nlohmann::json& schema, const nlohmann::json& root,
             const std::string& place = "") -> std::string;

}  // namespace shardc
