#include "compiler/base/byte_limit.h"

#include <array>
#include <charconv>
#include <system_error>

namespace shardc {

auto ParseByteLimit(std::string_view text) -> std::optional<int64_t> {
  struct Scale {
    std::string_view word;
    int shift;
  };
  constexpr std::array scales{Scale{"KiB", 10}, Scale{"MiB", 20}, Scale{"GiB", 30}, Scale{"TiB", 40}};
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (text.empty() && number == 0) {
    return 0;
  }
  if (text.starts_with(' ')) {
    text.remove_prefix(1);
  }
  for (const auto& [word, shift] : scales) {
    if (text == word && number <= MostByteLimit >> shift) {
      return number << shift;
    }
  }
  return std::nullopt;
}

}  // namespace shardc
