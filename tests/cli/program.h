// Runs the built shardc as a user does.
#pragma once

#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace shardc {

struct Finished {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// Runs `program` with `arguments`, stdin empty; `environment` holds NAME=value texts added to an environment without
/// colour settings.
auto RunProgram(const std::string& program, const std::vector<std::string>& arguments,
                const std::vector<std::string>& environment = {}) -> Finished;

/// The built shardc.
auto Shardc() -> std::string;

/// Writes a file; returns its path.
auto WriteIn(const TemporaryFolder& folder, const std::string& name, const std::string& text) -> std::string;

/// A recipe that compiles.
auto SoundRecipe() -> std::string;

}  // namespace shardc
