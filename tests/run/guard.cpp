// Guard mode: the same bits as without it, and kernels that go astray are named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <regex>

#include "compiler/plan/names.h"
#include "tests/support/counting_device.h"
#include "tests/support/in_process.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Guard, GivesTheSameBits) {
  const Training training;
  const std::vector<Sets> rows{
      {"mesh.dp=1"},
      {"mesh.dp=2", "batch.accumulate=3", "shard.prefetch_forward=1", "shard.prefetch_backward=1"},
      {"mesh.dp=3", "recompute.policy=full"},
      {"mesh.dp=2", "recompute.policy=torchtitan-sac"},
      {"mesh.dp=2", "precision.compute=bf16"},
      {"mesh.dp=4", "shard.reshard_after_forward=true", "shard.reshard_size=2", "shard.prefetch_backward=1"},
      {"mesh.dp=2", "model.tied=true", "init.rule=[{match = \"*\", value = \"normal(0, 0.1)\"}]"},
  };
  for (Sets sets : rows) {
    const Plan plain = training.Compile(sets);
    sets.push_back("run.guard=true");
    const Plan guarded = training.Compile(sets);
    for (size_t arena = 0; arena < NumArenas; ++arena) {
      EXPECT_EQ(guarded.arena_bytes[arena] > plain.arena_bytes[arena], plain.arena_bytes[arena] > 0);
    }
    const InProcessRun expected = RunInProcess(plain, 3);
    const InProcessRun run = RunInProcess(guarded, 3);
    EXPECT_EQ(expected.code, ExitCode::Ok);
    EXPECT_EQ(run.code, ExitCode::Ok);
    EXPECT_THAT(run.errors, Each(IsEmpty()));
    ASSERT_EQ(run.numbers.size(), 7U);
    EXPECT_TRUE(run.SameBits(expected)) << testing::PrintToString(sets);
  }
}

TEST(Guard, WholeRunWithSavesAndRestart) {
  const Training training({"train.steps=20", "checkpoint.every=5"});
  ASSERT_EQ(training.Run("plain").status, 0);
  ASSERT_EQ(training.Run("guarded", {"run.guard=true", "train.steps=10"}).status, 0);
  const Outcome outcome = training.Run("guarded", {"run.guard=true"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Metrics plain = ReadMetrics(training / "plain");
  const Metrics guarded = ReadMetrics(training / "guarded");
  ASSERT_EQ(guarded.steps.size(), 20U);
  ExpectSameSteps(guarded, plain);
  // Shorter by evaluations at its own end.
  EXPECT_EQ(guarded.evals.back(), plain.evals.back());

  const std::regex row(
      R"(\n  ([a-z-]+) [^(\n]+\((\d+) B\) in pages with buffers, [^(\n]+\((\d+) B\) in pages that were written)");
  size_t arenas = 0;
  for (std::sregex_iterator match(outcome.err.begin(), outcome.err.end(), row); match != std::sregex_iterator();
       ++match) {
    ++arenas;
    EXPECT_LE(std::stoll((*match)[3]), std::stoll((*match)[2])) << (*match)[1];
    EXPECT_GT(std::stoll((*match)[3]), 0) << (*match)[1];
  }
  EXPECT_EQ(arenas, 5U) << outcome.err;
}

/// Returns the times that the host reads a device of its own memory in so many steps of a plan.
auto ReadsIn(const Plan& plan, int64_t steps) -> int64_t {
  std::optional<CountingDevice> device;
  const InProcessRun run = RunInProcess(plan, steps, [&](RankContext& context) {
    device.emplace(context.device);
    context.device = &*device;
  });
  CHECK(run.code == ExitCode::Ok, "{}", run.errors[0]);
  return device->num_reads;
}

// A read of a GPU is a copy and a wait.
TEST(Guard, ReadsFewTimesPerTouch) {
  const Training training({"run.guard=true", "mesh.dp=1"});
  const Plan plan = training.Compile();
  int64_t touches = 0;
  for (const SectionKind section : {SectionKind::Data, SectionKind::Step}) {
    for (const Op& op : plan.section(section).ops) {
      touches += std::ssize(Guard::TouchesOf(plan, op, 0).touches);
    }
  }
  const int64_t reads = ReadsIn(plan, 3) - ReadsIn(plan, 2);
  // Two zones before the op and two after it, dead bytes before a life, zones and pages at its end.
  EXPECT_GT(reads, 4 * touches);
  EXPECT_LT(reads, 8 * touches);
}

/// A plan in guard mode, and places in its step to break.
class Broken : public testing::Test {
 protected:
  static constexpr int64_t BadRank = 1;

  /// The n-th op of a kind.
  auto Find(OpKind kind, int nth = 0) const -> size_t {
    const auto& ops = plan_.section(SectionKind::Step).ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind() == kind && nth-- == 0) {
        return i;
      }
    }
    CHECK(false, "no {}", ToText(kind));
  }
  auto OpAt(size_t index) const -> const Op& { return plan_.section(SectionKind::Step).ops[index]; }
  auto BufferOf(ValueId value) const -> BufferId { return plan_.values[value].buffer; }
  auto FindRelease(BufferId buffer) const -> size_t {
    const auto& ops = plan_.section(SectionKind::Step).ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      const auto* release = ops[i].As<op::Release>();
      if (release != nullptr && release->buffer == buffer) {
        return i;
      }
    }
    CHECK(false, "no release");
  }

  /// Runs two steps; on one rank `mischief` is done after the op at `index`, with the first byte of each buffer.
  using At = std::function<std::byte*(BufferId)>;
  auto RunWith(size_t index, const std::function<void(const At&)>& mischief) const -> InProcessRun {
    return RunInProcess(plan_, 2, [&](RankContext& context) {
      if (context.rank != BadRank) {
        return;
      }
      const At at = [device = context.device, this](BufferId id) {
        return device->Base(plan_.buffers[id].arena) + plan_.buffers[id].offset;
      };
      context.execution.wrap = [=](SectionKind section, size_t i, Kernel kernel) -> Kernel {
        if (section != SectionKind::Step || i != index) {
          return kernel;
        }
        return [=](const Moment& moment) -> Status {
          RETURN_IF_ERROR(kernel(moment));
          mischief(at);
          return Success{};
        };
      };
    });
  }
  auto ExpectFault(const InProcessRun& run, const std::string& where, const std::string& what) const -> void {
    EXPECT_EQ(run.code, ExitCode::InternalFault);
    EXPECT_THAT(run.errors[BadRank], AllOf(HasSubstr(where), HasSubstr(what)));
  }

  Training training_{{"run.guard=true", "mesh.dp=2"}};
  Plan plan_ = training_.Compile();
};

