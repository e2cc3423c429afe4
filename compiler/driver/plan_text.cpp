#include "compiler/driver/plan_text.h"

namespace shardc {

auto TextForRuntime(const Plan& plan, const std::string& path, size_t most_bytes) -> ErrorOr<std::string> {
  std::string text = PrintPlan(plan);
  FAIL_IF(
      text.size() > most_bytes, ExitCode::RecipeRejected,
      "the plan of {} has {} bytes of text; a plan that runs has {} at most\nfewer `layers` in [model], or `chunks` "
      "or heads in [loss], make it shorter",
      path, text.size(), most_bytes);
  return text;
}

}  // namespace shardc
