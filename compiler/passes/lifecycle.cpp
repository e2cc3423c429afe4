// The sections round the step: how state begins, comes back and is kept; and when each section runs.
//
// Needs: units and their state. Gives: `init`, `restore` and `save`, and the trigger table.
#include <algorithm>
#include <iterator>

#include "compiler/ops/emitter.h"
#include "compiler/passes/pass.h"
#include "compiler/plan/init_rule.h"

namespace shardc {

/// Emits the compute type's copy after the parameters.
static auto MakeCopy(const SubVector& sub_vector, Emitter& emitter) -> void {
  if (sub_vector.compute_copy.valid()) {
    emitter.Emit(op::Cast{.x = sub_vector.shard, .y = sub_vector.compute_copy});
  }
}

static auto RolesOf(const SubVector& sub_vector) -> std::vector<StateRole> {
  std::vector<StateRole> roles;
  std::copy_if(StateRoles.begin(), StateRoles.end(), std::back_inserter(roles),
               [&](StateRole role) { return HasRole(sub_vector, role); });
  return roles;
}

/// Clears slices, so that padding holds zeros, and then draws or loads each parameter's own part.
static auto MakeInit(Plan& plan) -> void {
  Emitter emitter(&plan, &plan.section(SectionKind::Init).ops, PassKind::Lifecycle);
  for (const SubVectorId id : plan.sub_vectors.ids()) {
    const SubVector& sub_vector = plan.sub_vectors[id];
    for (const StateRole role : RolesOf(sub_vector)) {
      emitter.set_origin({});
      emitter.Emit(op::Fill{.out = StateOf(sub_vector, role), .value = 0});
    }
    for (const Segment& segment : sub_vector.segments) {
      emitter.set_origin(plan.parameters[segment.parameter].init_origin);
      if (LoadedTensorOf(plan.parameters[segment.parameter])) {
        emitter.Emit(op::LoadParameter{.shard = sub_vector.shard, .sub_vector = id, .parameter = segment.parameter});
      } else {
        emitter.Emit(op::Initialize{.shard = sub_vector.shard, .sub_vector = id, .parameter = segment.parameter});
      }
      for (const StateRole role : RolesOf(sub_vector)) {
        if (role != StateRole::Parameter && TakesMoments(plan, plan.parameters[segment.parameter])) {
          emitter.Emit(op::LoadMoment{
              .shard = StateOf(sub_vector, role), .sub_vector = id, .parameter = segment.parameter, .role = role});
        }
      }
    }
    MakeCopy(sub_vector, emitter);
  }
}

static auto MakeRestore(Plan& plan, const Origin& origin) -> void {
  Emitter emitter(&plan, &plan.section(SectionKind::Restore).ops, PassKind::Lifecycle);
  emitter.set_origin(origin);
  for (const SubVectorId id : plan.sub_vectors.ids()) {
    for (const StateRole role : RolesOf(plan.sub_vectors[id])) {
      emitter.Emit(op::RestoreShard{.shard = StateOf(plan.sub_vectors[id], role), .sub_vector = id, .role = role});
    }
    MakeCopy(plan.sub_vectors[id], emitter);
  }
  emitter.Emit(op::RestoreScalars{});
}

/// Emits the save. All of the state is looked at before anything is written: no run can come back to a state that is
/// not finite.
static auto MakeSave(Plan& plan, const Origin& origin) -> void {
  Emitter emitter(&plan, &plan.section(SectionKind::Save).ops, PassKind::Lifecycle);
  emitter.set_origin(origin);
  ValueId bad;
  for (const SubVectorId id : plan.sub_vectors.ids()) {
    for (const StateRole role : RolesOf(plan.sub_vectors[id])) {
      const ValueType type{DType::I64, {1}};
      const std::string name = fmt::format("{}.{}.bad", NameOf(plan, plan.sub_vectors[id]), ToText(role));
      const ValueId next = bad.valid() ? emitter.Alias(bad, type, name) : emitter.New(type, Category::Workspace, name);
      emitter.Emit(op::CheckFinite{
          .shard = StateOf(plan.sub_vectors[id], role), .bad = next, .bad_onto = bad, .sub_vector = id, .role = role});
      bad = next;
    }
  }
  emitter.Emit(op::SaveBegin{.bad = bad});
  for (const SubVectorId id : plan.sub_vectors.ids()) {
    for (const StateRole role : RolesOf(plan.sub_vectors[id])) {
      emitter.Emit(op::SaveShard{.shard = StateOf(plan.sub_vectors[id], role), .sub_vector = id, .role = role});
    }
  }
  emitter.Emit(op::SaveCommit{});
}

auto Lifecycle(Plan plan, PassContext& context) -> ErrorOr<Plan> {
  const Recipe& recipe = *context.recipe;
  MakeInit(plan);
  switch (*recipe.start.restart) {
    case Restart::Resume: MakeRestore(plan, OriginOf(recipe.start.restart, "start.restart")); break;
  }
  MakeSave(plan, OriginOf(recipe.checkpoint.every, "checkpoint.every"));

  plan.triggers = {{SectionKind::Init, TriggerKind::First, 0},
                   {SectionKind::Restore, TriggerKind::Restart, 0},
                   {SectionKind::Data, TriggerKind::EachStep, 0},
                   {SectionKind::Step, TriggerKind::EachStep, 0}};
  // A family that does not rotate has no constants.
  if (!plan.section(SectionKind::Constants).ops.empty()) {
    plan.triggers.insert(plan.triggers.begin(), {SectionKind::Constants, TriggerKind::Load, 0});
  }
  if (!plan.section(SectionKind::Eval).ops.empty()) {
    if (*recipe.train.eval_every > 0) {
      plan.triggers.push_back({SectionKind::Eval, TriggerKind::EverySteps, *recipe.train.eval_every});
    }
    plan.triggers.push_back({SectionKind::Eval, TriggerKind::End, 0});
  }
  if (*recipe.checkpoint.every > 0) {
    plan.triggers.push_back({SectionKind::Save, TriggerKind::EverySteps, *recipe.checkpoint.every});
  }
  plan.triggers.push_back({SectionKind::Save, TriggerKind::End, 0});
  plan.triggers.push_back({SectionKind::Save, TriggerKind::Stop, 0});
  return plan;
}

}  // namespace shardc
