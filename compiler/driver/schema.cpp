// shardc schema: the JSON schema of recipes, for editors; with --plan that of plans, for programs that read them.

#include <memory>

#include "compiler/driver/command.h"
#include "compiler/driver/output.h"
#include "compiler/plan/text.h"
#include "compiler/recipe/reference.h"

namespace shardc {

auto DeclareSchema(CommandOptions& options) -> Action {
  const auto of_plans = std::make_shared<bool>(false);
  options.Flag("--plan", *of_plans, "of what `shardc plan --emit=json` prints");
  return [of_plans] { return ExitCodeOf(WriteResult(*of_plans ? PlanSchema() : RecipeSchema())); };
}

}  // namespace shardc
