// The adapters that a run begins with, beside what [adapter] makes: those of start.first's `adapter`, whose tensors
// become the seed's, or those of a seed that has some. Another rank or scale than the recipe's is an error.
#pragma once

#include <string>

#include "compiler/start/seed.h"

namespace shardc {

/// Returns the path that start.first gives as `adapter`; empty if it gives none.
auto AdapterPathOf(const Recipe& recipe) -> std::string;

/// Adds the tensors of the adapter that start.first names to the seed, or, if it is gone, what the run put on record
/// in `run_dir`; and compares the seed's adapters with those of the recipe.
/// Errors: seed-unreadable, start-first, seed-adapter.
auto AddAdapter(const Recipe& recipe, const std::string& run_dir, SeedCheckpoint& seed, Diagnostics& diags) -> void;

}  // namespace shardc
