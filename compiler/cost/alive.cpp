// 1. Walk the section: where each buffer is born, read first, read last, and by which phase and block.
// 2. Find out what each buffer that is alive at the op is there for. The key is that of schemas/fit_keys.def.
// 3. Fold buffers that differ by the number of a block alone.
// 4. Take the key back where the row would not fall. With the key set, the peak may lie at another op, so it falls only
//    if less of that name is alive there, wherever that is. Take it back too where more ranks would be refused.

#include "compiler/cost/alive.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "compiler/base/devices.h"
#include "compiler/cost/fit_keys.h"
#include "compiler/cost/fold.h"
#include "compiler/cost/more_ranks.h"
#include "compiler/ops/loss.h"
#include "compiler/ops/unit_collectives.h"
#include "compiler/plan/header.h"

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
  /// Does an op of another block read it?
  bool crosses_blocks = false;
  /// Is it a block's result, for the next block?
  bool ends_block = false;
  /// Is it the whole of what ranks along tp have parts of?
  bool is_whole_over_tp = false;
  bool is_logits = false;
  /// Does an op after forward read it, so that it need not be kept if that op's operand is computed again?
  bool is_read_after = false;
  SubVectorId sub_vector;
  /// Is it scratch that a key bounds?
  bool is_bounded_scratch = false;
};

using Lives = std::vector<Life>;

}  // namespace

static auto LivesOf(const Plan& plan, SectionKind section, int64_t peak) -> Lives {
  Lives lives(plan.buffers.size());
  const std::vector<Op>& ops = plan.section(section).ops;
  std::map<int32_t, BufferId> last_written;
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
      if (op.phase == Phase::Forward && access.kind != AccessKind::Read) {
        last_written[op.layer] = value.buffer;
      }
      life.crosses_blocks |= op.layer != life.layer;
      life.is_read_after |= op.phase == Phase::Backward || op.phase == Phase::Recompute;
      life.is_logits |= loss && loss->logits == access.value;
      life.is_bounded_scratch |= access.is_scratch && FactsOf(op).has_bounded_scratch;
      life.sub_vector = life.sub_vector.valid() ? life.sub_vector : value.role.sub_vector();
    }
    if (const auto collective = CollectiveOf(op); collective && collective->axes.Has(Axis::Tp)) {
      const bool gathers = FactsOf(op).collective == CollectiveKind::AllGather;
      life_of(plan.values[gathers ? collective->to : collective->from].buffer).is_whole_over_tp = true;
    }
    if (const BufferId dead = ReleasedBufferOf(op.body); dead.valid()) {
      life_of(dead).died = index;
      life_of(dead).died_phase = op.phase;
    }
  }
  for (const auto& [layer, buffer] : last_written) {
    life_of(buffer).ends_block = true;
  }
  // Fusing ops may have given the residual stream a second buffer, of the same name with a number.
  const auto base = [](const Buffer& buffer) { return std::string_view(buffer.name).substr(0, buffer.name.find('#')); };
  std::set<std::string_view> results;
  for (const BufferId id : plan.buffers.ids()) {
    if (life_of(id).ends_block || life_of(id).crosses_blocks) {
      results.insert(base(plan.buffers[id]));
    }
  }
  for (const BufferId id : plan.buffers.ids()) {
    life_of(id).ends_block = results.contains(base(plan.buffers[id]));
  }
  return lives;
}

static auto IsKept(const Life& life) -> bool {
  return life.born_phase == Phase::Forward && life.died_phase != Phase::Forward;
}

/// Returns Sequences if fewer of them lower the buffer, OneSequence if only more ranks that share a sequence do.
static auto HeldOfSequences(const Plan& plan, const Life& life) -> Held {
  // With more ranks along tp the policy keeps what they reduce.
  const bool may_be_kept = plan.mesh.size(Axis::Tp) == 1 && life.layer >= 0 && !IsKept(life);
  if (plan.run.micro_batch > 1) {
    return Held::Sequences;
  }
  return life.is_whole_over_tp || may_be_kept ? Held::Nothing : Held::OneSequence;
}

/// Returns true of parameters that each rank along tp has whole: the short ones, such as those of norms.
static auto IsShort(const Plan& plan, const Life& life) -> bool {
  return life.sub_vector.valid() && plan.mesh.size(Axis::Tp) > 1 &&
         !plan.sub_vectors[life.sub_vector].cut.Has(Axis::Tp);
}

