// JSON that people and web pages can hold too.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace shardc {

/// Returns JSON indented by two; an array of plain values is one line, and so is a short object of them. It has no `<`,
/// which is \u003c: the text can stand in a page of HTML as it is. Bytes that are not UTF-8 are replaced.
auto JsonLines(const nlohmann::ordered_json& json) -> std::string;

}  // namespace shardc
