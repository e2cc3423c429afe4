// The parameter of a further head, for the models that have it and for exports, which leave it out.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace shardc {

/// Returns the name of the matrix of a head of [[loss.head]].
inline auto HeadParameter(std::string_view head) -> std::string { return fmt::format("heads.{}.weight", head); }

}  // namespace shardc
