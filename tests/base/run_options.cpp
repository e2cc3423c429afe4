// Options of a launch: each type of option reads what it takes, and what is handed over is what was given.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/base/run_options.h"

namespace shardc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(RunOptions, SoundTextsAreHandedOver) {
  RunOptionTexts texts;
  EXPECT_THAT(texts.Arguments(), IsEmpty());
  texts[RunOption::RunDir].value = "a run";
  texts[RunOption::Timeout].value = "60";
  texts[RunOption::Tune].value = "true";
  texts[RunOption::Graphs].is_flagged = true;
  EXPECT_TRUE(texts.Check().ok());
  EXPECT_THAT(texts.Arguments(), ElementsAre("--run-dir=a run", "--timeout=60", "--tune=true", "--graphs"));
}

TEST(RunOptions, UnsoundTextsAreNotHandedOver) {
  RunOptionTexts texts;
  texts[RunOption::Timeout].value = "soon";
  texts[RunOption::Trace].value = "trace.json";
  EXPECT_THAT(texts.Arguments(), ElementsAre("--trace=trace.json"));
  const Status checked = texts.Check();
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.error().code, ExitCode::Usage);
  EXPECT_THAT(checked.error().message, HasSubstr("--timeout: `soon` stands where seconds belong"));
}

TEST(RunOptions, FlagsAreNamedOnce) {
  for (const RunOptionRow& row : RunOptionRows) {
    EXPECT_TRUE(row.flag.starts_with("--")) << row.flag;
    EXPECT_EQ(row.metavar.empty(), row.takes == TakesValue::Never) << row.flag;
    EXPECT_EQ(std::ranges::count(RunOptionRows, row.flag, &RunOptionRow::flag), 1) << row.flag;
  }
}

TEST(RunOptions, CountIsAWholeNumberFromOneOn) {
  EXPECT_EQ(CountOption::Fault("1"), "");
  EXPECT_EQ(CountOption::Read("250"), 250);
  for (const char* text : {"", "0", "-1", "1.5", "7 ", "x", "1000000000001", "99999999999999999999"}) {
    EXPECT_THAT(CountOption::Fault(text), HasSubstr("stands where a whole number from 1 to 1000000000000 belongs"))
        << text;
  }
  EXPECT_EQ(CountOption::FactOf(0), "");
  EXPECT_EQ(CountOption::FactOf(3), "3");
}

}  // namespace
}  // namespace shardc
