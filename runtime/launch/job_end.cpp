#include "runtime/launch/job_end.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "runtime/metrics/run_log.h"

namespace shardc {

auto EndTimeIn(std::string_view text) -> std::optional<int64_t> {
  constexpr std::string_view Name = "EndTime=";
  const size_t at = text.find(Name);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string value(text.substr(at + Name.size(), text.find_first_of(" \n", at) - at - Name.size()));
  std::tm time{};
  const char* end = strptime(value.c_str(), "%Y-%m-%dT%H:%M:%S", &time);
  if (end == nullptr || *end != '\0') {
    return std::nullopt;
  }
  // Whether summer time holds then.
  time.tm_isdst = -1;
  return static_cast<int64_t>(std::mktime(&time));
}

static auto OutputOf(const std::string& command) -> std::string {
  std::string output;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    return output;
  }
  std::array<char, 4096> bytes{};
  while (const size_t count = std::fread(bytes.data(), 1, bytes.size(), pipe)) {
    output.append(bytes.data(), count);
  }
  pclose(pipe);
  return output;
}

auto EndOfJob(const LookUp& look_up) -> ErrorOr<std::optional<std::chrono::steady_clock::time_point>> {
  using Clock = std::chrono::steady_clock;
  ASSIGN_OR_RETURN(const auto told, FindEndTime(look_up));
  std::optional<int64_t> end = told;
  const char* job = look_up("SLURM_JOB_ID");
  const std::string id = job == nullptr ? "" : job;
  if (!end && !id.empty() && std::ranges::all_of(id, [](char c) { return c >= '0' && c <= '9'; })) {
    end = EndTimeIn(OutputOf("timeout 10 scontrol show job " + id + " 2>/dev/null"));
  }
  if (end && *end <= std::time(nullptr)) {
    // A launch that ended at once would be started again, for one step each time.
    RunLog().Print(fmt::format("warning: the job of Slurm ended {} s ago, by {}; the launch goes on without an end\n",
                               std::time(nullptr) - *end, told ? "SLURM_JOB_END_TIME" : "`scontrol show job`"));
    end.reset();
  }
  if (!end) {
    return std::optional<Clock::time_point>();
  }
  // Further away than a run lasts, and no overflow of the clock.
  constexpr int64_t Longest = int64_t{1} << 30;
  // By a clock that does not count whole seconds: std::time would place the end up to a second too late.
  const std::chrono::system_clock::time_point at{std::chrono::seconds(std::min(*end, std::time(nullptr) + Longest))};
  return std::optional(Clock::now() +
                       std::chrono::duration_cast<Clock::duration>(at - std::chrono::system_clock::now()));
}

}  // namespace shardc
