// When Slurm will end a job, by what its commands print.
#include "runtime/launch/job_end.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace shardc {
namespace {

// As Slurm 22.05 prints it.
constexpr const char* Job =
    "JobId=7 JobName=train\n   UserId=root(0) GroupId=root(0) MCS_label=N/A\n"
    "   StartTime=2026-11-23T19:15:00 EndTime=2026-11-23T20:15:00 Deadline=N/A\n";

TEST(JobEnd, IsWhatScontrolPrints) {
  const char* zone = std::getenv("TZ");
  const std::string before = zone == nullptr ? "" : zone;
  setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_EQ(EndTimeIn(Job), 1795464900);
  setenv("TZ", "Asia/Tokyo", 1);
  tzset();
  EXPECT_EQ(EndTimeIn(Job), 1795464900 - 9 * 3600);
  zone == nullptr ? unsetenv("TZ") : setenv("TZ", before.c_str(), 1);
  tzset();
}

TEST(JobEnd, IsNoneWhereNobodyNamesIt) {
  for (const char* text : {"", "EndTime=Unknown Deadline=N/A\n", "EndTime=2026-11-23T20:15", "EndTime="}) {
    EXPECT_FALSE(EndTimeIn(text)) << text;
  }
}

TEST(JobEnd, OfTheVariableComesFirst) {
  static const std::string in_a_minute = std::to_string(std::time(nullptr) + 60);
  const auto end = EndOfJob([](const char* name) -> const char* {
    return std::string_view(name) == "SLURM_JOB_END_TIME" ? in_a_minute.c_str() : nullptr;
  });
  ASSERT_TRUE(end.ok() && end->has_value());
  const double seconds = std::chrono::duration<double>(**end - std::chrono::steady_clock::now()).count();
  // The variable has whole seconds, and the clock has not.
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_NEAR(seconds, std::stod(in_a_minute) - now, 0.1);
}

TEST(JobEnd, ThatIsOverIsNone) {
  const auto end = EndOfJob([](const char* name) -> const char* {
    static const std::string a_minute_ago = std::to_string(std::time(nullptr) - 60);
    return std::string_view(name) == "SLURM_JOB_END_TIME" ? a_minute_ago.c_str() : nullptr;
  });
  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_FALSE(end->has_value());
}

}  // namespace
}  // namespace shardc
