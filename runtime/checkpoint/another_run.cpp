#include "runtime/checkpoint/another_run.h"

#include <algorithm>
#include <filesystem>

#include "compiler/base/absolute_path.h"

namespace shardc {

auto OptionsOfAnotherRun(const CheckpointReaderOptions& refused) -> std::string {
  const Plan& plan = *refused.plan;
  std::string options = fmt::format("--set start.run_id={}-2", plan.run.run_id);
  if (!plan.run.checkpoint_dir.empty()) {
    options += " --unset checkpoint.dir";
  }
  // The folder of the run is another one than the plan's if --run-dir names it.
  const auto run_dir = std::filesystem::path(AbsolutePath(refused.path)).parent_path().parent_path();
  if (plan.run.checkpoint_dir.empty() && run_dir != plan.run.run_dir) {
    options += fmt::format(" --run-dir '{}-2'", run_dir.string());
  }
  return options;
}

auto StartFromParameters(const CheckpointReaderOptions& options) -> std::string {
  return fmt::format(
      "start another run from these parameters, with moments of 0: {} --set 'start.first={{ seed = \"{}\" "
      "}}'",
      OptionsOfAnotherRun(options), AbsolutePath(options.path));
}

auto HasParametersOf(const Manifest& manifest, const Plan& plan) -> bool {
  return std::ssize(manifest.tensors) == plan.parameters.size() &&
         std::ranges::all_of(plan.parameters.begin(), plan.parameters.end(), [&](const Parameter& parameter) {
           const auto tensor = manifest.tensors.find(parameter.name);
           return tensor != manifest.tensors.end() && tensor->second.shape == parameter.shape;
         });
}

}  // namespace shardc
