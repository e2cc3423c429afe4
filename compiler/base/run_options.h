// The rows of schemas/run_options.def as data, and the texts that a command line gives them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/run_option_types.h"

namespace shardc {

enum class RunOption : uint8_t {
#define RUN_OPTION(Name, name, flag, Type, initial, help) Name,
#include "schemas/run_options.def"
};

struct RunOptionRow {
  RunOption option;
  /// "--run-dir".
  std::string_view flag;
  /// Name of a value in help texts; empty for a flag.
  std::string_view metavar;
  TakesValue takes;
  std::string_view help;
  /// Returns what is wrong with the text of a value; empty if it is sound.
  auto(*fault)(std::string_view text) -> std::string;
};

inline constexpr auto RunOptionRows = std::to_array<RunOptionRow>({
#define RUN_OPTION(Name, name, flag, Type, initial, help) \
  {RunOption::Name, flag, Type##Option::Metavar, Type##Option::Takes, help, Type##Option::Fault},
#include "schemas/run_options.def"
});

/// Text of one option on a command line.
struct RunOptionText {
  /// Text of the value; empty if the command line has no value.
  std::string value;
  /// True if a flag without a value is given.
  bool is_flagged = false;

  auto is_given() const -> bool { return is_flagged || !value.empty(); }
};

/// Texts of all options on a command line.
class RunOptionTexts {
 public:
  auto operator[](RunOption option) -> RunOptionText& { return texts_[static_cast<size_t>(option)]; }
  auto operator[](RunOption option) const -> const RunOptionText& { return texts_[static_cast<size_t>(option)]; }

  /// Returns success if all values are sound. Errors: ExitCode::Usage with the first one that is not.
  auto Check() const -> Status;
  /// Returns the options that are given, and whose values are sound, as arguments: "--timeout=60", "--graphs".
  auto Arguments() const -> std::vector<std::string>;

 private:
  std::array<RunOptionText, RunOptionRows.size()> texts_;
};

}  // namespace shardc
