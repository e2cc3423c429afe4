// shardc-run: runs a plan on the ranks of this host.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/exit_code_text.h"
#include "compiler/base/files.h"
#include "compiler/base/printable.h"
#include "compiler/base/standard_streams.h"
#include "compiler/ops/read_plan.h"
#include "compiler/plan/text.h"
#include "runtime/core/runner.h"
#include "runtime/kernels/torch_version.h"
#include "runtime/launch/environment.h"
#include "runtime/launch/launch.h"

namespace shardc {

/// A text that `shardc run` left in memory takes memory for as long as any process has it open.
static auto CloseTextInMemory(std::string_view path) -> void {
  constexpr std::string_view Open = "/proc/self/fd/";
  int descriptor = -1;
  if (path.starts_with(Open)) {
    std::from_chars(path.data() + Open.size(), path.data() + path.size(), descriptor);
  }
  if (descriptor > STDERR_FILENO) {
    close(descriptor);
  }
}

static auto ReadPlan(const std::string& path) -> ErrorOr<Plan> {
  // One byte more than a plan may have, and not what /dev/zero holds.
  const auto text = ReadFile(path, MaxPlanBytes + 1);
  if (!text) {
    return Fail(text.error().code, "cannot read the plan {}: {}", path, text.error().message);
  }
  CloseTextInMemory(path);
  return ReadRunnablePlan(path, *text);
}

/// `recipe_path`: the file with the text of the recipe that the plan was made from, for the record.
static auto Run(const std::string& plan_path, const std::string& recipe_path, LaunchOptions options)
    -> ErrorOr<ExitCode> {
  RETURN_IF_ERROR(RefuseOtherLaunchers(std::getenv));
  auto plan = ReadPlan(plan_path);
  if (!plan) {
    return plan.error();
  }
  RETURN_IF_ERROR(ResolveDevice(*plan));
  if (options.run_dir.empty()) {
    options.run_dir = plan->run.run_dir;
  }
  if (options.request.path.empty()) {
    options.request.path = plan_path;
  }
  if (!recipe_path.empty()) {
    auto text = ReadFile(recipe_path, MaxPlanBytes);
    if (!text) {
      return Fail(text.error().code, "cannot read the recipe {}: {}", recipe_path, text.error().message);
    }
    CloseTextInMemory(recipe_path);
    options.request.recipe = *std::move(text);
  }
  options.request.torch_version = TorchVersion();
  return LaunchLocal(*plan, options, RunRank);
}

/// What is wrong with a number of seconds; empty if nothing is.
static auto IsTimeout(const std::string& text) -> std::string {
  constexpr double Longest = 1e9;
  double seconds = 0;
  const bool is_number = CLI::detail::lexical_cast(text, seconds);
  // A comparison with a NaN is false.
  return is_number && seconds > 0 && seconds <= Longest
             ? ""
             : fmt::format("`{}` stands where seconds belong, more than 0 and at most {:g}", text, Longest);
}

}  // namespace shardc

auto main(int argc, char** argv) -> int {
  using namespace shardc;
  OpenStandardStreams();
  // If the reader of the log goes away, a write to the log fails, and the run continues.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::string plan_path;
  std::string recipe_path;
  std::string format = "text";
  LaunchOptions options;
  CLI::App app{
      "Runs a plan on the ranks of this host.\n\n"
      "  shardc-run quickstart.plan\n"
      "  shardc-run quickstart.plan --eval runs/quickstart/checkpoints/step-00000400"};
  app.name("shardc-run");
  app.footer(ExitCodeTable());
  app.add_option("plan", plan_path, "A plan that `shardc plan -o` wrote")->required();
  app.add_option("--run-dir", options.run_dir, "Directory of metrics and checkpoints (default: the plan's)");
  app.add_option("--eval", options.eval_checkpoint, "Evaluate this checkpoint instead of training");
  app.add_option("--format", format, "Format of the result: text or json")->check(CLI::IsMember({"text", "json"}));
  app.add_option("--timeout", options.timeout.value, "Seconds that a rank waits for the other ranks (default 600)")
      ->check(IsTimeout);
  app.add_flag("--dry", options.dry, "Bind every op, but run none");
  // From `shardc run`.
  constexpr const char* Hidden = "";
  app.add_option("--asked", options.request.path, "For the record: the recipe or plan that the user named")
      ->group(Hidden);
  app.add_option("--asked-text", recipe_path, "For the record: a file with the text of that recipe")->group(Hidden);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream help;
    std::ostringstream message;
    const int code = app.exit(error, help, message);
    std::cout << help.str();
    std::cerr << Printable(message.str());
    return code == 0 ? 0 : static_cast<int>(ExitCode::Usage);
  }
  options.json = format == "json";
  const auto result = Run(plan_path, recipe_path, options);
  if (!result) {
    std::cerr << "error: " << Printable(result.error().message) << "\n";
    return static_cast<int>(result.error().code);
  }
  return static_cast<int>(*result);
}
