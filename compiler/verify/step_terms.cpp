#include "compiler/verify/step_terms.h"

#include <algorithm>
#include <concepts>

#include "compiler/ops/backward.h"
#include "compiler/ops/loss.h"
#include "compiler/ops/rewrite.h"
#include "compiler/ops/unit_collectives.h"

namespace shardc {

namespace {

/// The constants of an op, "transpose_a=true head=h0".
struct ConstantsText : IgnoreFields {
  const Plan& plan;
  std::string text = {};
  explicit ConstantsText(const Plan& the_plan) : plan(the_plan) {}
  template <class T>
  auto Attr(std::string_view name, const T& value) -> void {
    if constexpr (std::is_arithmetic_v<T>) {
      text += fmt::format(" {}={}", name, value);
    } else if constexpr (std::same_as<T, AxisSet>) {
      text += fmt::format(" {}={}", name, ToText(value));
    } else if constexpr (std::same_as<T, HeadId>) {
      text += value.valid() ? fmt::format(" {}={}", name, plan.heads[value].name) : "";
    } else if constexpr (std::same_as<T, SubVectorId>) {
      text += fmt::format(" {}={}", name, NameOf(plan, plan.sub_vectors[value]));
    }
  }
};

}  // namespace

StepTerms::StepTerms(const Plan& plan, Findings& findings, const RankPoint& point)
    : plan_(plan),
      findings_(findings),
      ops_(plan.section(SectionKind::Step).ops),
      point_(point),
      run_(plan, &terms_, point),
      detached_(plan, &terms_),
      updates_(static_cast<size_t>(plan.sub_vectors.size())),
      expected_(static_cast<size_t>(plan.parameters.size())) {
  scratch_.mesh = plan.mesh;
  scratch_.buffers = plan.buffers;
  scratch_.values = plan.values;
  scratch_.parameters = plan.parameters;
  scratch_.heads = plan.heads;
  for (const Op& op : plan.section(SectionKind::Data).ops) {
    if (const auto load = SampleLoadOf(op); load && load->targets.valid()) {
      const BufferId buffer = plan.values[load->targets].buffer;
      TermsOf(SectionKind::Step).targets[load->head] = terms_.Memory(buffer, plan.buffers[buffer].bytes.value);
    }
  }
  for (const SubVectorId id : plan.sub_vectors.ids()) {
    if (const ValueId slice = GatheredSlice(plan.sub_vectors[id]); slice.valid()) {
      vector_of_slice_[run_.Read(slice)] = id;
      if (plan.mesh.size(plan.sub_vectors[id].axes) == 1) {
        KnowVector(id, run_.Read(slice));
      }
    }
  }
}

auto StepTerms::Follow() -> bool {
  const MicrobatchLoop loop = LoopOfStep();
  FollowRange(0, loop.body_begin);
  for (int64_t index = 0; index < std::min<int64_t>(loop.microbatches, 2); ++index) {
    run_.set_repeat(index);
    forward_terms_ = outer_terms_;
    FollowRange(loop.body_begin, loop.body_end);
    if (index == 0 && (!findings_.empty() || !Derive(loop))) {
      return false;
    }
    ExpectMicrobatch();
  }
  run_.set_repeat(0);
  FollowRange(loop.body_end, ops_.size());
  return findings_.empty();
}

/// Returns the loop that has the forward; all of the step if no loop has it.
auto StepTerms::LoopOfStep() const -> MicrobatchLoop {
  MicrobatchLoop loop{.body_begin = 0, .body_end = ops_.size(), .microbatches = 1};
  size_t open = ops_.size();
  bool has_forward = false;
  for (size_t i = 0; i < ops_.size(); ++i) {
    const LoopEdge edge = LoopEdgeOf(ops_[i]);
    if (edge == LoopEdge::Begin) {
      open = i;
    } else if (edge == LoopEdge::End) {
      if (has_forward) {
        return {.body_begin = open + 1, .body_end = i, .microbatches = LoopCountOf(ops_[open])};
      }
      open = ops_.size();
    } else {
      has_forward = has_forward || (open < ops_.size() && ops_[i].phase == Phase::Forward);
    }
  }
  return loop;
}

auto StepTerms::FollowRange(size_t begin, size_t end) -> void {
  for (size_t i = begin; i < end && findings_.Spend(run_.work() - spent_); ++i) {
    spent_ = run_.work();
    FollowOp(i);
  }
}

auto StepTerms::KnowVector(SubVectorId id, TermId vector) -> void {
  const SubVector& sub_vector = plan_.sub_vectors[id];
  const int64_t size = SizeOf(sub_vector.compute);
  for (const Segment& segment : sub_vector.segments) {
    if (segment.end * size <= terms_[vector].bytes) {
      parameter_of_term_[terms_.Slice(vector, segment.begin * size, segment.end * size)] = segment.parameter;
    }
  }
}

auto StepTerms::FollowOp(size_t index) -> void {
  const Op& op = ops_[index];
  if (LoopEdgeOf(op) != LoopEdge::None) {
    return;
  }
  run_.Run(op);
  CheckSums(SectionKind::Step, index, run_);
  NoteTold(SectionKind::Step, index, op, run_);
  const auto gather = ParameterGatherOf(plan_, op);
  const auto slice = gather ? vector_of_slice_.find(run_.touched()[0].second) : vector_of_slice_.end();
  if (slice != vector_of_slice_.end()) {
    KnowVector(slice->second, run_.Read(gather->to));
  } else {
    CheckAttached(index);
    detached_.Note(op, run_);
  }
  if (op.phase != Phase::Backward && op.phase != Phase::Recompute) {
    for (const auto& [value, term] : run_.touched()) {
      forward_terms_[value] = term;
      if (op.phase == Phase::None) {
        outer_terms_[value] = term;
      }
    }
  }
  if (const auto loss = LossOf(op); loss && op.phase == Phase::Forward && microbatches_ == 0) {
    losses_.push_back(LossAdded(run_, loss->loss));
  }
  if (FactsOf(op).update == UpdatePart::Apply) {
    updates_[static_cast<size_t>(StateTouchOf(op).sub_vector.index)] = {
        .is_made = true, .index = index, .gradient = run_.touched()[0].second, .factor = run_.touched()[1].second};
  }
  if (FactsOf(op).collective == CollectiveKind::Agree) {
    control_ = {index, run_.touched()[0].second};
  }
}

/// Asks that each way from a parameter to the loss leads through ops of the forward only, so that the backward of the
/// forward has a term for it.
auto StepTerms::CheckAttached(size_t index) -> void {
  const Op& op = ops_[index];
  if (op.phase != Phase::Forward) {
    return;
  }
  for (const Access& access : AccessesOf(op.body)) {
    const auto read = std::ranges::find(run_.touched(), access.value, &std::pair<ValueId, TermId>::first);
    if (access.kind != AccessKind::Write && read != run_.touched().end() && detached_.IsDetached(read->second)) {
      findings_.AddOp(SectionKind::Step, index, "forward-detached"_rule,
                      "reads {}, which an op that is not of the forward computed from parameters that are trained",
                      access.field);
    }
  }
}

auto StepTerms::ParameterNamed(ParameterId id, ValueId read) -> ValueId {
  const auto [found, fresh] = parameter_values_.try_emplace(id.index);
  if (fresh) {
    const Value& value = plan_.values[read];
    const BufferId buffer = scratch_.buffers.Add(
        {.name = {}, .arena = Arena::Transient, .category = Category::Parameters, .bytes = value.bytes()});
    Value own = value;
    own.buffer = buffer;
    own.offset = {};
    own.name = plan_.parameters[id].name;
    own.role = ValueRole::Of(id);
    found->second = scratch_.values.Add(std::move(own));
  }
  return found->second;
}

auto StepTerms::ForwardOf(const Op& op) -> Op {
  Op own = op;
  ReplaceReads(own.body, [&](ValueId& id) {
    const auto term = forward_terms_.find(id);
    const auto parameter =
        term == forward_terms_.end() ? parameter_of_term_.end() : parameter_of_term_.find(term->second);
    if (parameter != parameter_of_term_.end()) {
      id = ParameterNamed(parameter->second, id);
    }
  });
  return own;
}

auto StepTerms::Derive(const MicrobatchLoop& loop) -> bool {
  // After the loop, what it carried has the name that it came in by.
  std::unordered_map<ValueId, ValueId> carried;
  std::vector<Op> forward;
  for (size_t i = 0; i < ops_.size(); ++i) {
    const Op& op = ops_[i];
    if (const auto carry = CarryOf(op)) {
      carried[carry->to] = carry->from;
    }
    const bool is_forward = op.phase == Phase::Forward && !ParameterGatherOf(plan_, op) && !CopyOf(op) &&
                            !ReleasedBufferOf(op.body).valid();
    const bool divides =
        op.phase == Phase::None && (FactsOf(op).collective == CollectiveKind::AllReduce || QuotientOf(op));
    if (is_forward || divides) {
      forward.push_back(ForwardOf(op));
      if (i >= loop.body_end) {
        ReplaceReads(forward.back().body, [&](ValueId& id) { id = carried.contains(id) ? carried.at(id) : id; });
      }
    }
  }
  const int32_t own_buffers = scratch_.buffers.size();
  if (const auto refusal = EmitBackward(&scratch_, forward, &derived_)) {
    findings_.Add("backward-unknown"_rule, "the forward of section step has no backward: {}", *refusal);
    return false;
  }
  std::erase_if(derived_, [](const Op& op) { return op.phase != Phase::Backward; });
  for (const Op& op : derived_) {
    for (const Access& access : AccessesOf(op.body)) {
      const Value& value = scratch_.values[access.value];
      const ParameterId parameter = value.role.gradient_of();
      if (access.kind != AccessKind::Read && value.buffer.index >= own_buffers && parameter.valid()) {
        derived_gradients_[parameter] = access.value;
      }
    }
  }
  return true;
}

auto StepTerms::ExpectMicrobatch() -> void {
  SymbolicRun expected(scratch_, &terms_, point_, true);
  for (const auto& [value, term] : forward_terms_) {
    expected.SetName(value, term);
    if (const auto parameter = parameter_of_term_.find(term); parameter != parameter_of_term_.end()) {
      expected.SetName(ParameterNamed(parameter->second, value), term);
    }
  }
  for (const Op& op : derived_) {
    expected.Run(op);
  }
  for (const auto& [parameter, gradient] : derived_gradients_) {
    std::vector<TermId>& all = expected_[static_cast<size_t>(parameter.index)];
    const std::vector<TermId> addends = terms_.Addends(expected.Read(gradient));
    all.insert(all.end(), addends.begin(), addends.end());
  }
  findings_.Spend(expected.work());
  ++microbatches_;
}

auto StepTerms::CheckSums(SectionKind section, size_t index, const SymbolicRun& run) -> void {
  for (const auto& [value, term] : run.touched()) {
    const Term& sum = terms_[term];
    const auto start = sum.kind == TermKind::Sum ? terms_[sum.operands[0]].constant() : std::nullopt;
    if (start.value_or(0) != 0) {
      findings_.AddOp(section, index, "sum-start"_rule, "adds to {}, which begins at {}", plan_.values[value].name,
                      *start);
    }
  }
}

auto StepTerms::NoteTold(SectionKind section, size_t index, const Op& op, const SymbolicRun& run) -> void {
  SectionTerms& own = section_terms_[section];
  if (const auto loss = LossOf(op); loss && op.phase == Phase::Forward) {
    own.losses.emplace_back(loss->head, LossAdded(run, loss->loss));
  }
  for (const ScalarUse& use : ScalarsOf(op)) {
    if (use.effect == ScalarEffect::SetByRank) {
      own.told.push_back({.index = index, .scalar = use.scalar, .term = run.touched()[0].second});
    }
  }
}

auto StepTerms::LossAdded(const SymbolicRun& run, ValueId loss) const -> TermId {
  const TermId term = std::ranges::find(run.touched(), loss, &std::pair<ValueId, TermId>::first)->second;
  return terms_[term].kind == TermKind::Sum ? terms_[term].operands[1] : term;
}

auto StepTerms::IndexOf(const Term& term) const -> std::optional<size_t> {
  const bool own = term.op != nullptr && term.op >= ops_.data() && term.op < ops_.data() + ops_.size();
  return own ? std::optional<size_t>(term.op - ops_.data()) : std::nullopt;
}

auto StepTerms::Describe(TermId id) const -> std::string {
  const Term& term = terms_[id];
  switch (term.kind) {
    case TermKind::Memory: return fmt::format("{} bytes from before the step", term.bytes);
    case TermKind::Sum: return fmt::format("a sum of {} terms", terms_.Addends(id).size());
    case TermKind::Joined: return fmt::format("{} bytes in {} parts", term.bytes, term.ranges.size());
    case TermKind::Result: break;
  }
  return VisitBody(term.op->body, [&](const auto& body) {
    return fmt::format("result {} of {}{}", term.result, std::remove_cvref_t<decltype(body)>::Mnemonic,
                       ConstantsOf(*term.op));
  });
}

auto StepTerms::ConstantsOf(const Op& op) const -> std::string {
  ConstantsText text(plan_);
  VisitBody(op.body, [&](const auto& body) { VisitFields(body, text); });
  return text.text;
}

}  // namespace shardc
