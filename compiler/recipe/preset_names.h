// What is said of a name that is no preset: which presets its writer may mean.
#pragma once

#include <string>
#include <string_view>

namespace shardc {

/// The help of a message about a preset that does not exist: the preset of that model and size, or else that no preset
/// has the size, with those that are near. A name may be one of Hugging Face or of another tool.
auto HelpOnPresets(std::string_view name) -> std::string;

}  // namespace shardc
