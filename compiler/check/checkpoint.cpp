// Rules of [checkpoint].

#include "compiler/check/check_context.h"

namespace shardc {

auto CheckCheckpoint(CheckContext& context) -> void {
  const Located<std::string>& dir = context.recipe().checkpoint.dir;
  if (dir.is_set && context.IsSound(dir)) {
    CheckPath(context, dir.at, "dir", *dir, "directory");
  }
}

}  // namespace shardc
