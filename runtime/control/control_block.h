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
#include "compiler/base/process_stat.h"
#include "compiler/base/units.h"
#include "compiler/mesh/mesh.h"
#include "compiler/plan/plan.h"
#include "runtime/control/position.h"

namespace shardc {

// The words in shared memory (control_block_words.h).
struct BlockWords;
struct RankWords;
struct BarrierWords;

/// Why the job is over for all: the first rank that failed. `signal` is 0 for one that ended by itself, and -1 where
/// the process is gone and nobody knows why.
struct RankFailure {
  static constexpr int64_t Elsewhere = -1;

  /// The failed rank of this host, or Elsewhere.
  int64_t rank = 0;
  ExitCode code = ExitCode::Environment;
  int signal = 0;
};

/// Failed: said so itself. Dead: found so by others.
enum class RankState : uint32_t { Starting, Running, Finished, Failed, Dead };

/// How long a rank waits for its peers.
struct WaitOptions {
  Seconds timeout{600};
  /// After this time `warn` is called, once per wait, with the missing ranks.
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
    /// The name of the host in messages; empty if they need not name it.
    std::string host_name;
    /// The memory of the block, which is the first of this file, for ranks that are not forked from one process; -1: of
    /// no file.
    int file = -1;
    /// Another process has made the block in the file.
    bool is_made = false;
  };
  /// Errors: ExitCode::Environment for more than MaxRanks ranks on a host.
  static auto CheckRanks(const Mesh& mesh) -> Status;
  /// Returns the bytes that the block of a place takes.
  static auto BytesFor(const Place& place) -> int64_t;

  /// Makes the block. Called before the ranks are forked or their threads started.
  /// Errors: ExitCode::Environment for more than MaxRanks ranks on the host, ExitCode::DoesNotFit.
  static auto Create(const Place& place) -> ErrorOr<std::unique_ptr<ControlBlock>>;
  ControlBlock(const ControlBlock&) = delete;
  auto operator=(const ControlBlock&) -> ControlBlock& = delete;
  ~ControlBlock();

  auto mesh() const -> const Mesh& { return place_.mesh; }
  /// Returns the ranks of this host. Each function with a `rank` takes one of them.
  auto ranks() const -> Interval { return local_; }

  /// Publishes the calling process as `rank`. Called by the rank itself, before its first barrier.
  auto Join(int64_t rank) -> void;
  /// Marks the rank as finished: a rank that still waits for it fails.
  auto Finish(int64_t rank) -> void;
  /// Ends the job: every wait of every rank returns an error that names this one. The first call wins, except
  /// that a reason takes the place of none.
  auto MarkFailed(int64_t rank, ExitCode code, int signal = 0) -> void;
  /// Calls MarkFailed with the rank's own error.
  auto MarkFailed(int64_t rank, const Error& error) -> void;
  /// Marks the job as failed on another host, which reported `text`.
  auto MarkFailedElsewhere(ExitCode code, const std::string& text) -> void;
  auto FirstFailure() const -> std::optional<RankFailure>;
  auto StateOf(int64_t rank) const -> RankState;

  /// Returns false if the first failed rank already reported this text: an error that all ranks agreed on is reported
  /// once.
  auto IsNews(const std::string& error) -> bool;
  /// Returns true if no rank of this host and no launcher has reported an error yet; this error then counts as
  /// reported. For callers that pass on an error of others.
  auto IsFirst(const std::string& error) -> bool;
  /// Fails if the job has, with the failure of another rank as the rank's own error. Called by a rank that waits for
  /// something else than its peers.
  auto Listen(int64_t rank) -> Status;
  /// Returns true if a wait of the rank has ended because the job had failed: its error is the failure of another rank.
  auto HasHeard(int64_t rank) const -> bool;

