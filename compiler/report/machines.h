// The page that is made from the rows of schemas/machines.def.
#pragma once

#include <string>

#include "compiler/base/machine_rows.h"

namespace shardc {

/// Returns the text of docs/machines.md.
auto MachineReference() -> std::string;

}  // namespace shardc
