// What a test does where the machine lacks a program that it needs: it is skipped, and says so. CI has to have the
// program, so there (CI=true) the test fails: a skip would go unnoticed for ever.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

namespace shardc {

/// Marks the running test; the test returns right after the call.
inline auto SkipWithout(std::string_view program) -> void {
  const char* const ci = std::getenv("CI");
  if (ci != nullptr && std::string_view(ci) == "true") {
    FAIL() << program << " is missing, or may not run here, and CI is \"true\": tools/dev setup --tests installs it";
  }
  GTEST_SKIP() << program << " is not installed, or may not run here";
}

}  // namespace shardc