TEST_F(Broken, OneByteOutsideNamesOpBufferAndByte) {
  const size_t index = Find(OpKind::Swiglu);
  const BufferId buffer = BufferOf(OpAt(index).As<op::Swiglu>()->y);
  const int64_t bytes = plan_.buffers[buffer].bytes.value;
  const std::string where = fmt::format("step 0 section step op {} swiglu: guard: ", index);
  const auto what = [&](int64_t byte) {
    return fmt::format(
        "byte {} of {} ({} bytes in the transient arena) lies outside of it and was written by "
        "this op: it holds 0x07",
        byte, NameOf(plan_, buffer), bytes);
  };
  for (const int64_t byte : {bytes, int64_t{-1}, bytes + 255}) {
    ExpectFault(RunWith(index, [&](const At& at) { at(buffer)[byte] = std::byte{7}; }), where, what(byte));
  }
}

TEST_F(Broken, OneByteOutsideOfAPersistentBuffer) {
  const size_t index = Find(OpKind::Adamw);
  const BufferId buffer = BufferOf(OpAt(index).As<op::Adamw>()->exp_avg);
  const InProcessRun run = RunWith(index, [&](const At& at) { at(buffer)[-256] = std::byte{0}; });
  ExpectFault(run, fmt::format("section step op {} adamw", index),
              fmt::format("byte -256 of {} ", NameOf(plan_, buffer)));
  // The other rank waits for this one in the next collective, of which `--set` is the cause.
  EXPECT_THAT(run.errors[1 - BadRank], HasSubstr("; from --set mesh.dp=2"));
}

