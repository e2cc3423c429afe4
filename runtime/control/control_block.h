// The state of the ranks of one host, in shared memory: a word on each rank, the first failure, the wish to stop,
// barriers, and slots for small messages. Ranks are processes forked by one launcher, or threads of one process
// (tests); the block is the same for both.
//
// Barriers count arrivals and then raise a generation number, on which the others wait: a short spin where each rank
// has a core, then a futex. A wait wakes every 50 ms to see that the missing ranks live and that its time is not over,
// and at once when a rank is marked as failed. So nobody waits for ever, and every error names a rank.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/units.h"
#include "compiler/mesh/mesh.h"
#include "compiler/plan/plan.h"
#include "runtime/control/position.h"

namespace shardc {

/// Why the job is over for all: the first rank that failed. `signal` is 0 for one that ended by itself, and -1 where
/// the process is gone and nobody knows why.
struct RankFailure {
  int64_t rank = 0;
  ExitCode code = ExitCode::Environment;
  int signal = 0;
};

/// Failed: said so itself. Dead: found so by others.
enum class RankState : uint32_t { Starting, Running, Finished, Failed, Dead };

/// How long a rank waits for its peers.
struct WaitOptions {
  Seconds timeout{600};
  /// After this long, `warn` is told once a wait who is missing.
  Seconds slow_after{30};
  std::function<void(const std::string&)> warn;
};

class ControlBlock {
 public:
  enum class Members : uint8_t { Processes, Threads };

  /// More ranks than this on one host are refused: a plan for a cluster was started on one machine by mistake.
  static constexpr int64_t MaxRanks = 1024;
  /// The most that a rank leaves in a slot.
  static constexpr int64_t SlotBytes = int64_t{1} << 20;

  /// Which ranks share the block.
  struct Place {
    Mesh mesh;
    /// The ranks of this host.
    int64_t host = 0;
    Members members = Members::Processes;
    /// Says what an op is that messages name by its number. Null, or outlives the block.
    const Plan* plan = nullptr;
  };

  /// Made before the ranks are forked or their threads started.
  /// Errors: ExitCode::Environment for more than MaxRanks ranks on the host, ExitCode::DoesNotFit.
  static auto Create(const Place& place) -> ErrorOr<std::unique_ptr<ControlBlock>>;
  ControlBlock(const ControlBlock&) = delete;
  auto operator=(const ControlBlock&) -> ControlBlock& = delete;
  ~ControlBlock();

  auto mesh() const -> const Mesh& { return place_.mesh; }
  /// Those of this host, whom all functions with a `rank` are about.
  auto ranks() const -> Interval { return local_; }

  /// Publishes the calling process as `rank`. Called by the rank itself, before its first barrier.
  auto Join(int64_t rank) -> void;
  /// The rank is through; who still waits for it fails.
  auto Finish(int64_t rank) -> void;
  /// Ends the job: every wait of every rank returns an error that names this one. The first call wins, except
  /// that a reason takes the place of none.
  auto MarkFailed(int64_t rank, ExitCode code, int signal = 0) -> void;
  auto FirstFailure() const -> std::optional<RankFailure>;
  auto StateOf(int64_t rank) const -> RankState;

  /// False where the first rank that had an error to tell told this very text: an error that all ranks agreed on is
  /// told once.
  auto IsNews(const std::string& error) -> bool;

  /// The op that a stream of the rank begins, and that the stream's op is over.
  auto SetPosition(int64_t rank, Stream stream, const Position& position) -> void;
  auto LeavePosition(int64_t rank, Stream stream) -> void;
  /// "last seen at op 415 of step 12 (matmul of layer 3 in section step; from recipe line 12, model.ffn)", "not seen at
  /// any op yet".
  auto WhereIs(int64_t rank) const -> std::string;
  /// "rank 1 was killed by signal 9 (SIGKILL), last seen at op 415 of step 12".
  auto FailureText(const RankFailure& failure) const -> std::string;

  /// Raised by a signal to any rank or to the launcher; the ranks agree on it in `control`. A signal handler may store.
  auto stop_flag() -> std::atomic<bool>&;
  /// Rank 0 keeps it: what the launcher puts on record in the end. -1: none is known.
  auto completed_steps() -> std::atomic<int64_t>&;

  /// One barrier for each group of each set of axes whose groups lie within hosts. Sets that differ in axes of size 1
  /// only are the same.
  struct Group {
    /// In group order; size 1 needs no barrier. Empty: the group has ranks of several hosts, and no barrier here.
    std::vector<int64_t> ranks;
    /// Of the asking rank, in `ranks`.
    int64_t index = 0;
    size_t barrier = 0;
    /// Numbers the sets of axes.
    size_t axes_index = 0;
    /// "dp".
    std::string name;
  };
  auto GroupOf(AxisSet axes, int64_t rank) const -> Group;

  /// Requires: a group of ranks of this host. Errors: ExitCode::Environment if a rank failed, is gone, or did not come
  /// in time.
  auto Barrier(const Group& group, int64_t rank, const WaitOptions& options) -> Status;

  /// SlotBytes of memory in which a rank leaves what its peers read. There are two slots for each set of axes: as they
  /// are used in turn, one barrier per collective is enough.
  auto Slot(const Group& group, int64_t rank, int turn) -> std::byte*;

 private:
  struct Block;
  struct RankWords;
  struct BarrierWords;
  struct Patience;

  explicit ControlBlock(const Place& place);
  auto Layout() -> Status;
  auto Wait(const Group& group, int64_t rank, uint32_t generation, const WaitOptions& options) -> Status;
  auto IsMissing(const Group& group, int64_t rank, uint32_t generation) const -> bool;
  auto Inspect(const Group& group, int64_t rank, uint32_t generation, const WaitOptions& options, Patience& patience)
      -> Status;
  auto MissingText(const Group& group, int64_t rank, uint32_t generation, const Patience& patience) const
      -> std::string;
  auto IsGone(int64_t rank) const -> bool;
  auto WordsOf(int64_t rank) const -> RankWords&;

  Place place_;
  Interval local_;
  bool spin_ = false;
  /// First barrier of each set of axes, and its number; -1 for sets that name an axis of size 1 or have groups of
  /// several hosts.
  ByAxisSet<int64_t> first_barrier_{};
  ByAxisSet<int64_t> axes_index_{};
  size_t num_barriers_ = 0;
  size_t num_axes_sets_ = 0;

  void* memory_ = nullptr;
  size_t memory_bytes_ = 0;
  Block* block_ = nullptr;
  RankWords* ranks_ = nullptr;
  BarrierWords* barriers_ = nullptr;
  std::byte* slots_ = nullptr;
};

}  // namespace shardc