  /// Notes which op a stream of the rank begins, and that this op is over.
  auto SetPosition(int64_t rank, Stream stream, const Position& position) -> void;
  auto LeavePosition(int64_t rank, Stream stream) -> void;
  /// Notes that the rank waits for `count` ranks of other hosts, one of which is `other`; 0: that it does not wait.
  auto SetWaitsFor(int64_t rank, int64_t other, int64_t count) -> void;
  /// Returns where the rank was seen: "last seen at op 415 of step 12 (matmul of layer 3 in section step; from recipe
  /// line 12, model.ffn)", "not seen at any op yet".
  auto WhereIs(int64_t rank) const -> std::string;
  /// Returns a failure as text: "rank 1 was killed by signal 9 (SIGKILL), last seen at op 415 of step 12".
  auto FailureText(const RankFailure& failure) const -> std::string;
  /// Returns FailureText with the error that the rank reported, for readers who did not see the rank's own message.
  auto FailureReport(const RankFailure& failure) const -> std::string;
  /// Returns the name of a rank in messages: "rank 1", "rank 1 (node-b)".
  auto NameOf(int64_t rank) const -> std::string;
  /// Returns the ranks whose processes have ended without an error. Cost: a file of /proc for each rank.
  auto GoneRanks() const -> std::vector<int64_t>;

  /// Returns the flag that a signal to any rank or to the launcher raises; the ranks agree on it in `control`. A signal
  /// handler may store to it.
  auto stop_flag() -> std::atomic<bool>&;
  /// Returns the counter of steps that rank 0 keeps for the launcher's record of the job; -1 if it is not known.
  auto completed_steps() -> std::atomic<int64_t>&;

  /// The ranks of one group over a set of axes that lie on this host. There is one barrier for each; sets that differ
  /// in axes of size 1 only are the same.
  struct Group {
    /// In group order; size 1 needs no barrier.
    std::vector<int64_t> ranks;
    /// Index of the asking rank in `ranks`.
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

  /// Returns SlotBytes of memory in which a rank leaves what its peers read. There are two slots for each set of axes:
  /// as they are used in turn, one barrier per collective is enough.
  auto Slot(const Group& group, int64_t rank, int turn) -> std::byte*;

 private:
  struct Patience;

  struct Parts;

  auto KeepText(int64_t rank, const std::string& text) -> bool;
  /// Returns the error of a rank whose wait ends because the job has failed.
  auto Hear(int64_t rank, const std::string& text) -> Error;
  explicit ControlBlock(const Place& place);
  auto PartsOf() const -> Parts;
  auto Layout() -> Status;
  auto WakeAll() -> void;
  auto Wait(const Group& group, int64_t rank, uint32_t generation, const WaitOptions& options) -> Status;
  auto IsMissing(const Group& group, int64_t rank, uint32_t generation) const -> bool;
  auto Inspect(const Group& group, int64_t rank, uint32_t generation, const WaitOptions& options, Patience& patience)
      -> Status;
  auto MissingText(const Group& group, int64_t rank, uint32_t generation, const Patience& patience) const
      -> std::string;
  /// Returns the process of a rank that has joined; nothing if it has ended, even if another process has its number
  /// now.
  auto ProcessOf(int64_t rank) const -> std::optional<ProcessStat>;
  auto IsGone(int64_t rank) const -> bool;
  auto WordsOf(int64_t rank) const -> RankWords&;

  Place place_;
  Interval local_;
  /// The mesh of this host's ranks, counted from the first of them.
  Mesh local_mesh_;
  bool spin_ = false;
  /// First barrier of each set of axes, and its number; -1 for sets that name an axis of size 1 on this host.
  ByAxisSet<int64_t> first_barrier_{};
  ByAxisSet<int64_t> axes_index_{};
  size_t num_barriers_ = 0;
  size_t num_axes_sets_ = 0;

  void* memory_ = nullptr;
  size_t memory_bytes_ = 0;
  BlockWords* block_ = nullptr;
  RankWords* ranks_ = nullptr;
  BarrierWords* barriers_ = nullptr;
  std::byte* slots_ = nullptr;
};

}  // namespace shardc