/// Returns true of units of a size: such a unit takes as many more parameters as these have fewer elements.
static auto HasUnitsOfSize(const PlanKeys& keys) -> bool { return keys.shard.units.value_or("").starts_with("size:"); }

/// Returns Units if smaller units lower a whole unit or its whole gradients. They do not if one parameter is most of
/// it.
static auto HeldOfWhole(const Plan& plan, const PlanKeys& keys, const Life& life) -> Held {
  if (!life.sub_vector.valid() || IsShort(plan, life)) {
    return Held::Nothing;
  }
  const SubVector& sub_vector = plan.sub_vectors[life.sub_vector];
  const bool is_of_one = std::ranges::any_of(
      sub_vector.segments, [&](const Segment& segment) { return segment.end - segment.begin > sub_vector.length / 2; });
  return !is_of_one ? Held::Units : HasUnitsOfSize(keys) ? Held::Nothing : Held::LargeParameter;
}

/// Returns true of a part of gathered parameters that a rank keeps from forward to backward.
static auto IsKeptSlice(const Plan& plan, const Buffer& buffer, const Life& life) -> bool {
  if (buffer.category != Category::Gathered || !life.sub_vector.valid()) {
    return false;
  }
  const SubVector& sub_vector = plan.sub_vectors[life.sub_vector];
  return buffer.bytes.value < sub_vector.length * SizeOf(sub_vector.compute);
}

static auto HeldOfGathered(const Plan& plan, const PlanKeys& keys, const Buffer& buffer, const Life& life, int64_t at)
    -> Held {
  if (IsKeptSlice(plan, buffer, life)) {
    return Held::KeptSlices;
  }
  if (IsShort(plan, life)) {
    return Held::Nothing;
  }
  if (life.first_read > at) {
    return life.born_phase == Phase::Forward ? Held::AheadInForward : Held::AheadInBackward;
  }
  const bool is_kept = IsKept(life) && !life.is_read_at_peak && life.sub_vector.valid() &&
                       !plan.units[plan.sub_vectors[life.sub_vector].unit].reshard_after_forward;
  return is_kept ? Held::KeptUnits : HeldOfWhole(plan, keys, life);
}

static auto HeldOfActivations(const Plan& plan, const Life& life) -> Held {
  if (life.is_logits) {
    return Held::Logits;
  }
  const bool is_of_block = life.layer >= 0 && !life.ends_block;
  return IsKept(life) && is_of_block && life.is_read_after ? Held::BlockResults : HeldOfSequences(plan, life);
}

/// Returns what gradients are there for. Whole gradients, which a reduce-scatter reads, are as large as a unit; a slice
/// is as small as there are ranks.
static auto HeldOfGradients(const Plan& plan, const PlanKeys& keys, const Life& life, Bytes bytes) -> Held {
  if (!life.sub_vector.valid()) {
    return Held::Nothing;
  }
  const SubVector& sub_vector = plan.sub_vectors[life.sub_vector];
  const bool is_whole = bytes.value > sub_vector.length * SizeOf(DType::F32) / plan.mesh.size(sub_vector.axes);
  return is_whole ? HeldOfWhole(plan, keys, life) : Held::Slices;
}

static auto HeldOf(const Plan& plan, const PlanKeys& keys, const Buffer& buffer, const Life& life, int64_t at) -> Held {
  switch (buffer.category) {
    case Category::Parameters:
    case Category::Moments: return Held::Slices;
    case Category::Gradients: return HeldOfGradients(plan, keys, life, buffer.bytes);
    case Category::Gathered: return HeldOfGathered(plan, keys, buffer, life, at);
    case Category::Activations: return HeldOfActivations(plan, life);
    // Tokens of a step are there at once, however it is cut.
    case Category::Data:
    case Category::Collective: return Held::Nothing;
    case Category::Workspace:
      // Without a fixed order no scores are kept, and nothing is left to bound.
      return life.is_bounded_scratch && FactsOf(plan.device).family == DeviceFamily::Cuda && plan.run.deterministic
                 ? Held::Scratch
                 : Held::Nothing;
  }
  CHECK(false, "category {}", static_cast<int>(buffer.category));
}

/// Returns the key that lowers the memory. Kept units name the key that decided to keep them; a default has no key.
static auto KeyOf(const Plan& plan, Held held, const Life& life) -> std::string_view {
  const std::string_view decided =
      held == Held::KeptUnits ? plan.units[plan.sub_vectors[life.sub_vector].unit].origin.key.text() : "";
  return decided.empty() ? KeyThatLowers(held) : decided;
}

