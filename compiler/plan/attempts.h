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

/// "0003".
auto AttemptName(int64_t number) -> std::string;
/// The number of what AttemptName makes; none of any other name.
auto AttemptNumber(std::string_view name) -> std::optional<int64_t>;
/// The numbers of a run directory's attempts, lowest first, whatever lies under their names. None where it has no such
/// folder. Errors: the folder is a link, or cannot be read.
auto ListAttempts(const Descriptor& run_dir) -> ErrorOr<std::vector<int64_t>>;

}  // namespace shardc
