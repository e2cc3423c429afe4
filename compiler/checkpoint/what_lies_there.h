// Finds out and says, for a message, how a path that should name a checkpoint, a model or a run leads elsewhere.
#pragma once

#include <string>

namespace shardc {

/// Returns the newest checkpoint in a directory that is a run's or has its checkpoints; an empty text if it is neither.
/// With `or_broken` it may be one without a manifest.
auto NewestBelow(const std::string& path, bool or_broken = false) -> std::string;

/// Returns the directory of the run in whose `attempts` a path is, such as runs/tiny of
/// runs/tiny/attempts/0001/recipe.toml; empty if it is in none.
auto RunOfAttempt(const std::string& path) -> std::string;

/// Returns what to name in place of a path that does not exist, as the end of a sentence: "; the nearest name is
/// runs/tiny", or "; the runs there are runs/a and runs/b". Empty if nothing is alike.
auto NearestNote(const std::string& path) -> std::string;

/// Returns what a path leads to that is neither a checkpoint nor a model that can be read, and what to name in its
/// place, as the end of a sentence: "there is no such folder; the nearest name is runs/tiny".
auto WhatLiesAt(const std::string& path) -> std::string;

}  // namespace shardc
