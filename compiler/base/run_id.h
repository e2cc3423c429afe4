// Which texts are run ids: a run id is the name of a directory, with characters that are safe in every path.
#pragma once

#include <string_view>

namespace shardc {

inline auto IsRunId(std::string_view id) -> bool {
  constexpr size_t MaxLength = 128;
  constexpr std::string_view Allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !id.empty() && id.size() <= MaxLength && id.find_first_not_of(Allowed) == std::string_view::npos &&
         id.front() != '.' && id.front() != '-';
}

}  // namespace shardc
