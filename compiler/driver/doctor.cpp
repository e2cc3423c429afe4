// shardc doctor [RECIPE]: what each host of a launch sees, by shardc-run, in the processes that a launcher starts.

#include <filesystem>
#include <memory>

#include "compiler/base/timeout.h"
#include "compiler/driver/output.h"
#include "compiler/driver/recipe_source.h"
#include "compiler/driver/runtime_program.h"
#include "compiler/passes/plan_header.h"

namespace shardc {

namespace {

struct DoctorOptions {
  RecipeOptions recipe;
  std::string run_dir;
  std::string timeout = "60";
  std::string format = "text";
};

}  // namespace

static auto Examine(const DoctorOptions& options) -> Status {
  RETURN_IF_ERROR(CheckTimeout(options.timeout));
  std::string run_dir = options.run_dir;
  if (run_dir.empty() && !options.recipe.path.empty()) {
    RecipeSource source(options.recipe);
    ASSIGN_OR_RETURN(const auto recipe, source.Printed(source.Load()));
    run_dir = RunDirOf(recipe);
  }
  std::vector<std::string> arguments{"-", "--doctor", "--format", options.format, "--timeout=" + options.timeout};
  if (!run_dir.empty()) {
    arguments.insert(arguments.end(), {"--run-dir", run_dir});
  }
  // The program for GPUs knows their libraries too. Where one is missing, the other program tells the rest.
  std::error_code unknown;
  if (std::filesystem::exists("/proc/driver/nvidia/version", unknown)) {
    static_cast<void>(BecomeRuntime(arguments, Device::Cuda));
  }
  return BecomeRuntime(arguments);
}

auto DeclareDoctor(CommandOptions& options) -> Action {
  const auto values = std::make_shared<DoctorOptions>();
  options.Positional("RECIPE", values->recipe.path, "a recipe, whose run directory is looked at", false);
  options.Text("--run-dir", values->run_dir, "DIR", "the run directory to look at instead");
  options.Text("--timeout", values->timeout, "SECONDS", "how long a process waits for the others; default: 60");
  options.Choice("--format", values->format, {"text", "json"}, "format of the result");
  return [values] { return ExitCodeOf(Examine(*values)); };
}

}  // namespace shardc
