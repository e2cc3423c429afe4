// JSON that people and web pages can hold too.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace shardc {

/// Indented by two; an array of plain values is one line, and so is a short object of them. No `<`, which is \u003c:
/// the text can stand in a page of HTML as it is. Bytes that are no UTF-8 are replaced.
auto JsonLines(const nlohmann::ordered_json& json) -> std::string;

}  // namespace shardc
