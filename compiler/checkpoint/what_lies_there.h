// Finds out and says, for a message, how a path that should name a checkpoint or a model leads elsewhere.
#pragma once

#include <string>

namespace shardc {

/// Returns the newest checkpoint in a directory that is a run's or has its checkpoints; an empty text if it is neither.
auto NewestBelow(const std::string& path) -> std::string;

/// Returns what lies at a path that is neither a checkpoint nor a model, and what to name in its place, as the end of a
/// sentence: "there is no such folder; the nearest is runs/tiny".
auto WhatLiesAt(const std::string& path) -> std::string;

}  // namespace shardc
