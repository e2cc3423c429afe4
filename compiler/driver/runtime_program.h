// shardc-run and its kind, the programs that carry plans out: found beside this one, as git finds its subcommands.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/devices.h"
#include "compiler/base/error_or.h"

namespace shardc {

/// Replaces this process by the program that runs plans for `device`: shardc-run, or one that runs those for CPUs and
/// for the device's family. Returns only if that fails (ExitCode::Environment).
auto BecomeRuntime(const std::vector<std::string>& arguments, Device device = Device::Cpu) -> Error;

/// A path under which shardc-run, and nobody else, reads this text.
auto TextInMemory(std::string_view text) -> ErrorOr<std::string>;

/// A path under which shardc-run reads the text of the file at `path`: that one, or where it is no regular file, and
/// what is piped in cannot be read again, one in memory.
auto PathForRuntime(const std::string& path, std::string_view text) -> ErrorOr<std::string>;

}  // namespace shardc
