// Paths that are given for a model of Hugging Face without having it: what they have, and the way to a model.
#pragma once

#include <string>

namespace shardc {

/// Returns "it is GGUF, which is not read; take ..." of a file, a folder, or a name that nothing has; empty if nothing
/// is known of it.
auto WayToModel(const std::string& path) -> std::string;

}  // namespace shardc
