// Adds up a plan.
//   memory: what is alive at each op of each section (memory_walk.h), and at the peak by name (alive.h)
//   communication and FLOPs: Cost of each op, times the repeats round it (communication.h, figures.h)
#include "compiler/report/report.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "compiler/ops/loss.h"
#include "compiler/ops/ops.h"
#include "compiler/ops/unit_collectives.h"
#include "compiler/plan/header.h"
#include "compiler/plan/init_rule.h"
#include "compiler/plan/loops.h"
#include "compiler/plan/text.h"

namespace shardc {

/// Returns "matmul, block 3, backward: mlp.down_proj.grad".
static auto Summary(const Op& op, const Plan& plan) -> std::string {
  std::string text(ToText(op.kind()));
  text += op.layer >= 0 ? fmt::format(", block {}", op.layer) : "";
  text += op.phase != Phase::None ? fmt::format(", {}", ToText(op.phase)) : "";
  for (const Access& access : AccessesOf(op.body)) {
    if (access.kind != AccessKind::Read) {
      return fmt::format("{}, of {}", text, plan.buffers[plan.values[access.value].buffer].name);
    }
  }
  return text;
}

static auto PeakOf(const Plan& plan, SectionKind kind, const std::vector<MemoryUse>& over_ops) -> MemoryPeak {
  const auto most = std::ranges::max_element(over_ops, {}, &MemoryUse::total);
  const Op& op = plan.section(kind).ops[static_cast<size_t>(most - over_ops.begin())];
  return {.section = kind,
          .op_index = most - over_ops.begin(),
          .op_summary = Summary(op, plan),
          .op_text = PrintOp(op, plan),
          .use = *most};
}

static auto InitOf(const Plan& plan) -> std::vector<InitUse> {
  std::vector<InitUse> uses;
  std::map<std::pair<int32_t, std::string>, size_t> rows;
  for (const Parameter& parameter : plan.parameters) {
    const auto block = LoadedBlockOf(parameter);
    const std::string rule = block && block->indices.empty() ? "seed" : parameter.init;
    const auto [row, fresh] = rows.try_emplace({parameter.init_origin.line, rule}, uses.size());
    if (fresh) {
      uses.push_back({.rule = rule,
                      .recipe_line = parameter.init_origin.line,
                      .num_parameters = 0,
                      .num_elements = 0,
                      .first_parameter = parameter.name});
    }
    uses[row->second].num_parameters += 1;
    uses[row->second].num_elements += parameter.num_elements();
  }
  return uses;
}

/// Requires: the plan has a seed.
static auto SeedUseOf(const Plan& plan) -> SeedUse {
  SeedUse use;
  const std::vector<bool> reads = ReadsSeed(plan);
  for (const ParameterId id : plan.parameters.ids()) {
    const Parameter& parameter = plan.parameters[id];
    const bool is_loaded = LoadedTensorOf(parameter).has_value();
    const bool is_read = reads[static_cast<size_t>(id.index)];
    (is_loaded ? use.num_loaded : is_read ? use.num_read : use.num_generated) += 1;
    (is_loaded ? use.loaded_elements
     : is_read ? use.read_elements
               : use.generated_elements) += parameter.num_elements();
    use.num_with_moments += is_loaded && TakesMoments(plan, parameter) ? 1 : 0;
  }
  if (const auto first = KeysOf(plan).start.first) {
    use.unused = first->unused.value_or(std::vector<std::string>());
  }
  for (const Op& op : plan.section(SectionKind::Init).ops) {
    const StateUse state = FactsOf(op).state;
    if (state == StateUse::Load || state == StateUse::LoadMoment) {
      use.read_by_rank =
          use.read_by_rank + VisitBody(op.body, [&](const auto& own) { return Cost(own, plan).written; });
    }
  }
  return use;
}

/// Fills in how often each unit is gathered in a step, for how long, and what is kept of it in between.
static auto AddGathers(const Plan& plan, std::vector<UnitUse>& units) -> void {
  std::map<ValueId, size_t> unit_of_shard;
  for (const SubVectorId id : plan.sub_vectors.ids()) {
    unit_of_shard[GatheredSlice(plan.sub_vectors[id])] = static_cast<size_t>(id.index);
  }
  std::map<BufferId, size_t> gathered_in_forward;
  LoopTracker loops;
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    loops.Enter(op);
    if (const auto gather = ParameterGatherOf(plan, op); gather && unit_of_shard.contains(gather->from)) {
      const size_t unit = unit_of_shard.at(gather->from);
      units[unit].num_gathers += loops.count();
      if (op.phase == Phase::Forward) {
        gathered_in_forward[plan.values[gather->to].buffer] = unit;
      }
    } else if (const auto renamed = CopyOf(op)) {
      if (const auto of = gathered_in_forward.find(plan.values[renamed->from].buffer);
          of != gathered_in_forward.end()) {
        unit_of_shard[renamed->to] = of->second;
        units[of->second].kept_slice = plan.values[renamed->to].bytes();
      }
    } else if (const BufferId released = ReleasedBufferOf(op.body); released.valid() && op.phase != Phase::Forward) {
      if (const auto gathered = gathered_in_forward.find(released); gathered != gathered_in_forward.end()) {
        units[gathered->second].kept_for_backward = true;
      }
    }
  }
}

