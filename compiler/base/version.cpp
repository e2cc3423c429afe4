#include "compiler/base/version.h"

namespace shardc {

auto ProgramVersion() -> std::string_view { return SHARDC_VERSION; }

}  // namespace shardc
