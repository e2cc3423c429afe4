// How far a check of a recipe looks at the files that hold its data.
#pragma once

#include <cstdint>

namespace shardc {

/// How the files that hold the data are looked at: not at all; those that are here; or these, and the others are told.
enum class FileChecks : uint8_t { None, Judge, TellMissing };

}  // namespace shardc
