// What a program tells its control and its communicator of each op: the op and its stream before it, that it is over
// after it, and for a collective the queue of that stream.
#include <gtest/gtest.h>

#include <mutex>

#include "runtime/launch/launch.h"
#include "tests/support/in_process.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

/// The op that a rank is at.
struct At {
  Stream stream = Stream::Compute;
  Position position;
};

/// One rank's record. What was wrong first is kept.
struct Record {
  std::optional<At> now;
  int64_t num_ops = 0;
  std::array<int64_t, NumStreams> num_collectives{};
  std::string error;

  auto Expect(bool holds, std::string_view what) -> void {
    if (!holds && error.empty()) {
      error = what;
    }
  }
};

/// Hands all on, and compares positions with the plan.
class RecordingControl final : public RankControl {
 public:
  RecordingControl(RankControl& inner, const Plan& plan, Record& record)
      : inner_(inner), plan_(plan), record_(record) {}

  auto rank() const -> int64_t override { return inner_.rank(); }
  auto mesh() const -> const Mesh& override { return inner_.mesh(); }
  auto Gather(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status override {
    return inner_.Gather(axes, mine, bytes, all);
  }
  auto Broadcast(AxisSet axes, std::byte* data, int64_t bytes) -> Status override {
    return inner_.Broadcast(axes, data, bytes);
  }
  auto Sum(AxisSet axes, std::byte* data, int64_t num_elements, DType dtype) -> Status override {
    return inner_.Sum(axes, data, num_elements, dtype);
  }
  auto Barrier(AxisSet axes) -> Status override { return inner_.Barrier(axes); }
  auto SetPosition(Stream stream, const Position& position) -> void override {
    const std::vector<Op>& ops = plan_.section(position.section).ops;
    record_.Expect(!record_.now.has_value(), "an op begins while another is under way");
    record_.Expect(ops[static_cast<size_t>(position.op_index)].stream == stream, "the stream is not that of the op");
    record_.now = At{stream, position};
    ++record_.num_ops;
    inner_.SetPosition(stream, position);
  }
  auto LeavePosition(Stream stream) -> void override {
    record_.Expect(record_.now.has_value() && record_.now->stream == stream, "another stream's op is over");
    record_.now.reset();
    inner_.LeavePosition(stream);
  }
  auto StopIsRequested() const -> bool override { return inner_.StopIsRequested(); }
  auto SetCompletedSteps(int64_t steps) -> void override { inner_.SetCompletedSteps(steps); }

 private:
  RankControl& inner_;
  const Plan& plan_;
  Record& record_;
};

/// Hands all on, and compares queues with the device's.
class RecordingCommunicator final : public Communicator {
 public:
  RecordingCommunicator(Communicator& inner, RankDevice& device, Record& record)
      : inner_(inner), device_(device), record_(record) {}

  auto AllGather(Queue& queue, AxisSet axes, const CommSpan& shard, const CommSpan& full, const CommSpan& scratch)
      -> Status override {
    See(queue);
    return inner_.AllGather(queue, axes, shard, full, scratch);
  }
  auto ReduceScatter(Queue& queue, AxisSet axes, const CommSpan& full, const CommSpan& shard, const CommSpan& scratch,
                     ReduceTypes types, bool accumulate) -> Status override {
    See(queue);
    return inner_.ReduceScatter(queue, axes, full, shard, scratch, types, accumulate);
  }
  auto AllReduce(Queue& queue, AxisSet axes, const CommSpan& span, const CommSpan& scratch, DType dtype)
      -> Status override {
    See(queue);
    return inner_.AllReduce(queue, axes, span, scratch, dtype);
  }
  auto Exchange(Queue& queue, AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status override {
    See(queue);
    return inner_.Exchange(queue, axes, mine, bytes, all);
  }

 private:
  auto See(const Queue& queue) -> void {
    record_.Expect(record_.now.has_value(), "a collective without an op");
    if (record_.now) {
      record_.Expect(&queue == &device_.queue(record_.now->stream), "the queue is not that of the op's stream");
      ++record_.num_collectives[static_cast<size_t>(record_.now->stream)];
    }
  }

  Communicator& inner_;
  RankDevice& device_;
  Record& record_;
};

TEST(Positions, AreThoseOfThePlansOps) {
  const Training training({"mesh.dp=2", "mesh.tp=2"});
  const Plan plan = training.Compile();
  struct Rank {
    Record record;
    std::unique_ptr<RecordingControl> control;
    std::unique_ptr<RecordingCommunicator> communicator;
  };
  std::vector<Rank> ranks(4);
  const InProcessRun run = RunInProcess(plan, 2, [&](RankContext& context) {
    Rank& rank = ranks[static_cast<size_t>(context.rank)];
    rank.control = std::make_unique<RecordingControl>(*context.control, plan, rank.record);
    rank.communicator = std::make_unique<RecordingCommunicator>(*context.comm, *context.device, rank.record);
    context.control = rank.control.get();
    context.comm = rank.communicator.get();
  });
  EXPECT_EQ(run.code, ExitCode::Ok) << run.errors[0];
  for (const Rank& rank : ranks) {
    EXPECT_EQ(rank.record.error, "");
    EXPECT_FALSE(rank.record.now.has_value());
    EXPECT_GT(rank.record.num_ops, 200);
    EXPECT_GT(rank.record.num_collectives[static_cast<size_t>(Stream::Dp)], 0);
    EXPECT_GT(rank.record.num_collectives[static_cast<size_t>(Stream::Tp)], 0);
  }
}

}  // namespace
}  // namespace shardc
