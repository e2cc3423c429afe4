// shardc docs --errors|--recipe|--machines: the generated pages of docs/.

#include <memory>

#include "compiler/driver/command.h"
#include "compiler/driver/error_reference.h"
#include "compiler/driver/output.h"
#include "compiler/explain/machines.h"
#include "compiler/recipe/reference.h"

namespace shardc {

auto DeclareDocs(CommandOptions& options) -> Action {
  struct Values {
    bool errors = false;
    bool recipe = false;
    bool machines = false;
  };
  const auto values = std::make_shared<Values>();
  options.Flag("--errors", values->errors, "docs/errors.md");
  options.Flag("--recipe", values->recipe, "docs/recipe.md");
  options.Flag("--machines", values->machines, "docs/machines.md");
  return [values] {
    if (values->errors + values->recipe + values->machines != 1) {
      return ReportError(Fail(ExitCode::Usage, "give one of --errors, --recipe and --machines"));
    }
    return ExitCodeOf(WriteResult(values->errors   ? ErrorReference()
                                  : values->recipe ? RecipeReference()
                                                   : MachineReference()));
  };
}

}  // namespace shardc
