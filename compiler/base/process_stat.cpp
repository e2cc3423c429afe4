#include "compiler/base/process_stat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

namespace shardc {

auto ReadProcessStat(int64_t pid) -> std::optional<ProcessStat> {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  // An iterator over the buffer would throw if the process ends between open and read.
  std::string text;
  std::getline(file, text, '\0');
  // The second field is the name in brackets, which may hold anything.
  const size_t name_begin = text.find('(') + 1;
  const size_t name_end = text.rfind(')');
  if (name_begin == 0 || name_end == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream rest(text.substr(name_end + 1));
  const std::vector<std::string> fields{std::istream_iterator<std::string>(rest), {}};
  // Field n of the manual page, which begins to count at 1 with the number of the process.
  const auto field = [&](size_t n) { return n - 3 < fields.size() ? fields[n - 3] : std::string("0"); };
  return ProcessStat{.name = text.substr(name_begin, name_end - name_begin),
                     .state = field(3).front(),
                     .parent = std::strtoll(field(4).c_str(), nullptr, 10),
                     .num_threads = std::strtoll(field(20).c_str(), nullptr, 10),
                     .flags = std::strtoull(field(9).c_str(), nullptr, 10),
                     .start = std::strtoll(field(22).c_str(), nullptr, 10)};
}

auto StartOfThisProcess() -> std::chrono::steady_clock::time_point {
  const auto now = std::chrono::steady_clock::now();
  const auto stat = ReadProcessStat(getpid());
  timespec since_boot{};
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  if (!stat || stat->start == 0 || ticks <= 0 || clock_gettime(CLOCK_BOOTTIME, &since_boot) != 0) {
    return now;
  }
  constexpr double NsPerSecond = 1e9;
  const double age = static_cast<double>(since_boot.tv_sec) + static_cast<double>(since_boot.tv_nsec) / NsPerSecond -
                     static_cast<double>(stat->start) / ticks;
  return now - std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                   std::chrono::duration<double>(std::max(0.0, age)));
}

}  // namespace shardc
