// Every op of a few plans, moved after an op that reads what it writes, is refused: in place too, where the bytes held
// an earlier value before.
#include <gtest/gtest.h>

#include "compiler/plan/text.h"
#include "compiler/verify/verify.h"
#include "tests/support/plan_samples.h"

namespace shardc {
namespace {

/// Returns true if the op updates the value under its name, as it does with state.
auto IsInOut(const Access& access) -> bool { return access.kind == AccessKind::ReadWrite && !access.kills.valid(); }

auto ShareBytes(const Plan& plan, ValueId a, ValueId b) -> bool {
  const Value& first = plan.values[a];
  const Value& second = plan.values[b];
  const int64_t begin = first.offset.Evaluate({});
  const int64_t other = second.offset.Evaluate({});
  return first.buffer == second.buffer && begin < other + second.bytes().value && other < begin + first.bytes().value;
}

/// Returns true if the op needs what `written` left. Two ops that both update one value may change places.
auto ReadsWhat(const Plan& plan, const Access& written, const Op& op) -> bool {
  for (const Access& access : AccessesOf(op.body)) {
    const ValueId read = access.kills.valid() ? access.kills : access.value;
    if (access.kind != AccessKind::Write && !(IsInOut(access) && IsInOut(written)) &&
        ShareBytes(plan, written.value, read)) {
      return true;
    }
  }
  return false;
}

/// Returns the index of the first op after `index` that reads what its access `written` writes; 0 if no op does in this
/// life of the buffer.
auto FirstReader(const Plan& plan, const std::vector<Op>& ops, size_t index, const Access& written) -> size_t {
  if (written.kind == AccessKind::Read || written.is_scratch) {
    return 0;
  }
  for (size_t i = index + 1; i < ops.size(); ++i) {
    if (ReadsWhat(plan, written, ops[i])) {
      return i;
    }
    if (ReleasedBufferOf(ops[i].body) == plan.values[written.value].buffer) {
      return 0;
    }
  }
  return 0;
}

/// Moves each op of a section after the first op that reads each of its results. Returns the number of moves.
auto MoveEach(const Plan& plan, SectionKind section) -> int {
  const std::vector<Op>& ops = plan.section(section).ops;
  int moves = 0;
  for (size_t from = 0; from < ops.size(); ++from) {
    size_t last = 0;
    for (const Access& written : AccessesOf(ops[from].body)) {
      const size_t reader = FirstReader(plan, ops, from, written);
      if (reader == 0 || reader == last) {
        continue;
      }
      last = reader;
      Plan moved = plan;
      std::vector<Op>& changed = moved.section(section).ops;
      std::rotate(changed.begin() + static_cast<std::ptrdiff_t>(from),
                  changed.begin() + static_cast<std::ptrdiff_t>(from) + 1,
                  changed.begin() + static_cast<std::ptrdiff_t>(reader) + 1);
      ++moves;
      EXPECT_FALSE(VerifyPlan(moved).empty())
          << ToText(section) << " op " << from << " `" << PrintOp(ops[from], plan) << "` stands after `"
          << PrintOp(ops[reader], plan) << "`, which reads " << NameOf(plan, written.value);
    }
  }
  return moves;
}

TEST(MovedOps, AfterReaderAreRefused) {
  const std::string head = R"(loss.head=[{ name = "image", vocab = 8, targets = ["t.bin"], weight = 0.25 }])";
  const std::string rule = R"(init.rule=[{ match = "*", value = 1 }])";
  const std::vector<std::vector<std::string>> samples{
      {head, rule, "loss.chunks=2"},
      {head, rule, "mesh.tp=2", "model.family=qwen3", "model.tied=false", "precision.compute=bf16"},
      {"mesh.replicate=2", "batch.global=16", "recompute.policy=full", "model.layers=1"},
      {rule, "model.family=qwen2", "model.tied=true", "optimizer.name=sgd", "mesh.dp=1", "mesh.tp=2"},
  };
  int moves = 0;
  for (const std::vector<std::string>& sets : samples) {
    // Events alone would refuse many: before that pass, too.
    for (const std::optional<PassKind> last : {std::optional(PassKind::Schedule), std::optional<PassKind>()}) {
      const Plan plan = CompileSample(sets, last);
      for (int i = 0; i < NumSections; ++i) {
        SCOPED_TRACE(fmt::format("{}{}", fmt::join(sets, " "), last ? ", after schedule" : ""));
        moves += MoveEach(plan, static_cast<SectionKind>(i));
      }
    }
  }
  EXPECT_GT(moves, 1500);
}

}  // namespace
}  // namespace shardc
