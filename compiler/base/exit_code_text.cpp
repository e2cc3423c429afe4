// The words for exit codes. A code without words does not compile.

#include "compiler/base/exit_code_text.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "compiler/base/check.h"
#include "compiler/base/error_or.h"

namespace shardc {

static auto Meaning(ExitCode code) -> std::string_view {
  switch (code) {
    case ExitCode::Ok: return "ok";
    case ExitCode::InternalFault: return "internal fault";
    case ExitCode::Usage: return "usage";
    case ExitCode::RecipeRejected: return "recipe or plan rejected";
    case ExitCode::DoesNotFit: return "does not fit into memory or the format";
    case ExitCode::Checkpoint: return "checkpoint missing or damaged";
    case ExitCode::Environment: return "environment (peers, files)";
    case ExitCode::Diverged: return "training diverged";
    case ExitCode::Differs: return "what is compared differs";
    case ExitCode::Preempted: return "stopped by a signal; a run has saved";
  }
  CHECK(false, "exit code {}", static_cast<int>(code));
}

auto ExitCodeTexts() -> std::vector<std::pair<int, std::string_view>> {
  std::vector<std::pair<int, std::string_view>> texts;
  for (const ExitCode code :
       {ExitCode::Ok, ExitCode::InternalFault, ExitCode::Usage, ExitCode::RecipeRejected, ExitCode::DoesNotFit,
        ExitCode::Checkpoint, ExitCode::Environment, ExitCode::Diverged, ExitCode::Differs, ExitCode::Preempted}) {
    texts.emplace_back(static_cast<int>(code), Meaning(code));
  }
  return texts;
}

auto ExitCodeTable() -> std::string {
  std::string text = "Exit codes:\n";
  for (const auto& [code, meaning] : ExitCodeTexts()) {
    text += fmt::format("{:>5}  {}\n", code, meaning);
  }
  return text + "128+n  killed by signal n";
}

}  // namespace shardc
