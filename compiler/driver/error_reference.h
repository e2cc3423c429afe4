// Long texts of diagnostics, for `shardc help` and docs/errors.md.
#pragma once

#include <string>
#include <string_view>

namespace shardc {

/// docs/errors.md.
auto ErrorReference() -> std::string;

/// One diagnostic; empty if there is none of that name.
auto DescribeDiagnostic(std::string_view name) -> std::string;

}  // namespace shardc