TEST_F(Broken, StrayWriteIsFoundWithTheNextOpThatTouchesTheBuffer) {
  const size_t index = Find(OpKind::Swiglu);
  const BufferId targets = BufferOf(OpAt(Find(OpKind::CrossEntropy)).As<op::CrossEntropy>()->targets);
  const int64_t end = plan_.buffers[targets].bytes.value;
  ExpectFault(RunWith(index, [&](const At& at) { at(targets)[end] = std::byte{7}; }),
              fmt::format("section step op {} cross_entropy: guard: byte {} of {} ", Find(OpKind::CrossEntropy), end,
                          NameOf(plan_, targets)),
              "was written before this op: it holds 0x07; op 0 count_valid touched the buffer last before");
}

TEST_F(Broken, StrayWriteIsFoundAtTheEndOfTheStep) {
  const BufferId table = BufferOf(OpAt(Find(OpKind::Rope)).As<op::Rope>()->table);
  ExpectFault(RunWith(Find(OpKind::ClipFactor), [&](const At& at) { at(table)[-1] = std::byte{7}; }),
              "step 0, at the end of section step: guard: ", fmt::format("byte -1 of {} (", NameOf(plan_, table)));
}

// When the norm is clipped the activations are dead, and what lives is small and lies below them.
TEST_F(Broken, WriteAfterRelease) {
  const BufferId buffer = BufferOf(OpAt(Find(OpKind::Swiglu)).As<op::Swiglu>()->y);
  const int64_t byte = plan_.buffers[buffer].bytes.value - 1;
  ExpectFault(RunWith(Find(OpKind::ClipFactor), [&](const At& at) { at(buffer)[byte] = std::byte{7}; }), "guard: byte ",
              "of the transient arena was written where no buffer lives: it holds 0x07");
}

TEST_F(Broken, ReadAfterReleaseMakesNaN) {
  const auto losses = [this](const Plan& plan) {
    plan_ = plan;
    const size_t index = Find(OpKind::ClipFactor);
    const BufferId factor = BufferOf(OpAt(index).As<op::ClipFactor>()->factor);
    const BufferId stale = BufferOf(OpAt(Find(OpKind::Swiglu)).As<op::Swiglu>()->y);
    const InProcessRun run = RunWith(index, [&](const At& at) {
      float value = 0;
      std::memcpy(&value, at(stale) + plan_.buffers[stale].bytes.value - 4, sizeof(value));
      *reinterpret_cast<double*>(at(factor)) += 1e-3 * static_cast<double>(value);
    });
    CHECK(run.numbers.size() >= 4, "{} numbers, {}", run.numbers.size(), run.errors[BadRank]);
    return std::pair{std::bit_cast<double>(run.numbers[0]), std::bit_cast<double>(run.numbers[2])};
  };
  const auto [guarded_first, guarded_second] = losses(plan_);
  EXPECT_TRUE(std::isfinite(guarded_first));
  EXPECT_TRUE(std::isnan(guarded_second)) << guarded_second;
  const auto [first, second] = losses(training_.Compile({"run.guard=false"}));
  EXPECT_EQ(first, guarded_first);
  EXPECT_TRUE(std::isfinite(second)) << "without the guard nobody would notice";
}

TEST_F(Broken, PlanThatReadsWhatItReleased) {
  auto& ops = plan_.section(SectionKind::Step).ops;
  const size_t index = Find(OpKind::SwigluBackward);
  const BufferId buffer = BufferOf(OpAt(index).As<op::SwigluBackward>()->gate);
  const size_t release = FindRelease(buffer);
  ASSERT_GT(release, index);
  std::rotate(ops.begin() + static_cast<std::ptrdiff_t>(index), ops.begin() + static_cast<std::ptrdiff_t>(release),
              ops.begin() + static_cast<std::ptrdiff_t>(release) + 1);
  const InProcessRun run = RunInProcess(plan_, 1);
  EXPECT_EQ(run.code, ExitCode::InternalFault);
  EXPECT_THAT(run.errors[0] + run.errors[1],
              HasSubstr(fmt::format("op {} swiglu_backward: guard: op {} swiglu_backward reads {} ", index + 1,
                                    index + 1, NameOf(plan_, buffer))));
}

TEST(Guard, PlanWithoutRedZonesIsRefused) {
  const Training training;
  Plan plan = training.Compile();
  plan.run.guard = true;
  const InProcessRun run = RunInProcess(plan, 1);
  EXPECT_EQ(run.code, ExitCode::RecipeRejected);
  EXPECT_THAT(run.errors[0], HasSubstr("the plan says guard, but has no red zones round $"));
}

}  // namespace
}  // namespace shardc
