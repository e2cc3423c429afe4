// shardc schema: the JSON schema of recipes, for editors.

#include "compiler/driver/command.h"
#include "compiler/driver/output.h"
#include "compiler/recipe/reference.h"

namespace shardc {

auto DeclareSchema(CommandOptions&) -> Action {
  return [] { return ExitCodeOf(WriteResult(RecipeSchema())); };
}

}  // namespace shardc
