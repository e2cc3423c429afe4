// A question that a child answers, because this process must not do what the answer needs: call CUDA before a fork, or
// become another program.
#pragma once

#include <functional>
#include <string>

#include "compiler/base/error_or.h"

namespace shardc {

struct ChildOutput {
  std::string text;
  /// True if the child ended with exit code 0.
  bool ended_well = false;
};

/// Forks a child, which calls `body` with the descriptor of a pipe and ends with the code that it returns. Returns what
/// the child wrote to the pipe. Errors: Environment: no pipe, or no child.
auto ReadChild(const std::function<int(int pipe)>& body) -> ErrorOr<ChildOutput>;

}  // namespace shardc
