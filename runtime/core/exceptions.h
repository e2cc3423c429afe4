// Exceptions of libraries and of memory that ran out: caught here, once for the whole runtime, and made errors that end
// a rank as any other failure does, with its number, op and recipe line.
#pragma once

#include <exception>
#include <utility>

#include "compiler/base/error_or.h"

namespace shardc {

/// An error that leaves a constructor; CatchExceptions gives it back as it is.
class ErrorThrown : public std::exception {
 public:
  explicit ErrorThrown(Error error) : error_(std::move(error)) {}
  auto error() const -> const Error& { return error_; }
  auto what() const noexcept -> const char* override { return error_.message.c_str(); }

 private:
  Error error_;
};

/// Requires: an exception is being handled. DoesNotFit where memory ran out, Environment where the system refused
/// something, else InternalFault; the message leaves out what LibTorch says of its own call stack.
auto ErrorOfException() -> Error;

/// Returns body(), or the error of the exception that it throws.
template <class Body>
auto CatchExceptions(Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (...) {
    return ErrorOfException();
  }
}

}  // namespace shardc