/// Returns the most of `buffers` that are alive at once in a step.
static auto RingOf(const Plan& plan, const std::unordered_set<BufferId>& buffers) -> RingUse {
  RingUse ring;
  RingUse now;
  const auto change = [&](BufferId id, int64_t by) {
    if (buffers.contains(id)) {
      now.depth += by;
      now.bytes += plan.buffers[id].bytes * by;
    }
  };
  WalkLives(
      plan, SectionKind::Step, [&](BufferId id) { change(id, 1); },
      [&](size_t) {
        ring.depth = std::max(ring.depth, now.depth);
        ring.bytes = std::max(ring.bytes, now.bytes);
      },
      [&](BufferId id) { change(id, -1); });
  return ring;
}

static auto AddRingsAndLoss(const Plan& plan, Report& report) -> void {
  std::unordered_set<BufferId> gathered;
  std::unordered_set<BufferId> reduced;
  std::optional<HeadId> first_head;
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    if (const auto gather = ParameterGatherOf(plan, op)) {
      gathered.insert(plan.values[gather->to].buffer);
    } else if (const auto scatter = GradientScatterOf(plan, op)) {
      reduced.insert(plan.values[scatter->from].buffer);
    } else if (const auto loss = LossOf(op)) {
      // Every head has as many.
      first_head = first_head.value_or(loss->head);
      report.loss.chunks += loss->head == *first_head ? 1 : 0;
      report.loss.logits = std::max(report.loss.logits, plan.values[loss->logits].bytes());
    }
  }
  report.loss.heads.assign(plan.heads.begin(), plan.heads.end());
  report.gather_ring = RingOf(plan, gathered);
  report.reduce_ring = RingOf(plan, reduced);
}

static auto GradientSumsOf(const Plan& plan) -> GradientSums {
  GradientSums sums;
  for (const SubVector& sub_vector : plan.sub_vectors) {
    if (sub_vector.trainable) {
      const Bytes whole{sub_vector.length * SizeOf(DType::F32)};
      sums.whole += whole;
      sums.slices += whole / plan.mesh.size(sub_vector.axes);
    }
  }
  LoopTracker loops;
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    loops.Enter(op);
    sums.are_whole |= !loops.in_loop() && plan.run.accumulate > 1 && GradientScatterOf(plan, op);
  }
  return sums;
}

auto Explain(const Plan& plan) -> Report {
  CHECK(plan.Established(PassKind::Allocate), "explain needs an allocated plan");
  Report report;
  report.plan = &plan;
  report.plan_hash = PlanHash(plan);
  report.preset = PresetUseOf(plan);
  report.shares = StateSharesOf(plan);
  report.adapters = AdapterUsesOf(plan);
  report.parameters_total = report.shares.trained.num_elements + report.shares.frozen.num_elements;
  for (const SubVector& sub_vector : plan.sub_vectors) {
    report.parameters_per_rank += sub_vector.length / plan.mesh.size(sub_vector.axes);
    int64_t elements = 0;
    for (const Segment& segment : sub_vector.segments) {
      elements += segment.end - segment.begin;
    }
    const Unit& unit = plan.units[sub_vector.unit];
    report.units.push_back({.name = NameOf(plan, sub_vector),
                            .num_elements = elements,
                            .gathered = Bytes{sub_vector.length * SizeOf(sub_vector.compute)},
                            .reshard_after_forward = unit.reshard_after_forward,
                            .num_gathers = 0,
                            .kept_for_backward = false,
                            .kept_slice = {},
                            .trainable = sub_vector.trainable,
                            .is_whole = IsWhole(sub_vector, plan.mesh)});
  }
  AddGathers(plan, report.units);
  // One kind after another, so that what is alike is together.
  std::stable_sort(report.units.begin(), report.units.end(), [](const UnitUse& a, const UnitUse& b) {
    return std::pair(!a.trainable, a.is_whole) < std::pair(!b.trainable, b.is_whole);
  });
  for (int i = 0; i < NumSections; ++i) {
    const auto kind = static_cast<SectionKind>(i);
    std::vector<MemoryUse> over_ops = MemoryOverOps(plan, kind);
    if (!over_ops.empty()) {
      report.section_peaks.push_back(PeakOf(plan, kind, over_ops));
    }
    if (kind == SectionKind::Step) {
      report.memory_over_step = std::move(over_ops);
    }
  }
  std::stable_sort(report.section_peaks.begin(), report.section_peaks.end(),
                   [](const MemoryPeak& a, const MemoryPeak& b) { return a.use.total() > b.use.total(); });
  if (!report.section_peaks.empty()) {
    report.peak = report.section_peaks.front();
    report.alive_at_peak = AliveAt(plan, report.peak.section, report.peak.op_index);
  }
  report.blocks = BlockActivationsOf(plan);
  report.reserved = ReservedBytes(plan);
  report.flops = StepFlopsOf(plan);
  report.checkpoint = CheckpointBytesOf(plan);
  report.in_base = BytesInBaseOf(plan);
  report.step_communication = CommunicationOf(plan, SectionKind::Step);
  report.overlaps = OverlapsOf(plan);
  report.time = StepTimeOf(plan);
  AddRingsAndLoss(plan, report);
  report.gradient_sums = GradientSumsOf(plan);
  report.init = InitOf(plan);
  if (plan.seed.is_set()) {
    report.seed = SeedUseOf(plan);
  }
  report.schedules = SchedulesOf(plan);
  report.mixture = MixtureOf(plan);
  return report;
}

}  // namespace shardc
