#include "compiler/base/check.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "compiler/base/printable.h"

namespace shardc {

static thread_local std::string check_context;

auto SetCheckContext(std::string context) -> void { check_context = std::move(context); }

static int check_log = -1;

auto SetCheckLog(int descriptor) -> void { check_log = descriptor; }

auto CheckFailed(const char* file, int line, const char* condition, const std::string& message) -> void {
  std::string text = fmt::format("{}:{}: CHECK failed: {}{}{}\n", file, line, condition, message.empty() ? "" : ": ",
                                 Printable(message));
  if (!check_context.empty()) {
    text += fmt::format("while: {}\n", Printable(check_context));
  }
  text += "this is a bug in shardc\n";
  fmt::print(stderr, "{}", text);
  std::fflush(stderr);
  if (check_log >= 0) {
    [[maybe_unused]] const ssize_t written = write(check_log, text.data(), text.size());
  }
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  // libFuzzer keeps the input of a program that aborts, and loses that of one that ends.
  std::abort();
#else
  std::_Exit(1);
#endif
}

}  // namespace shardc
