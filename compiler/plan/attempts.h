// The attempts of a run: its directory has a folder `attempts` with one folder per launch that trains, 0001, 0002, ...
// The runtime writes them, and `plan --print-init` reads what the newest start from initial values left there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"

namespace shardc {

constexpr const char* AttemptsName = "attempts";
/// Files of an attempt: its record, and its recipe with each key.
constexpr const char* AttemptFileName = "attempt.json";
constexpr const char* ResolvedRecipeName = "resolved.toml";
constexpr int64_t MaxAttemptBytes = int64_t{64} << 20;

/// Returns "0003".
auto AttemptName(int64_t number) -> std::string;
/// Returns the number in a name that AttemptName makes; nothing for any other name.
auto AttemptNumber(std::string_view name) -> std::optional<int64_t>;
/// Returns the numbers of a run directory's attempts, lowest first, whatever their names stand for. The list is empty
/// if the directory has no such folder. Errors: the folder is a link, or cannot be read.
auto ListAttempts(const Descriptor& run_dir) -> ErrorOr<std::vector<int64_t>>;

}  // namespace shardc
