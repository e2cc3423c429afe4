// Exceptions that leave a kernel: each ends the rank with op and recipe line, and the launch with the right exit code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <system_error>

#include "runtime/core/runner.h"
#include "runtime/init/initial_values.h"
#include "runtime/launch/launch.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// What a launch says in which rank 1 throws in its first matmul of a section, when that runs or when it is bound.
struct Thrown {
  std::optional<ExitCode> code;
  std::string err;
};

auto LaunchThatThrows(const Training& training, SectionKind where, bool when_bound, const std::function<void()>& raise)
    -> Thrown {
  // Compiled once for all launches, and not once per launch.
  static const auto kernels = SharedInitKernels();
  const Plan plan = training.Compile();
  const auto& ops = plan.section(where).ops;
  const auto first = std::ranges::find_if(ops, [](const Op& op) { return op.As<op::Matmul>() != nullptr; });
  CHECK(first != ops.end(), "section {} multiplies nothing", ToText(where));
  const auto index = static_cast<size_t>(first - ops.begin());
  testing::internal::CaptureStderr();
  const auto code = LaunchLocal(plan, {.run_dir = training / "run"}, [&](RankContext& context) {
    if (context.rank == 1) {
      context.execution.wrap = [=](SectionKind section, size_t op, Kernel kernel) -> Kernel {
        if (section != where || op != index) {
          return kernel;
        }
        if (when_bound) {
          raise();
        }
        return [raise](const Moment&) -> Status {
          raise();
          return Success{};
        };
      };
    }
    return RunRank(context);
  });
  return {.code = code ? std::optional(*code) : std::nullopt, .err = testing::internal::GetCapturedStderr()};
}

struct ThrowCase {
  std::function<void()> raise;
  ExitCode code;
  std::string says;
};

auto Cases() -> std::vector<ThrowCase> {
  return {{[] { throw std::bad_alloc(); }, ExitCode::DoesNotFit, "out of memory"},
          {[] { throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again), "threads"); },
           ExitCode::Environment, "the system refused: threads: Resource temporarily unavailable"},
          // As c10::Error puts it.
          {[] { throw std::runtime_error("sizes differ\nException raised from brgemm at x.cpp:1\nframe #0: y"); },
           ExitCode::InternalFault, "unexpected: sizes differ; from recipe line "},
          {[] { throw 5; }, ExitCode::InternalFault, "unexpected: an exception of unknown type"}};
}

TEST(Exceptions, EndWithRankOpAndRecipeLine) {
  for (const ThrowCase& c : Cases()) {
    const Training training({"train.steps=3"});
    const Thrown thrown = LaunchThatThrows(training, SectionKind::Step, false, c.raise);
    EXPECT_EQ(thrown.code, c.code) << thrown.err;
    EXPECT_THAT(thrown.err, ContainsRegex("error: rank 1: step 0 section step op [0-9]+ matmul: "));
    EXPECT_THAT(thrown.err, AllOf(HasSubstr(c.says), HasSubstr("; from "), Not(HasSubstr("frame #0")),
                                  Not(HasSubstr("was killed"))));
    EXPECT_EQ(CheckpointsOf(training / "run"), std::vector<std::string>());
  }
}

TEST(Exceptions, OfBindingEndTheSameWay) {
  for (const ThrowCase& c : Cases()) {
    const Training training({"train.steps=3"});
    const Thrown thrown = LaunchThatThrows(training, SectionKind::Step, true, c.raise);
    EXPECT_EQ(thrown.code, c.code) << thrown.err;
    EXPECT_THAT(thrown.err, ContainsRegex("error: rank 1: binding section step op [0-9]+ matmul: "));
    EXPECT_THAT(thrown.err, AllOf(HasSubstr(c.says), Not(HasSubstr("was killed"))));
  }
}

}  // namespace
}  // namespace shardc
