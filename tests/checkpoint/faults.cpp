// Every file-system call of a save fails, or kills the process, in turn: whatever happens, a whole checkpoint is left,
// and all ranks say the same. Exhaustive in the number of the call, not random.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/checkpoint/find_newest.h"
#include "runtime/checkpoint/leftovers.h"
#include "tests/checkpoint/world.h"
#include "tests/support/fault_fs.h"
#include "tests/support/nightly.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

constexpr int64_t NumRanks = 2;

/// Saves with faults on one rank.
auto SaveWithFaults(const Plan& plan, int64_t step, int64_t faulty_rank, FaultFs& faults) -> std::vector<Status> {
  return SaveSmall(plan, step, [&](int64_t rank) -> Fs& { return rank == faulty_rank ? faults : PosixFs(); });
}

/// A folder with a committed step 1, at most one checkpoint kept.
class WithStepOne {
 public:
  WithStepOne() : plan_(SmallPlan(NumRanks, folder_.path())) {
    plan_.run.checkpoint_keep = 1;
    const Status saved = SaveSmall(plan_, 1);
    CHECK(saved.ok(), "{}", saved.error().message);
  }
  auto plan() const -> const Plan& { return plan_; }
  auto dir() const -> const std::string& { return folder_.path(); }

  /// Starts as a new process would: the newest checkpoint is whole. Returns its step.
  auto Restart() const -> int64_t {
    int64_t step = -1;
    EXPECT_TRUE(RemoveAbandoned(dir(), plan_.run.run_id).empty());
    OnRanks(plan_, [&](RankControl& control) {
      const auto newest = ChooseNewest(dir(), plan_.run.run_id, control);
      EXPECT_TRUE(newest.ok() && newest->has_value());
      if (control.rank() == 0 && newest.ok() && newest->has_value()) {
        step = (*newest)->step;
      }
    });
    EXPECT_EQ(LoadSmall(plan_, dir() + "/" + CheckpointName(step), step), "");
    for (const auto& entry : std::filesystem::directory_iterator(dir())) {
      EXPECT_TRUE(IsCheckpointName(entry.path().filename().string())) << entry.path() << " was left over";
    }
    return step;
  }

 private:
  TemporaryFolder folder_;
  Plan plan_;
};

struct FaultCase {
  int64_t rank;
  bool for_good;
  int error;
};

class FailedCall : public testing::TestWithParam<FaultCase> {};

TEST_P(FailedCall, LeavesAWholeCheckpointAndRanksAgree) {
  int64_t num_injected = 0;
  int64_t num_failed = 0;
  for (int64_t n = 1;; ++n) {
    SCOPED_TRACE(fmt::format("call {}", n));
    const WithStepOne world;
    FaultFs faults({.fail_at = n, .for_good = GetParam().for_good, .error = GetParam().error});
    const std::vector<Status> statuses = SaveWithFaults(world.plan(), 2, GetParam().rank, faults);
    ASSERT_EQ(statuses[0].ok(), statuses[1].ok());
    if (!statuses[0].ok()) {
      ++num_failed;
      EXPECT_EQ(statuses[0].error().message, statuses[1].error().message);
      EXPECT_NE(statuses[0].error().message.find("checkpoint of step 2 not"), std::string::npos);
      EXPECT_NE(statuses[0].error().message.find(std::strerror(GetParam().error)), std::string::npos)
          << statuses[0].error().message;
    }
    const int64_t step = world.Restart();
    if (statuses[0].ok()) {
      EXPECT_EQ(step, 2);
    } else if (statuses[0].error().message.find("durability is unknown") == std::string::npos) {
      EXPECT_EQ(step, 1) << statuses[0].error().message;
    }
    // And the run can continue.
    const Status next = SaveSmall(world.plan(), 3);
    EXPECT_TRUE(next.ok()) << next.error().message;
    EXPECT_EQ(world.Restart(), 3);
    if (testing::Test::HasFailure()) {
      return;
    }
    if (!faults.hit()) {
      break;
    }
    ++num_injected;
  }
  // Rank 1 opens two directories, makes, writes, syncs and closes two files; rank 0 does that and commits.
  EXPECT_GE(num_injected, GetParam().rank == 0 ? 28 : 10);
  EXPECT_GE(num_failed, GetParam().rank == 0 ? 21 : 10);
}

INSTANTIATE_TEST_SUITE_P(Checkpoint, FailedCall,
                         testing::Values(FaultCase{0, false, EIO}, FaultCase{0, true, ENOSPC},
                                         FaultCase{1, false, ENOSPC}, FaultCase{1, true, EIO}),
                         [](const auto& info) {
                           return fmt::format("Rank{}{}", info.param.rank, info.param.for_good ? "ForGood" : "Once");
                         });

class KilledAtCall : public testing::TestWithParam<std::pair<int64_t, bool>> {};

