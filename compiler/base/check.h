// CHECK: invariants of our own code. A failure is a bug here, never the user's fault: it prints the fact and where,
// and ends the process with exit code 1. User errors go through diag, machine failures through ErrorOr.
#pragma once

#include <fmt/format.h>

#include <string>

namespace shardc {

/// Prints `file:line: CHECK failed: condition: message`, the text set by SetCheckContext, and aborts with exit code 1.
[[noreturn]] auto CheckFailed(const char* file, int line, const char* condition, const std::string& message) -> void;

/// The same, with the message that `make_message` returns: it is made outside of the function that checks, whose code
/// stays short.
template <class Function>
[[noreturn, gnu::cold, gnu::noinline]] auto CheckFailedWith(const char* file, int line, const char* condition,
                                                            const Function& make_message) -> void {
  CheckFailed(file, line, condition, make_message());
}

/// What the process is doing (phase, op line, plan file), printed by a failing CHECK on this thread.
auto SetCheckContext(std::string context) -> void;

/// A file, open to append, that has what a failing CHECK prints besides; -1: none.
auto SetCheckLog(int descriptor) -> void;

}  // namespace shardc

#define CHECK(condition, ...)                                                                                   \
  do {                                                                                                          \
    if (!(condition)) [[unlikely]] {                                                                            \
      ::shardc::CheckFailedWith(__FILE__, __LINE__, #condition, [&] { return ::fmt::format("" __VA_ARGS__); }); \
    }                                                                                                           \
  } while (false)
