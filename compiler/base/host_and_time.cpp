#include "compiler/base/host_and_time.h"

#include <unistd.h>

#include <array>
#include <ctime>

namespace shardc {

auto UtcNow() -> std::string {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

auto HostName() -> std::string {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace shardc
