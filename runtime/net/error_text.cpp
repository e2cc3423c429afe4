#include "runtime/net/error_text.h"

#include <algorithm>
#include <charconv>

namespace shardc {

auto PackError(const Error& error) -> std::string {
  return fmt::format("{} {}", static_cast<int>(error.code), error.message);
}

auto UnpackError(std::string_view text) -> Error {
  int code = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), code);
  const bool is_packed = parsed.ec == std::errc() && code > 0 && parsed.ptr != text.data() + text.size();
  const size_t begin = is_packed ? static_cast<size_t>(parsed.ptr - text.data()) + 1 : 0;
  return {is_packed ? static_cast<ExitCode>(code) : ExitCode::Environment, std::string(text.substr(begin))};
}

auto CodeOf(const Status& status) -> int64_t {
  return status.ok() ? 0 : std::max<int64_t>(1, static_cast<int64_t>(status.error().code));
}

auto TextOf(const Status& status, size_t most) -> std::string {
  return status.ok() ? "" : status.error().message.substr(0, most);
}

}  // namespace shardc
