// shardc docs --errors|--recipe|--machines|--man: the generated pages of docs/, and the manual page shardc.1.

#include <memory>

#include "compiler/driver/command.h"
#include "compiler/driver/command_table.h"
#include "compiler/driver/error_reference.h"
#include "compiler/driver/output.h"
#include "compiler/recipe/reference.h"
#include "compiler/report/machines.h"

namespace shardc {

auto DeclareDocs(CommandOptions& options) -> Action {
  struct Values {
    bool errors = false;
    bool recipe = false;
    bool machines = false;
    bool man = false;
  };
  const auto values = std::make_shared<Values>();
  options.Flag("--errors", values->errors, "docs/errors.md");
  options.Flag("--recipe", values->recipe, "docs/recipe.md");
  options.Flag("--machines", values->machines, "docs/machines.md");
  options.Flag("--man", values->man, "the manual page shardc.1");
  return [values] {
    if (values->errors + values->recipe + values->machines + values->man != 1) {
      return ReportError(Fail(ExitCode::Usage, "give one of --errors, --recipe, --machines and --man"));
    }
    return ExitCodeOf(WriteResult(values->errors   ? ErrorReference()
                                  : values->recipe ? RecipeReference()
                                  : values->man    ? ManualPage()
                                                   : MachineReference()));
  };
}

}  // namespace shardc
