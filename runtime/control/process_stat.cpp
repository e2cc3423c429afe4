#include "runtime/control/process_stat.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace shardc {

auto ReadProcessStat(int64_t pid) -> std::optional<ProcessStat> {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  // The second field is the name in brackets, which may hold anything.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream rest(text.substr(name_end + 1));
  const std::vector<std::string> fields{std::istream_iterator<std::string>(rest), {}};
  // Field n of the manual page, which begins to count at 1 with the number of the process.
  const auto field = [&](size_t n) { return n - 3 < fields.size() ? fields[n - 3] : std::string("0"); };
  return ProcessStat{.state = field(3).front(),
                     .num_threads = std::strtoll(field(20).c_str(), nullptr, 10),
                     .flags = std::strtoull(field(9).c_str(), nullptr, 10),
                     .start = std::strtoll(field(22).c_str(), nullptr, 10)};
}

}  // namespace shardc