TEST_P(KilledAtCall, LeavesAWholeCheckpoint) {
  const auto [rank, before] = GetParam();
  int64_t num_killed = 0;
  int64_t num_committed = 0;
  // Rank 1 makes few calls.
  const int64_t stride = rank == 0 ? Stride(3) : 1;
  for (int64_t n = 1;; n += stride) {
    SCOPED_TRACE(fmt::format("call {}", n));
    const WithStepOne world;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      FaultFs faults({.kill_before = before ? n : 0, .kill_after = before ? 0 : n});
      const std::vector<Status> statuses = SaveWithFaults(world.plan(), 2, rank, faults);
      _exit(statuses[0].ok() && statuses[1].ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    const bool killed = WIFSIGNALED(status);
    const int64_t step = world.Restart();
    if (killed) {
      ++num_killed;
      num_committed += step == 2 ? 1 : 0;
    } else {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      EXPECT_EQ(step, 2);
    }
    const Status next = SaveSmall(world.plan(), 3);
    EXPECT_TRUE(next.ok()) << next.error().message;
    EXPECT_EQ(world.Restart(), 3);
    if (testing::Test::HasFailure() || !killed) {
      break;
    }
  }
  EXPECT_GE(num_killed, (rank == 0 ? 25 : 10) / stride);
  // Some kills come after the commit: as rank 0 removes the old checkpoint, as the ranks close their directories.
  EXPECT_GT(num_committed, 0);
  EXPECT_LT(num_committed, num_killed);
}

INSTANTIATE_TEST_SUITE_P(Checkpoint, KilledAtCall,
                         testing::Values(std::pair<int64_t, bool>{0, true}, std::pair<int64_t, bool>{0, false},
                                         std::pair<int64_t, bool>{1, false}),
                         [](const auto& info) {
                           return fmt::format("Rank{}{}", info.param.first, info.param.second ? "Before" : "After");
                         });

// No call on a file is made again after its fsync failed: a second one would succeed though the data may be gone.
TEST(Checkpoint, AFailedFsyncIsNotRetried) {
  class CountingFs final : public ForwardingFs {
   public:
    auto Pwrite(int descriptor, const void* data, size_t bytes, int64_t offset) -> int64_t override {
      failed_then_used_ |= descriptor == failed_;
      return PosixFs().Pwrite(descriptor, data, bytes, offset);
    }
    auto Fsync(int descriptor) -> int override {
      failed_then_used_ |= descriptor == failed_;
      if (++num_fsyncs_ == 1) {
        failed_ = descriptor;
        errno = EIO;
        return -1;
      }
      return PosixFs().Fsync(descriptor);
    }

    int num_fsyncs_ = 0;
    int failed_ = -1;
    bool failed_then_used_ = false;
  };
  const WithStepOne world;
  CountingFs fs;
  const auto statuses = SaveSmall(world.plan(), 2, [&](int64_t rank) -> Fs& { return rank == 0 ? fs : PosixFs(); });
  EXPECT_FALSE(statuses[0].ok());
  EXPECT_NE(fs.failed_, -1);
  EXPECT_EQ(fs.num_fsyncs_, 1);
  EXPECT_FALSE(fs.failed_then_used_);
  EXPECT_EQ(world.Restart(), 1);
}

// Reading: any call fails in turn; nothing wrong is ever given out.
TEST(Checkpoint, FailedReadsAreErrors) {
  const WithStepOne world;
  for (const bool for_good : {false, true}) {
    for (int64_t n = 1;; ++n) {
      FaultFs faults({.fail_at = n, .for_good = for_good});
      const auto read = [&]() -> Status {
        auto newest = FindNewest(world.dir(), "small", faults);
        if (!newest) {
          return newest.error();
        }
        auto reader = CheckpointReader::Open(
            {.path = (*newest)->path, .plan = &world.plan(), .data_fingerprint = SmallFingerprint, .fs = &faults});
        if (!reader) {
          return reader.error();
        }
        float value = -1;
        RETURN_IF_ERROR((*reader)->ReadElements("model.norm.weight", StateRole::Parameter, BoxInterval::Of({3, 4}),
                                                DType::F32, &value));
        EXPECT_EQ(value, StateValue("model.norm.weight", StateRole::Parameter, 3, 1));
        return Success{};
      };
      const Status status = read();
      if (!faults.hit()) {
        EXPECT_TRUE(status.ok()) << status.error().message;
        EXPECT_GT(n, 12);
        break;
      }
      // (A close that fails after reading loses nothing.)
      if (!status.ok()) {
        EXPECT_TRUE(status.error().code == ExitCode::Checkpoint || status.error().code == ExitCode::Environment);
        EXPECT_NE(status.error().message.find("Input/output error"), std::string::npos) << status.error().message;
      }
    }
  }
}

}  // namespace
}  // namespace shardc
