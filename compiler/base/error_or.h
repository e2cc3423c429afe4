// ErrorOr<T>: a value or the reason why there is none. Crosses folder borders in place of exceptions.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "compiler/base/check.h"

namespace shardc {

/// Exit codes of every program of the project; the table stands in docs and in --help.
enum class ExitCode : int {
  Ok = 0,
  InternalFault = 1,
  Usage = 2,
  RecipeRejected = 3,
  DoesNotFit = 4,
  Checkpoint = 5,
  Environment = 6,
  Diverged = 7,
  Differs = 10,
  Preempted = 75,
};

/// Causes of errors that a caller acts on. Messages are for people: no code decides by their words.
enum class ErrorKind : uint8_t {
  None,
  /// No error yet: the rank that reports it is still waiting.
  Waits,
  /// Process 0 of the launch has printed it already.
  IsTold,
  /// Every process of the launch finds the same by itself.
  FoundByAll,
  /// Another program listens at the address.
  AddressInUse,
  /// No program listens at the address.
  NobodyListens,
};

struct Error {
  ExitCode code = ExitCode::InternalFault;
  /// Full text, ready to print after "error: ". Empty if diagnostics have been emitted already.
  std::string message;
  ErrorKind kind = ErrorKind::None;
};

struct Success {};

template <class T>
class [[nodiscard]] ErrorOr {
 public:
  ErrorOr(T value) : state_(std::move(value)) {}
  ErrorOr(Error error) : state_(std::move(error)) {}

  auto ok() const -> bool { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }
  auto error() const -> const Error& {
    CHECK(!ok(), "error() of a value");
    return std::get<Error>(state_);
  }
  auto operator*() & -> T& { return value(); }
  auto operator*() const& -> const T& { return value(); }
  auto operator*() && -> T&& { return std::move(value()); }
  auto operator->() -> T* { return &value(); }
  auto operator->() const -> const T* { return &value(); }
  auto value() -> T& {
    CHECK(ok(), "value of an error: {}", std::get<Error>(state_).message);
    return std::get<T>(state_);
  }
  auto value() const -> const T& {
    CHECK(ok(), "value of an error: {}", std::get<Error>(state_).message);
    return std::get<T>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

using Status = ErrorOr<Success>;

template <class... Args>
auto Fail(ExitCode code, fmt::format_string<Args...> format, Args&&... args) -> Error {
  return Error{code, fmt::format(format, std::forward<Args>(args)...)};
}

template <class... Args>
auto Fail(ExitCode code, ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) -> Error {
  return Error{code, fmt::format(format, std::forward<Args>(args)...), kind};
}

}  // namespace shardc

/// Returns the error of `expression` from the current function, if it has one.
#define RETURN_IF_ERROR(expression)                     \
  do {                                                  \
    if (const auto& status_ = (expression); !status_) { \
      return status_.error();                           \
    }                                                   \
  } while (false)

/// Returns Fail(...) from the current function if the condition holds:
/// `FAIL_IF(bytes > limit, ExitCode::Environment, "{} has {} bytes", path, bytes);`.
#define FAIL_IF(condition, ...)           \
  do {                                    \
    if (condition) {                      \
      return ::shardc::Fail(__VA_ARGS__); \
    }                                     \
  } while (false)

#define SHARDC_JOINED(a, b) a##b
#define SHARDC_NAME_AT(prefix, line) SHARDC_JOINED(prefix, line)

/// Declares or sets `target` by the value of an ErrorOr, or returns its error from the current function:
/// `ASSIGN_OR_RETURN(const auto names, ListDirectory(parent));`.
#define ASSIGN_OR_RETURN(target, ...)                       \
  auto SHARDC_NAME_AT(or_error_, __LINE__) = (__VA_ARGS__); \
  if (!SHARDC_NAME_AT(or_error_, __LINE__)) {               \
    return SHARDC_NAME_AT(or_error_, __LINE__).error();     \
  }                                                         \
  target = *std::move(SHARDC_NAME_AT(or_error_, __LINE__))