namespace {

/// All buffers of one name, but for the number of their block.
struct NameUse {
  Bytes now;
  Bytes at_peak;
  int64_t count_at_peak = 0;
  /// Those that lie there for backward, and are not read at the peak.
  int64_t count_kept = 0;
  /// At any op of any section.
  Bytes most;
};

/// A row, with what decides whether its key lowers it.
struct Row {
  AliveBuffers alike;
  Held held = Held::Nothing;
  /// The largest share of a buffer that is left with twice as many ranks along dp.
  double left_of_slice = 0;
  /// Buffers of blocks whose results backward computes again, or would with another policy.
  int64_t count_of_policy = 0;
};

/// Judges rows by what the whole plan has of each name.
class Judge {
 public:
  Judge(const Plan& plan, const PlanKeys& keys);

  auto PatternOf(BufferId id) const -> const std::string& { return *patterns_[static_cast<size_t>(id.index)]; }
  auto NumberOf(BufferId id) const -> std::optional<int64_t> { return numbers_[static_cast<size_t>(id.index)]; }
  auto NoteAlive(BufferId id, bool is_kept) -> void {
    NameUse& use = UseOf(id);
    use.at_peak += plan_.buffers[id].bytes;
    use.count_at_peak += 1;
    use.count_kept += is_kept ? 1 : 0;
  }
  /// Returns true if the policy decides what forward keeps of the block.
  auto HasPolicy(int32_t layer) const -> bool {
    return keys_.recompute.policy == RecomputePolicy::None ? keys_.recompute.layers == Condition{"true"}
                                                           : again_.contains(layer);
  }
  auto Lowers(const Row& row) const -> bool;

 private:
  auto UseOf(BufferId id) -> NameUse& { return *uses_of_[static_cast<size_t>(id.index)]; }

  const Plan& plan_;
  const PlanKeys& keys_;
  /// Blocks of which ops are computed again.
  std::set<int32_t> again_;
  std::map<std::string, NameUse> uses_;
  std::vector<const std::string*> patterns_;
  std::vector<std::optional<int64_t>> numbers_;
  std::vector<NameUse*> uses_of_;
};

Judge::Judge(const Plan& plan, const PlanKeys& keys) : plan_(plan), keys_(keys) {
  for (const Buffer& buffer : plan.buffers) {
    NumberedName name = Numbered(buffer.name);
    const auto [use, fresh] = uses_.try_emplace(std::move(name.pattern));
    patterns_.push_back(&use->first);
    numbers_.push_back(name.number);
    uses_of_.push_back(&use->second);
  }
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    if (op.phase == Phase::Recompute) {
      again_.insert(op.layer);
    }
  }
  for (const BufferId id : plan.buffers.ids()) {
    UseOf(id).now += IsPersistent(plan.buffers[id].arena) ? plan.buffers[id].bytes : Bytes{};
  }
  for (auto& [pattern, use] : uses_) {
    use.most = use.now;
  }
  for (int i = 0; i < NumSections; ++i) {
    WalkLives(
        plan, static_cast<SectionKind>(i),
        [&](BufferId id) {
          NameUse& use = UseOf(id);
          use.now += plan.buffers[id].bytes;
          use.most = std::max(use.most, use.now);
        },
        [](size_t) {}, [&](BufferId id) { UseOf(id).now -= plan.buffers[id].bytes; });
  }
}

