// When Slurm will end the job that this process is part of.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "compiler/base/error_or.h"
#include "compiler/cluster/place.h"

namespace shardc {

/// Returns the end that `scontrol show job` prints ("EndTime=2026-11-23T20:15:00"), in seconds since the epoch by this
/// host's time zone; nothing if the text has no end ("EndTime=Unknown").
auto EndTimeIn(std::string_view text) -> std::optional<int64_t>;

/// Returns the end of the job, from SLURM_JOB_END_TIME or, before Slurm 23.02, from `scontrol show job`. Returns
/// nothing outside of a job, or if its end is unknown: then the launch has no end. Errors: the variable is not a
/// number. Cost: up to 10 s.
auto EndOfJob(const LookUp& look_up) -> ErrorOr<std::optional<std::chrono::steady_clock::time_point>>;

}  // namespace shardc
