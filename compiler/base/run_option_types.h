// The types of the rows of schemas/run_options.def. Each has the type of its values, the name of a value in help texts,
// and three functions:
//
//   Fault    returns what is wrong with the text of a command line; empty if it is sound
//   Read     returns the value of a sound text
//   FactOf   returns what the processes of a launch compare; empty if the option is not set
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/base/step_range.h"
#include "compiler/base/timeout.h"
#include "compiler/base/tune_request.h"

namespace shardc {

/// How an option takes a value: never, always, or after an equals sign.
enum class TakesValue : uint8_t { Never, Always, Maybe };

struct FileOption {
  using Value = std::string;
  static constexpr std::string_view Metavar = "FILE";
  static constexpr TakesValue Takes = TakesValue::Always;
  static auto Fault(std::string_view text) -> std::string { return text.empty() ? "the value is empty" : ""; }
  static auto Read(std::string_view text) -> Value { return Value(text); }
  static auto FactOf(const Value& value) -> std::string { return value; }
};

struct FolderOption : FileOption {
  static constexpr std::string_view Metavar = "DIR";
};

struct TimeoutOption {
  using Value = Seconds;
  static constexpr std::string_view Metavar = "SECONDS";
  static constexpr TakesValue Takes = TakesValue::Always;
  static auto Fault(std::string_view text) -> std::string { return ParseTimeout(text) ? "" : WrongTimeout(text); }
  static auto Read(std::string_view text) -> Value { return *ParseTimeout(text); }
  static auto FactOf(Value value) -> std::string { return fmt::format("{:g}", value.value); }
};

struct StepsOption {
  using Value = StepRange;
  static constexpr std::string_view Metavar = "A..B";
  static constexpr TakesValue Takes = TakesValue::Always;
  static auto Fault(std::string_view text) -> std::string {
    return ParseStepRange(text) ? "" : fmt::format("`{}` stands where steps from 1 on belong, such as 5..8", text);
  }
  static auto Read(std::string_view text) -> Value { return *ParseStepRange(text); }
  static auto FactOf(Value value) -> std::string { return fmt::format("{}..{}", value.first, value.last); }
};

struct TuneOption {
  using Value = TuneRequest;
  static constexpr std::string_view Metavar = "FILE";
  static constexpr TakesValue Takes = TakesValue::Maybe;
  static auto Fault(std::string_view) -> std::string { return ""; }
  static auto Read(std::string_view text) -> Value { return TuneRequestOf(text); }
  static auto FactOf(const Value& value) -> std::string { return value.measures ? "by measurement" : value.file; }
};

struct SwitchOption {
  using Value = bool;
  static constexpr std::string_view Metavar = "";
  static constexpr TakesValue Takes = TakesValue::Never;
  static auto Fault(std::string_view) -> std::string { return ""; }
  static auto Read(std::string_view) -> Value { return true; }
  static auto FactOf(Value value) -> std::string { return value ? "given" : ""; }
};

/// A number from 1 on; 0 if it is not given.
struct CountOption {
  using Value = int64_t;
  static constexpr std::string_view Metavar = "N";
  static constexpr TakesValue Takes = TakesValue::Always;
  static constexpr Value Most = 1'000'000'000'000;
  static auto Fault(std::string_view text) -> std::string {
    const Value value = Read(text);
    return value >= 1 && value <= Most
               ? ""
               : fmt::format("`{}` stands where a whole number from 1 to {} belongs", text, Most);
  }
  static auto Read(std::string_view text) -> Value {
    Value value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size() ? value : 0;
  }
  static auto FactOf(Value value) -> std::string { return value == 0 ? "" : fmt::format("{}", value); }
};

}  // namespace shardc