auto Judge::Lowers(const Row& row) const -> bool {
  const NameUse& use = uses_.at(row.alike.name);
  const auto at_peak = static_cast<double>(use.at_peak.value);
  const auto most = static_cast<double>(use.most.value);
  // Units of a size may be smaller than a block.
  const int64_t in_use = HasUnitsOfSize(keys_) ? plan_.units.size() : 1;
  const bool has_ring = keys_.shard.gather_ring.has_value();
  const int64_t forward = PrefetchDepth(plan_, keys_.shard.prefetch_forward);
  const int64_t backward = PrefetchDepth(plan_, keys_.shard.prefetch_backward);
  // One unit is in use wherever the peak is.
  const auto is_ahead = [&](int64_t depth, int64_t other_depth) {
    const auto num_kept = std::ranges::count(plan_.units, false, &Unit::reshard_after_forward);
    return depth > 0 && !has_ring && use.count_at_peak > in_use + num_kept + other_depth;
  };
  switch (row.held) {
    case Held::Slices: {
      // A rank alone keeps whole gradients, of which several ranks have two or three beside their slices.
      const bool is_alone = row.alike.category == Category::Gradients && plan_.mesh.size(Axis::Dp) == 1;
      return is_alone ? keys_.batch.reduce == BatchReduce::Each && use.count_at_peak > 3
                      : most * row.left_of_slice < at_peak;
    }
    case Held::Sequences:
    case Held::OneSequence:
    case Held::LargeParameter: return most / 2 < at_peak;
    // Backward has the results of one block at once.
    case Held::BlockResults: return keys_.recompute.policy != RecomputePolicy::Full && row.count_of_policy > 1;
    case Held::AheadInForward: return is_ahead(forward, backward);
    case Held::AheadInBackward: return is_ahead(backward, forward);
    case Held::KeptUnits: return !has_ring && use.count_kept > in_use + std::max(forward, backward);
    case Held::Nothing:
    case Held::Logits:
    case Held::Units:
    case Held::KeptSlices:
    case Held::Scratch: return true;
  }
  CHECK(false, "memory {}", static_cast<int>(row.held));
}

}  // namespace

/// Returns the share of a slice that is left with twice as many ranks along dp.
static auto LeftOfSlice(const Plan& plan, const Life& life) -> double {
  if (!life.sub_vector.valid()) {
    return 1;
  }
  const SubVector& sub_vector = plan.sub_vectors[life.sub_vector];
  if (!sub_vector.axes.Has(Axis::Dp)) {
    return 1;
  }
  int64_t elements = 0;
  for (const Segment& segment : sub_vector.segments) {
    elements = std::max(elements, segment.end);
  }
  const int64_t ranks = plan.mesh.size(sub_vector.axes);
  const int64_t slice = RoundUp(elements, ranks * SubVectorAlignment) / ranks;
  const int64_t half = RoundUp(elements, 2 * ranks * SubVectorAlignment) / (2 * ranks);
  return static_cast<double>(half) / static_cast<double>(slice);
}

auto AliveAt(const Plan& plan, SectionKind section, int64_t op_index) -> std::vector<AliveBuffers> {
  const Lives lives = LivesOf(plan, section, op_index);
  const PlanKeys keys = KeysOf(plan);
  Judge judge(plan, keys);
  std::vector<Row> rows;
  std::map<std::tuple<std::string_view, Category, Bytes, std::string_view>, size_t> row_of;
  for (const BufferId id : plan.buffers.ids()) {
    const Buffer& buffer = plan.buffers[id];
    const Life& life = lives[static_cast<size_t>(id.index)];
    const bool is_born = life.born >= 0 && life.born <= op_index;
    const bool is_alive = IsPersistent(buffer.arena) || (is_born && (life.died < 0 || life.died >= op_index));
    if (!is_alive || buffer.bytes == Bytes{}) {
      continue;
    }
    judge.NoteAlive(id, IsKept(life) && !life.is_read_at_peak);
    const std::string& name = judge.PatternOf(id);
    const Held held = HeldOf(plan, keys, buffer, life, op_index);
    const std::string_view key = KeyOf(plan, held, life);
    const auto [place, fresh] = row_of.try_emplace({name, buffer.category, buffer.bytes, key}, rows.size());
    if (fresh) {
      rows.push_back(
          {.alike = {.name = name, .blocks = {}, .category = buffer.category, .key = std::string(key)}, .held = held});
    }
    Row& row = rows[place->second];
    row.alike.count += 1;
    row.alike.bytes += buffer.bytes;
    if (const auto number = judge.NumberOf(id)) {
      row.alike.blocks.push_back(*number);
    }
    row.left_of_slice = std::max(row.left_of_slice, LeftOfSlice(plan, life));
    row.count_of_policy += judge.HasPolicy(life.layer) ? 1 : 0;
  }
  std::vector<AliveBuffers> alive;
  for (Row& row : rows) {
    std::ranges::sort(row.alike.blocks);
    row.alike.key = judge.Lowers(row) && !NeedsRefusedRanks(plan, keys, row.alike.key) ? row.alike.key : "";
    alive.push_back(std::move(row.alike));
  }
  std::ranges::stable_sort(alive, [](const AliveBuffers& a, const AliveBuffers& b) { return a.bytes > b.bytes; });
  return alive;
}

}  // namespace shardc
