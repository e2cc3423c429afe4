// tests_ranks_cuda: several ranks on the GPUs of this machine.
//
//   tests_ranks_cuda [--gtest_...]               tests collectives among ranks that share a GPU
//   tests_ranks_cuda train PLAN RUN_DIR [lag]    trains with the ranks of a plan as threads, whose streams lag at
//   random tests_ranks_cuda rates RANKS [share]         times collectives among ranks that have a GPU each, or share
//   one
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "compiler/base/files.h"
#include "compiler/plan/text.h"
#include "compiler/verify/read_plan.h"
#include "runtime/core/runner.h"
#include "runtime/cuda/parts.h"
#include "runtime/kernels/kernel.h"
#include "runtime/launch/launch.h"
#include "tests/comm/programs/collectives_cuda.h"
#include "tests/comm/programs/rates_cuda.h"

namespace shardc {
namespace {

class CudaCollectives : public testing::TestWithParam<CollectivesCase> {};

TEST_P(CudaCollectives, EqualFoldOnHost) { ExpectEqualFold(GetParam()); }

/// Returns the name of a case, such as "processes_1x2x2_lagging".
auto NameOf(const testing::TestParamInfo<CollectivesCase>& info) -> std::string {
  const CollectivesCase& which = info.param;
  return fmt::format("{}_{}x{}x{}{}", ToText(which.members), which.mesh.sizes[0], which.mesh.sizes[1],
                     which.mesh.sizes[2], which.lags ? "_lagging" : "");
}

/// Returns a case of processes, whose kernels take turns of about 2 ms on a GPU.
auto OfProcesses(const Mesh& mesh, bool lags) -> CollectivesCase {
  return {.members = Processes, .mesh = mesh, .lags = lags, .num_rounds = 6, .most_elements_as_it_is = 1'027};
}

auto OfThreads(const Mesh& mesh, bool lags) -> CollectivesCase { return {.mesh = mesh, .lags = lags}; }

// Processes first: none is forked by a process that has called CUDA.
INSTANTIATE_TEST_SUITE_P(Meshes, CudaCollectives,
                         testing::Values(OfProcesses({{1, 2, 1}}, false), OfProcesses({{1, 2, 2}}, true),
                                         OfThreads({{1, 2, 1}}, false), OfThreads({{1, 4, 1}}, false),
                                         OfThreads({{1, 4, 1}}, true), OfThreads({{1, 2, 2}}, true),
                                         OfThreads({{2, 1, 2}}, true)),
                         NameOf);

auto Train(const std::string& plan_path, const std::string& run_dir, bool lags) -> ErrorOr<ExitCode> {
  const auto text = ReadFile(plan_path, MaxPlanBytes);
  if (!text) {
    return text.error();
  }
  auto plan = ReadRunnablePlan(plan_path, *text);
  if (!plan) {
    return plan.error();
  }
  RETURN_IF_ERROR(ResolveDevice(*plan));
  return LaunchThreads(*plan, {.run_dir = run_dir, .shuffles = lags}, [](RankContext& context) -> ErrorOr<ExitCode> {
    auto runner = RankRunner::Create(context);
    if (!runner) {
      return runner.error();
    }
    return (*runner)->Train();
  });
}

auto Run(int argc, char** argv) -> int {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty() || words[0].starts_with("--")) {
    testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
  }
  const bool lags = words.size() == 4 && words[3] == "lag";
  const bool shares = words.size() == 3 && words[2] == "share";
  ErrorOr<ExitCode> result =
      Fail(ExitCode::Usage, "the first lines of tests/comm/programs/ranks_cuda.cpp have the usage");
  if (words[0] == "train" && (words.size() == 3 || lags)) {
    result = Train(words[1], words[2], lags);
  } else if (words[0] == "rates" && (words.size() == 2 || shares)) {
    result = MeasureRates(std::stoll(words[1]), shares);
  }
  if (!result) {
    std::fprintf(stderr, "error: %s\n", result.error().message.c_str());
  }
  return static_cast<int>(result ? *result : result.error().code);
}

}  // namespace
}  // namespace shardc

auto main(int argc, char** argv) -> int {
  shardc::UseCuda();
  const int code = shardc::Run(argc, argv);
  std::fflush(nullptr);
  // As shardc-run-cuda ends.
  _exit(code);
}
