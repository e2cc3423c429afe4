// A step allocates nothing: no memory from LibTorch, no large block, no mapping. By counters in this process, and by
// the system calls of the real program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <sstream>

#include "runtime/launch/launch.h"
#include "tests/run/allocation_counter.h"
#include "tests/support/in_process.h"
#include "tests/support/kernel_fixture.h"
#include "tests/support/launch_runners.h"
#include "tests/support/missing.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

struct AllocationCase {
  const char* name;
  Sets sets;
  /// More than one thread a rank: then all of the process are counted, on one rank.
  bool all_threads = false;
};
const std::vector<AllocationCase> Cases{
    {"dp 2, accumulate 3, prefetch 1",
     {"mesh.dp=2", "batch.accumulate=3", "shard.prefetch_forward=1", "shard.prefetch_backward=1"}},
    {"dp 3, recompute full", {"mesh.dp=3", "recompute.policy=full"}},
    {"dp 2 x tp 2, accumulate 2", {"mesh.dp=2", "mesh.tp=2", "batch.accumulate=2"}},
    {"replicate 2 x tp 2", {"mesh.replicate=2", "mesh.dp=1", "mesh.tp=2"}},
    {"dp 2, documents in a stream", {"mesh.dp=2", "data.documents=split", "data.document_end=32"}},
    {"dp 2 x tp 2, documents in packed samples",
     {"mesh.dp=2", "mesh.tp=2", "data.documents=split", "data.document_end=32", "data.pack=best-fit",
      "data.eval_tokens=0", "train.eval_every=0"}},
    {"dp 1, two threads", {"mesh.dp=1", "run.threads=2", "model.hidden=128", "model.heads=4", "model.ffn=384"}, true},
};

/// Counts of each step section from the third step on, over all ranks.
auto CountSteps(const Plan& plan, bool all_threads) -> std::vector<AllocationCounts> {
  constexpr int NumSteps = 5;
  std::vector<AllocationCounts> counts;
  std::mutex mutex;
  const auto code = LaunchRunners(plan, {}, [&](RankContext&, RankRunner& runner) -> ErrorOr<ExitCode> {
    RETURN_IF_ERROR(runner.RunSection(SectionKind::Constants));
    RETURN_IF_ERROR(runner.RunSection(SectionKind::Init));
    // The data section may read files; after it come the step section and a look at the halts.
    runner.after_data() = all_threads ? StartCountingAllThreads : StartCounting;
    for (int step = 1; step <= NumSteps; ++step) {
      const auto halt = runner.Step();
      const AllocationCounts of_step = StopCounting();
      if (!halt) {
        return halt.error();
      }
      if (step >= 3) {
        const std::lock_guard lock(mutex);
        counts.push_back(of_step);
      }
    }
    return ExitCode::Ok;
  });
  CHECK(code.ok() && *code == ExitCode::Ok, "run");
  return counts;
}

/// LibTorch's brgemm makes a small malloc a call, for the key by which it finds its kernel; nothing else makes any.
/// Each thread makes its own kernels (and maps code) when it first meets a shape: in the first step, in which each op
/// has all threads make theirs.
auto ExpectNone(const AllocationCase& row, Plan plan) -> void {
  for (const Device device : {Device::CpuPortable, Device::Cpu}) {
    plan.device = device;
    ASSERT_TRUE(ResolveDevice(plan).ok());
    const bool is_portable = plan.device == Device::CpuPortable;
    const auto counts = CountSteps(plan, row.all_threads);
    ASSERT_EQ(counts.size(), 3U * static_cast<size_t>(plan.mesh.num_ranks()));
    int64_t most_small = 0;
    for (const AllocationCounts& of_step : counts) {
      EXPECT_TRUE(of_step.counted) << row.name;
      EXPECT_EQ(of_step.c10_allocations, 0) << row.name;
      EXPECT_EQ(of_step.large_mallocs, 0) << row.name;
      EXPECT_EQ(of_step.mappings, 0) << row.name;
      most_small = std::max(most_small, of_step.small_mallocs);
    }
    std::printf("%s on %s: at most %ld small mallocs a step and rank\n", row.name, ToText(plan.device).data(),
                most_small);
    if (is_portable) {
      EXPECT_EQ(most_small, 0) << row.name;
    }
  }
}

TEST(Allocations, CounterCounts) {
  if (!CanCountAllocations()) {
    GTEST_SKIP() << "the address sanitizer has the allocator";
  }
  StartCounting();
  std::string small(100, 'a');
  std::vector<char> large(LargeBytes);
  AllocationCounts counts = StopCounting();
  EXPECT_EQ(counts.small_mallocs, 1) << small << large.size();
  EXPECT_EQ(counts.large_mallocs, 1);
  const std::string uncounted(100, 'b');
  counts = StopCounting();
  EXPECT_FALSE(counts.counted) << uncounted;
  EXPECT_EQ(counts.small_mallocs, 0);
}

