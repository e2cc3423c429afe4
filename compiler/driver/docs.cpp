// shardc docs --errors|--recipe: the generated pages of docs/.

#include <memory>

#include "compiler/driver/command.h"
#include "compiler/driver/error_reference.h"
#include "compiler/driver/output.h"
#include "compiler/recipe/reference.h"

namespace shardc {

auto DeclareDocs(CommandOptions& options) -> Action {
  struct Values {
    bool errors = false;
    bool recipe = false;
  };
  const auto values = std::make_shared<Values>();
  options.Flag("--errors", values->errors, "docs/errors.md");
  options.Flag("--recipe", values->recipe, "docs/recipe.md");
  return [values] {
    if (values->errors == values->recipe) {
      return ReportError(Fail(ExitCode::Usage, "give one of --errors and --recipe"));
    }
    return ExitCodeOf(WriteResult(values->errors ? ErrorReference() : RecipeReference()));
  };
}

}  // namespace shardc
