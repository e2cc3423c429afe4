// 1. Walk the section: where each buffer is born, read first, read last, and by which phase and block.
// 2. Choose the key of each buffer that is alive at the op, by what the buffer is and why it is still there.
// 3. Fold buffers that differ by the number of a block alone.

#include "compiler/explain/alive.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "compiler/base/devices.h"
#include "compiler/explain/fold.h"
#include "compiler/ops/loss.h"
#include "compiler/ops/unit_collectives.h"

namespace shardc {

namespace {

struct Life {
  int64_t born = -1;
  int64_t died = -1;
  Phase born_phase = Phase::None;
  Phase died_phase = Phase::None;
  int32_t layer = -1;
  /// The first op that reads what lies there.
  int64_t first_read = -1;
  bool is_read_at_peak = false;
  /// Does a forward op of another block read it?
  bool crosses_blocks = false;
  bool is_logits = false;
  /// Does an op after forward read it, so that it need not be kept if that op's operand is computed again?
  bool is_read_after = false;
  SubVectorId sub_vector;
  /// The key that bounds an op's scratch.
  std::string_view scratch_key;
};

using Lives = std::vector<Life>;

}  // namespace

static auto LivesOf(const Plan& plan, SectionKind section, int64_t peak) -> Lives {
  Lives lives(plan.buffers.size());
  const std::vector<Op>& ops = plan.section(section).ops;
  const auto life_of = [&](BufferId id) -> Life& { return lives[static_cast<size_t>(id.index)]; };
  for (size_t i = 0; i < ops.size(); ++i) {
    const Op& op = ops[i];
    const auto index = static_cast<int64_t>(i);
    const auto loss = LossOf(op);
    for (const Access& access : AccessesOf(op.body)) {
      const Value& value = plan.values[access.value];
      Life& life = life_of(value.buffer);
      if (life.born < 0) {
        life.born = index;
        life.born_phase = op.phase;
        life.layer = op.layer;
      } else if (life.first_read < 0 && access.kind != AccessKind::Write) {
        life.first_read = index;
      }
      life.is_read_at_peak |= index == peak;
      life.crosses_blocks |= op.phase == Phase::Forward && op.layer != life.layer;
      life.is_read_after |= op.phase == Phase::Backward || op.phase == Phase::Recompute;
      life.is_logits |= loss && loss->logits == access.value;
      if (access.value == ValueIn(op.body, "scratch")) {
        life.scratch_key = FactsOf(op).scratch_key;
      }
      life.sub_vector = life.sub_vector.valid() ? life.sub_vector : value.role.sub_vector();
    }
    if (const BufferId dead = ReleasedBufferOf(op.body); dead.valid()) {
      life_of(dead).died = index;
      life_of(dead).died_phase = op.phase;
    }
  }
  return lives;
}

/// Returns the key that lowers what each rank has of a sequence: fewer sequences, or more ranks that share them.
static auto KeyOfSequences(const Plan& plan) -> std::string {
  return plan.run.micro_batch > 1 ? "batch.micro" : "mesh.tp";
}

/// Returns the key for a whole unit, or its whole gradients: smaller units, unless one parameter is most of the unit.
static auto KeyOfWhole(const Plan& plan, const Life& life) -> std::string {
  if (!life.sub_vector.valid()) {
    return "";
  }
  const SubVector& sub_vector = plan.sub_vectors[life.sub_vector];
  const bool is_of_one = std::ranges::any_of(
      sub_vector.segments, [&](const Segment& segment) { return segment.end - segment.begin > sub_vector.length / 2; });
  return is_of_one ? "mesh.tp" : "shard.units";
}

static auto KeyOfGathered(const Plan& plan, const Life& life, int64_t at) -> std::string {
  if (life.first_read > at) {
    return life.born_phase == Phase::Forward ? "shard.prefetch_forward" : "shard.prefetch_backward";
  }
  const bool is_kept = life.born_phase == Phase::Forward && life.died_phase != Phase::Forward;
  if (is_kept && !life.is_read_at_peak && life.sub_vector.valid()) {
    // Kept for backward: the key that decided it is on record. A default has no key.
    const Unit& unit = plan.units[plan.sub_vectors[life.sub_vector].unit];
    if (!unit.reshard_after_forward) {
      const std::string_view key = unit.origin.key.text();
      return key.empty() ? "shard.reshard_after_forward" : std::string(key);
    }
  }
  return KeyOfWhole(plan, life);
}

static auto KeyOfActivations(const Plan& plan, const Life& life) -> std::string {
  if (life.is_logits) {
    return "loss.chunks";
  }
  const bool is_kept = life.born_phase == Phase::Forward && life.died_phase != Phase::Forward;
  const bool is_of_block = life.layer >= 0 && !life.crosses_blocks;
  return is_kept && is_of_block && life.is_read_after ? "recompute.policy" : KeyOfSequences(plan);
}

/// Returns the key for gradients. Whole gradients, which a reduce-scatter reads, are as large as a unit; a slice is as
/// small as there are ranks.
static auto KeyOfGradients(const Plan& plan, const Life& life, Bytes bytes) -> std::string {
  if (!life.sub_vector.valid()) {
    return "";
  }
  const SubVector& sub_vector = plan.sub_vectors[life.sub_vector];
  const bool is_whole = bytes.value > sub_vector.length * SizeOf(DType::F32) / plan.mesh.size(sub_vector.axes);
  return is_whole ? KeyOfWhole(plan, life) : "mesh.dp";
}

static auto KeyOf(const Plan& plan, const Buffer& buffer, const Life& life, int64_t at) -> std::string {
  switch (buffer.category) {
    case Category::Parameters:
    case Category::Moments: return "mesh.dp";
    case Category::Gradients: return KeyOfGradients(plan, life, buffer.bytes);
    case Category::Gathered: return KeyOfGathered(plan, life, at);
    case Category::Activations: return KeyOfActivations(plan, life);
    case Category::Data: return plan.run.micro_batch > 1 ? "batch.micro" : "";
    case Category::Collective: return "";
    case Category::Workspace:
      // Without a fixed order no scores are kept, and nothing is left to bound.
      return FactsOf(plan.device).family == DeviceFamily::Cuda && plan.run.deterministic ? std::string(life.scratch_key)
                                                                                         : "";
  }
  CHECK(false, "category {}", static_cast<int>(buffer.category));
}

auto AliveAt(const Plan& plan, SectionKind section, int64_t op_index) -> std::vector<AliveBuffers> {
  const Lives lives = LivesOf(plan, section, op_index);
  std::vector<AliveBuffers> rows;
  std::map<std::tuple<std::string, Category, Bytes, std::string>, size_t> row_of;
  for (const BufferId id : plan.buffers.ids()) {
    const Buffer& buffer = plan.buffers[id];
    const Life& life = lives[static_cast<size_t>(id.index)];
    const bool is_born = life.born >= 0 && life.born <= op_index;
    const bool is_alive = IsPersistent(buffer.arena) || (is_born && (life.died < 0 || life.died >= op_index));
    if (!is_alive || buffer.bytes == Bytes{}) {
      continue;
    }
    const NumberedName name = Numbered(buffer.name);
    const std::string key = KeyOf(plan, buffer, life, op_index);
    const auto [row, fresh] = row_of.try_emplace({name.pattern, buffer.category, buffer.bytes, key}, rows.size());
    if (fresh) {
      rows.push_back({.name = name.pattern, .blocks = {}, .category = buffer.category, .key = key});
    }
    AliveBuffers& alike = rows[row->second];
    alike.count += 1;
    alike.bytes += buffer.bytes;
    if (name.number) {
      alike.blocks.push_back(*name.number);
    }
  }
  for (AliveBuffers& alike : rows) {
    std::ranges::sort(alike.blocks);
  }
  std::ranges::stable_sort(rows, [](const AliveBuffers& a, const AliveBuffers& b) { return a.bytes > b.bytes; });
  return rows;
}

}  // namespace shardc