TEST(Allocations, AStepMakesNone) {
  if (!CanCountAllocations()) {
    GTEST_SKIP() << "the address sanitizer has the allocator";
  }
  const Training training;
  for (const AllocationCase& row : Cases) {
    ExpectNone(row, training.Compile(row.sets));
  }
}

TEST(Allocations, AStepInBf16MakesNone) {
  if (!CanCountAllocations()) {
    GTEST_SKIP() << "the address sanitizer has the allocator";
  }
  const Training training({"precision.compute=bf16"});
  for (const AllocationCase& row : Cases) {
    ExpectNone(row, training.Compile(row.sets));
  }
}

// Documents cut other tiles in each step, and the first step has made the kernels of all their products.
TEST(Allocations, OtherDocumentsMakeNone) {
  if (!CanCountAllocations()) {
    GTEST_SKIP() << "the address sanitizer has the allocator";
  }
  constexpr int64_t Sequence = 610;
  const Dims q_dims{Sequence, 1, 32};
  const Dims k_dims{Sequence, 1, 16};
  for (const Device device : {Device::CpuPortable, Device::Cpu}) {
    for (const DType dtype : {DType::F32, DType::BF16}) {
      SCOPED_TRACE(fmt::format("{} {}", ToText(device), ToText(dtype)));
      KernelFixture fixture(Backend{.device = device});
      const auto operand = [&](const Dims& dims, uint64_t seed) {
        return fixture.Floats(dtype, dims, RandomNumbers(dtype, NumElements(dims), seed));
      };
      const op::Attention forward{.q = operand(q_dims, 1),
                                  .k = operand(k_dims, 2),
                                  .v = operand(k_dims, 3),
                                  .starts = fixture.I32({Sequence, 1}, std::vector<int32_t>(Sequence, 0)),
                                  .y = fixture.Add(dtype, q_dims),
                                  .lse = fixture.Add(DType::F32, {1, 2, Sequence}),
                                  .scratch = {},
                                  .head_dim = 16};
      const Kernel attend = fixture.BindWithScratch(forward);
      const Kernel attend_backward = fixture.BindWithScratch(op::AttentionBackward{.dy = operand(q_dims, 4),
                                                                                   .q = forward.q,
                                                                                   .k = forward.k,
                                                                                   .v = forward.v,
                                                                                   .y = forward.y,
                                                                                   .lse = forward.lse,
                                                                                   .starts = forward.starts,
                                                                                   .dq = fixture.Add(dtype, q_dims),
                                                                                   .dk = fixture.Add(dtype, k_dims),
                                                                                   .dv = fixture.Add(dtype, k_dims),
                                                                                   .scratch = {},
                                                                                   .head_dim = 16});
      // The first run, and then documents of 1 to 33 times 19 positions.
      for (int32_t length = 0; length <= 33; ++length) {
        const auto starts = fixture.At<int32_t>(forward.starts);
        for (int32_t s = 0; s < Sequence && length > 0; ++s) {
          starts[static_cast<size_t>(s)] = s - s % (19 * length);
        }
        StartCounting();
        const bool ran = attend(Moment{}).ok() && attend_backward(Moment{}).ok();
        const AllocationCounts counts = StopCounting();
        ASSERT_TRUE(ran);
        if (length > 0) {
          EXPECT_EQ(counts.c10_allocations, 0) << length;
          EXPECT_EQ(counts.large_mallocs, 0) << length;
          EXPECT_EQ(counts.mappings, 0) << length;
        }
      }
    }
  }
}

/// Lines of strace's log between the third step and the last that map or unmap.
TEST(Allocations, ProgramMapsNothingFromTheThirdStepOn) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the leak sanitizer does not work under strace";
#endif
  if (RunProcess({"/bin/sh", "-c", "strace -o /dev/null true"}).status != 0) {
    SkipWithout("strace");
    return;
  }
  for (const char* compute : {"fp32", "bf16"}) {
    const Training training({fmt::format("precision.compute={}", compute), "train.eval_every=0", "checkpoint.every=0",
                             "data.eval_tokens=0", "train.steps=12"});
    std::vector<std::string> command{
        "/usr/bin/env", "strace",          "-f", "-qq", "-s", "24", "-e", "trace=mmap,munmap,mremap,brk,write",
        "-o",           training / "calls"};
    const auto run = training.RunCommand();
    command.insert(command.end(), run.begin(), run.end());
    const Outcome outcome = RunProcess(command);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    std::istringstream lines(ReadText(training / "calls"));
    std::vector<std::string> found;
    int64_t step = 0;
    for (std::string line; std::getline(lines, line);) {
      // The metrics, a line per step. The save at the end has a line of its own, of another file.
      if (line.find(R"("{\"step\":)") != std::string::npos && line.find(R"(\"loss)") != std::string::npos) {
        ++step;
      } else if (step >= 3 && step < 12 && line.find("write(") == std::string::npos) {
        found.push_back(line);
      }
    }
    EXPECT_EQ(step, 12);
    EXPECT_THAT(found, testing::IsEmpty()) << compute;
  }
}

}  // namespace
}  // namespace shardc
