#include "runtime/checkpoint/another_run.h"

#include <algorithm>
#include <filesystem>

#include "compiler/base/absolute_path.h"

namespace shardc {

auto OptionsOfAnotherRun(const CheckpointReaderOptions& refused) -> std::string {
  const RunSettings& run = refused.plan->run;
  const bool is_in_run_dir = run.checkpoint_dir.empty();
  // The folder of the run is another one than the plan's if --run-dir names it.
  const auto run_dir = std::filesystem::path(AbsolutePath(refused.path)).parent_path().parent_path();
  const bool is_named = is_in_run_dir && run_dir != run.run_dir;
  const std::string folder =
      is_named ? run_dir.string() : (std::filesystem::path(run.run_dir).parent_path() / run.run_id).string();
  int number = 2;
  for (std::error_code unknown; std::filesystem::exists(fmt::format("{}-{}", folder, number), unknown);) {
    ++number;
  }
  return fmt::format("--set start.run_id={}-{}{}{}", run.run_id, number, is_in_run_dir ? "" : " --unset checkpoint.dir",
                     is_named ? fmt::format(" --run-dir '{}-{}'", folder, number) : "");
}

auto GoOnInAnotherRun(const Manifest& manifest, const CheckpointReaderOptions& options) -> std::string {
  const bool goes_on = manifest.optimizer == options.plan->run.optimizer;
  return fmt::format("start another run from {}: {} --set 'start.first={{ {} = \"{}\" }}'",
                     goes_on ? "this checkpoint, which keeps its moments" : "these parameters, with moments of 0",
                     OptionsOfAnotherRun(options), goes_on ? "continue" : "seed", AbsolutePath(options.path));
}

auto HasParametersOf(const Manifest& manifest, const Plan& plan) -> bool {
  return std::ssize(manifest.tensors) == plan.parameters.size() &&
         std::ranges::all_of(plan.parameters.begin(), plan.parameters.end(), [&](const Parameter& parameter) {
           const auto tensor = manifest.tensors.find(parameter.name);
           return tensor != manifest.tensors.end() && tensor->second.shape == parameter.shape;
         });
}

}  // namespace shardc
