#include "compiler/base/check.h"

#include <cstdio>
#include <cstdlib>

#include "compiler/base/printable.h"

namespace shardc {

static thread_local std::string check_context;

auto SetCheckContext(std::string context) -> void { check_context = std::move(context); }

auto CheckFailed(const char* file, int line, const char* condition, const std::string& message) -> void {
  fmt::print(stderr, "{}:{}: CHECK failed: {}{}{}\n", file, line, condition, message.empty() ? "" : ": ",
             Printable(message));
  if (!check_context.empty()) {
    fmt::print(stderr, "while: {}\n", Printable(check_context));
  }
  fmt::print(stderr, "this is a bug in shardc\n");
  std::fflush(stderr);
  std::_Exit(1);
}

}  // namespace shardc
