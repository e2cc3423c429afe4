// The backward of a step against its forward. The forward is taken as it is: nothing in a plan says what model is
// meant. From it the backward is made again, by the VJP of each op, and followed on terms; the plan's own step is
// followed too, and for each parameter the terms that go into its update must be those, of every microbatch once. Since
// terms do not tell what was computed again from what was kept, or gathered again from what stayed, this covers
// recomputation, accumulation, chunks of the loss and what is left out for frozen parameters.
//
// The losses of the evaluation are compared with those of the step: one model is trained and evaluated.
//
// The same for what the update takes besides: the norm has the squares of every trained vector once, summed over all
// ranks that have parts of it; and each vector is looked through for what is not finite.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "compiler/ops/backward.h"
#include "compiler/ops/loss.h"
#include "compiler/ops/rewrite.h"
#include "compiler/ops/symbolic.h"
#include "compiler/ops/unit_collectives.h"
#include "compiler/ops/verify_internal.h"

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

/// What the step computes in one pass over its microbatch, and round it.
struct StepParts {
  size_t body_begin = 0;
  size_t body_end = 0;
  int64_t microbatches = 1;
};

/// The loop that has the forward; all of the step where no loop has.
auto PartsOf(const std::vector<Op>& ops) -> StepParts {
  StepParts parts{.body_begin = 0, .body_end = ops.size(), .microbatches = 1};
  size_t open = ops.size();
  bool has_forward = false;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].As<op::Repeat>() != nullptr) {
      open = i;
    } else if (ops[i].As<op::EndRepeat>() != nullptr) {
      if (has_forward) {
        return {.body_begin = open + 1, .body_end = i, .microbatches = ops[open].As<op::Repeat>()->count};
      }
      open = ops.size();
    } else {
      has_forward = has_forward || (open < ops.size() && ops[i].phase == Phase::Forward);
    }
  }
  return parts;
}

class BackwardVerifier {
 public:
  BackwardVerifier(const Plan& plan, Findings& findings, const RankPoint& point)
      : plan_(plan),
        findings_(findings),
        ops_(plan.section(SectionKind::Step).ops),
        point_(point),
        run_(plan, &terms_, point),
        updates_(static_cast<size_t>(plan.sub_vectors.size())),
        expected_(static_cast<size_t>(plan.parameters.size())) {
    scratch_.mesh = plan.mesh;
    scratch_.buffers = plan.buffers;
    scratch_.values = plan.values;
    scratch_.parameters = plan.parameters;
    scratch_.heads = plan.heads;
    for (const SubVectorId id : plan.sub_vectors.ids()) {
      if (const ValueId slice = GatheredSlice(plan.sub_vectors[id]); slice.valid()) {
        vector_of_slice_[run_.Read(slice)] = id;
        if (plan.mesh.size(plan.sub_vectors[id].axes) == 1) {
          KnowVector(id, run_.Read(slice));
        }
      }
    }
  }

  auto Check() -> void {
    const StepParts parts = PartsOf(ops_);
    FollowRange(0, parts.body_begin);
    for (int64_t index = 0; index < std::min<int64_t>(parts.microbatches, 2); ++index) {
      run_.set_repeat(index);
      forward_terms_ = outer_terms_;
      FollowRange(parts.body_begin, parts.body_end);
      if (index == 0 && !Derive(parts)) {
        return;
      }
      ExpectMicrobatch();
    }
    run_.set_repeat(0);
    FollowRange(parts.body_end, ops_.size());
    if (findings_.empty()) {
      Gradients();
      Norm();
      Evaluation();
    }
  }

 private:
  /// What an update takes, where the step is there.
  struct Update {
    const op::Adamw* op = nullptr;
    size_t index = 0;
    TermId gradient;
    TermId factor;
  };

  auto NameOf(SubVectorId id) const -> std::string { return shardc::NameOf(plan_, plan_.sub_vectors[id]); }
  /// The whole of a unit's parameters, in the type that is computed in: its parts are known as parameters from here on.
  auto KnowVector(SubVectorId id, TermId vector) -> void {
    const SubVector& sub_vector = plan_.sub_vectors[id];
    const int64_t size = SizeOf(sub_vector.compute);
    for (const Segment& segment : sub_vector.segments) {
      if (segment.end * size <= terms_[vector].bytes) {
        parameter_of_term_[terms_.Slice(vector, segment.begin * size, segment.end * size)] = segment.parameter;
      }
    }
  }
  auto FollowRange(size_t begin, size_t end) -> void {
    for (size_t i = begin; i < end && findings_.Spend(run_.work() - spent_); ++i) {
      spent_ = run_.work();
      Follow(i);
    }
  }
  auto Follow(size_t index) -> void;
  /// Makes the backward from the forward; false where there is none.
  auto Derive(const StepParts& parts) -> bool;
  /// The forward op with each parameter under one name, wherever it is read.
  auto ForwardOf(const Op& op) -> Op;
  auto ParameterNamed(ParameterId id, ValueId read) -> ValueId;
  /// Follows the backward that was made, on the terms of the forward of this microbatch.
  auto ExpectMicrobatch() -> void;
  /// The vectors of gradients, each a microbatch's or the sum of all, that were added up in what an update takes.
  auto VectorsOf(TermId gradient) -> std::vector<TermId>;
  auto Gradients() -> void;
  auto CheckGradient(SubVectorId id, const Segment& segment, const std::vector<TermId>& vectors) -> bool;
  auto Norm() -> void;
  /// Asks of what the last op of `run` added to that it began at zero.
  auto CheckSums(SectionKind section, size_t index, const SymbolicRun& run) -> void;
  /// Follows the evaluation on the samples of the step's first microbatch.
  auto Evaluation() -> void;
  /// Puts what the step's first microbatch has in the place of what the op loads.
  auto LoadAsInStep(const Op& op, SymbolicRun& evaluation) -> void;
  /// Asks that `chain` adds up result `result` of one sum_squares of each vector that is trained. `summed`: with the
  /// axes over which the squares are to be summed.
  auto CheckSquares(SectionKind section, size_t index, std::string_view field, TermId chain, int result, bool summed)
      -> void;
  auto ReportDifference(std::string_view parameter, TermId expected, TermId found, size_t index) -> void;
  auto Describe(TermId id) const -> std::string;
  auto ConstantsOf(const Op& op) const -> std::string {
    ConstantsText text(plan_);
    VisitBody(op.body, [&](const auto& body) { VisitFields(body, text); });
    return text.text;
  }
  /// What the op that ran last, a loss, adds to its sum.
  auto LossAdded(const SymbolicRun& run, ValueId loss) const -> TermId {
    const TermId term = std::ranges::find(run.touched(), loss, &std::pair<ValueId, TermId>::first)->second;
    return terms_[term].kind == TermKind::Sum ? terms_[term].operands[1] : term;
  }
  /// The place in the step of the op that made the term; none where it is one of those that were made from the forward.
  auto IndexOf(const Term& term) const -> std::optional<size_t> {
    const bool own = term.op != nullptr && term.op >= ops_.data() && term.op < ops_.data() + ops_.size();
    return own ? std::optional<size_t>(term.op - ops_.data()) : std::nullopt;
  }

  const Plan& plan_;
  Findings& findings_;
  const std::vector<Op>& ops_;
  RankPoint point_;
  Terms terms_;
  SymbolicRun run_;
  int expected_microbatches_ = 0;
  /// Of its work, what the findings know of.
  size_t spent_ = 0;
  std::unordered_map<TermId, SubVectorId> vector_of_slice_;
  std::unordered_map<TermId, ParameterId> parameter_of_term_;

  /// Tables for the backward that is made: the plan's, with one value for each parameter, and the gradients.
  Plan scratch_;
  std::unordered_map<int32_t, ValueId> parameter_values_;
  std::vector<Op> derived_;
  std::map<ParameterId, ValueId> derived_gradients_;
  /// What the values of the forward hold, those outside of the loop and all of this microbatch.
  std::unordered_map<ValueId, TermId> outer_terms_;
  std::unordered_map<ValueId, TermId> forward_terms_;

  /// Of the first microbatch: the sum of each chunk of each head's loss.
  std::vector<TermId> losses_;
  std::vector<Update> updates_;
  std::optional<std::pair<size_t, TermId>> control_;
  /// For each parameter, what its update has to add up.
  std::vector<std::vector<TermId>> expected_;
};

auto BackwardVerifier::Follow(size_t index) -> void {
  const Op& op = ops_[index];
  if (op.As<op::Repeat>() != nullptr || op.As<op::EndRepeat>() != nullptr) {
    return;
  }
  run_.Run(op);
  CheckSums(SectionKind::Step, index, run_);
  if (const auto* gather = ParameterGatherOf(plan_, op)) {
    const auto slice = vector_of_slice_.find(run_.touched()[0].second);
    if (slice != vector_of_slice_.end()) {
      KnowVector(slice->second, run_.Read(gather->full));
    }
  }
  if (op.phase != Phase::Backward && op.phase != Phase::Recompute) {
    for (const auto& [value, term] : run_.touched()) {
      forward_terms_[value] = term;
      if (op.phase == Phase::None) {
        outer_terms_[value] = term;
      }
    }
  }
  if (const auto loss = LossOf(op); loss && op.phase == Phase::Forward && expected_microbatches_ == 0) {
    losses_.push_back(LossAdded(run_, loss->loss));
  }
  if (const auto* adamw = op.As<op::Adamw>()) {
    updates_[static_cast<size_t>(adamw->sub_vector.index)] = {
        .op = adamw, .index = index, .gradient = run_.touched()[0].second, .factor = run_.touched()[1].second};
  }
  if (op.As<op::Control>() != nullptr) {
    control_ = {index, run_.touched()[0].second};
  }
}

auto BackwardVerifier::ParameterNamed(ParameterId id, ValueId read) -> ValueId {
  const auto [found, fresh] = parameter_values_.try_emplace(id.index);
  if (fresh) {
    const Value& value = plan_.values[read];
    const BufferId buffer = scratch_.buffers.Add(
        {.name = {}, .arena = Arena::Transient, .category = Category::Parameters, .bytes = value.bytes()});
    Value own = value;
    own.buffer = buffer;
    own.offset = {};
    own.name = plan_.parameters[id].name;
    found->second = scratch_.values.Add(std::move(own));
  }
  return found->second;
}

auto BackwardVerifier::ForwardOf(const Op& op) -> Op {
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

auto BackwardVerifier::Derive(const StepParts& parts) -> bool {
  // After the loop, what it carried has the name that it came in by.
  std::unordered_map<ValueId, ValueId> carried;
  std::vector<Op> forward;
  for (size_t i = 0; i < ops_.size(); ++i) {
    const Op& op = ops_[i];
    if (const auto* carry = op.As<op::Carry>()) {
      carried[carry->first] = carry->last;
    }
    const bool is_forward = op.phase == Phase::Forward && ParameterGatherOf(plan_, op) == nullptr &&
                            op.As<op::Copy>() == nullptr && op.As<op::Release>() == nullptr;
    const bool divides =
        op.phase == Phase::None && (op.As<op::AllReduce>() != nullptr || op.As<op::Divide>() != nullptr);
    if (is_forward || divides) {
      forward.push_back(ForwardOf(op));
      if (i >= parts.body_end) {
        ReplaceReads(forward.back().body, [&](ValueId& id) { id = carried.contains(id) ? carried.at(id) : id; });
      }
    }
  }
  const int32_t own_buffers = scratch_.buffers.size();
  if (const auto refusal = EmitBackward(&scratch_, forward, &derived_)) {
    findings_.Add("backward-unknown"_rule, "the forward of section step has no backward: {}", *refusal);
    return false;
  }
  std::unordered_map<std::string_view, ParameterId> by_name;
  for (const ParameterId id : plan_.parameters.ids()) {
    by_name[plan_.parameters[id].name] = id;
  }
  std::erase_if(derived_, [](const Op& op) { return op.phase != Phase::Backward; });
  for (const Op& op : derived_) {
    for (const Access& access : AccessesOf(op.body)) {
      const Value& value = scratch_.values[access.value];
      if (access.kind != AccessKind::Read && value.buffer.index >= own_buffers &&
          scratch_.buffers[value.buffer].category == Category::Gradients) {
        const std::string_view name = value.name;
        derived_gradients_[by_name.at(name.substr(0, name.size() - GradientSuffix.size()))] = access.value;
      }
    }
  }
  return true;
}

auto BackwardVerifier::ExpectMicrobatch() -> void {
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
  ++expected_microbatches_;
}

auto BackwardVerifier::VectorsOf(TermId gradient) -> std::vector<TermId> {
  std::vector<TermId> vectors;
  const auto narrowed = [&](TermId vector) {
    return terms_[vector].As<op::Cast>() != nullptr ? terms_[vector].operands[0] : vector;
  };
  while (!terms_.IsZero(gradient)) {
    const Term term = terms_[gradient];
    if (term.kind == TermKind::Sum) {
      const Term& added = terms_[term.operands[1]];
      vectors.push_back(added.As<op::ReduceScatter>() != nullptr ? narrowed(added.operands[0]) : term.operands[1]);
      gradient = term.operands[0];
    } else if (term.As<op::AllReduce>() != nullptr) {
      gradient = term.operands[0];
    } else if (term.kind == TermKind::Parts && term.parts.size() == 1 &&
               terms_[term.parts[0].term].As<op::AllReduce>() != nullptr) {
      // One of several that were summed side by side.
      gradient = terms_.Slice(terms_[term.parts[0].term].operands[0], term.parts[0].begin, term.parts[0].end);
    } else if (term.As<op::Add>() != nullptr) {
      vectors.push_back(term.operands[0]);
      gradient = term.operands[1];
    } else {
      vectors.push_back(term.As<op::ReduceScatter>() != nullptr ? narrowed(term.operands[0]) : gradient);
      break;
    }
  }
  std::ranges::reverse(vectors);
  return vectors;
}

auto BackwardVerifier::CheckGradient(SubVectorId id, const Segment& segment, const std::vector<TermId>& vectors)
    -> bool {
  const size_t update = updates_[static_cast<size_t>(id.index)].index;
  const std::string& name = plan_.parameters[segment.parameter].name;
  std::vector<TermId> found;
  for (const TermId vector : vectors) {
    const int64_t size = SizeOf(DType::F32);
    if (terms_[vector].bytes != plan_.sub_vectors[id].length * size) {
      findings_.AddOp(SectionKind::Step, update, "backward-differs"_rule,
                      "takes {}, which is not a sum of the gradients of all elements of {}", Describe(vector),
                      NameOf(id));
      return false;
    }
    const std::vector<TermId> addends = terms_.Addends(terms_.Slice(vector, segment.begin * size, segment.end * size));
    found.insert(found.end(), addends.begin(), addends.end());
  }
  const std::vector<TermId>& expected = expected_[static_cast<size_t>(segment.parameter.index)];
  const auto [wanted, other] = std::ranges::mismatch(expected, found);
  if (wanted != expected.end() && other != found.end()) {
    ReportDifference(name, *wanted, *other, update);
    return false;
  }
  if (wanted != expected.end() || other != found.end()) {
    findings_.AddOp(SectionKind::Step, update, "backward-differs"_rule,
                    "takes {} terms for the gradient of {}, the forward's backward has {}: {} is {}", found.size(),
                    name, expected.size(), wanted != expected.end() ? Describe(*wanted) : Describe(*other),
                    wanted != expected.end() ? "missing" : "too many");
    return false;
  }
  return true;
}

auto BackwardVerifier::Gradients() -> void {
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    const Update& update = updates_[static_cast<size_t>(id.index)];
    if (update.op == nullptr) {
      continue;
    }
    const std::vector<TermId> vectors = VectorsOf(update.gradient);
    for (const Segment& segment : plan_.sub_vectors[id].segments) {
      // One finding: those of other parameters would follow from the same op.
      if (!CheckGradient(id, segment, vectors)) {
        return;
      }
    }
  }
}

auto BackwardVerifier::CheckSquares(SectionKind section, size_t index, std::string_view field, TermId chain, int result,
                                    bool summed) -> void {
  std::vector<int> counts(updates_.size(), 0);
  AxisSet axes;
  for (bool more = true; more;) {
    const Term term = terms_[chain];
    if (const auto* sum = term.As<op::AllReduce>()) {
      axes = axes | sum->axes;
      chain = term.operands[0];
      continue;
    }
    more = term.kind == TermKind::Sum;
    const Term& squares = terms_[more ? term.operands[1] : chain];
    const auto* own = squares.As<op::SumSquares>();
    if (own == nullptr || squares.result != result) {
      findings_.AddOp(section, index, "squares"_rule, "{} adds up {}, expected sums of squares of gradients", field,
                      Describe(more ? term.operands[1] : chain));
      return;
    }
    const SubVector& sub_vector = plan_.sub_vectors[own->sub_vector];
    const AxisSet over = sub_vector.tp_replicated ? sub_vector.axes : sub_vector.axes | AxisSet::Of(Axis::Tp);
    if (summed && Spread(plan_.mesh, axes) != Spread(plan_.mesh, over)) {
      findings_.AddOp(section, index, "squares"_rule, "{} has the squares of {} summed over {}, expected {}", field,
                      NameOf(own->sub_vector), ToText(Spread(plan_.mesh, axes)), ToText(Spread(plan_.mesh, over)));
    }
    const auto of = static_cast<size_t>(own->sub_vector.index);
    ++counts[of];
    if (updates_[of].op != nullptr && updates_[of].gradient != squares.operands[0]) {
      findings_.AddOp(section, index, "squares"_rule,
                      "{} has squares of {} that are not those of the gradient that updates it", field,
                      NameOf(own->sub_vector));
    }
    chain = more ? term.operands[0] : chain;
  }
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    const int expected = plan_.sub_vectors[id].trainable ? 1 : 0;
    if (const int count = counts[static_cast<size_t>(id.index)]; count != expected) {
      findings_.AddOp(section, index, "squares"_rule, "{} has the squares of {} {} times, expected {}", field,
                      NameOf(id), count, expected);
    }
  }
}

auto BackwardVerifier::Norm() -> void {
  TermId checked;
  for (const Update& update : updates_) {
    if (update.op == nullptr || update.factor == checked) {
      continue;
    }
    checked = update.factor;
    const Term& factor = terms_[checked];
    if (factor.As<op::ClipFactor>() == nullptr || factor.result != 1) {
      findings_.AddOp(SectionKind::Step, update.index, "clip-factor"_rule,
                      "scales by {}, expected the factor of clip_factor", Describe(checked));
      continue;
    }
    CheckSquares(SectionKind::Step, *IndexOf(factor), "sum", factor.operands[0], 0, true);
  }
  if (control_) {
    CheckSquares(SectionKind::Step, control_->first, "bad", control_->second, 1, false);
  }
}

auto BackwardVerifier::CheckSums(SectionKind section, size_t index, const SymbolicRun& run) -> void {
  for (const auto& [value, term] : run.touched()) {
    const Term& sum = terms_[term];
    const auto* fill = sum.kind == TermKind::Sum ? terms_[sum.operands[0]].As<op::Fill>() : nullptr;
    if (fill != nullptr && fill->value != 0) {
      findings_.AddOp(section, index, "sum-start"_rule, "adds to {}, which begins at {}", plan_.values[value].name,
                      fill->value);
    }
  }
}

auto BackwardVerifier::LoadAsInStep(const Op& op, SymbolicRun& evaluation) -> void {
  const auto* tokens = op.As<op::LoadTokens>();
  const auto* targets = op.As<op::LoadTargets>();
  const HeadId head = tokens != nullptr ? tokens->head : targets->head;
  const auto put = [&](ValueId loaded, ValueId trained) {
    const BufferId buffer = plan_.values[trained].buffer;
    const int64_t bytes = plan_.values[loaded].bytes().value;
    const int64_t all = plan_.buffers[buffer].bytes.value;
    if (bytes <= all) {
      evaluation.Put(loaded, terms_.Slice(terms_.Memory(buffer, all), 0, bytes));
    }
  };
  for (const Op& load : plan_.section(SectionKind::Data).ops) {
    if (const auto* own = load.As<op::LoadTokens>(); own != nullptr && own->head == head) {
      put(tokens != nullptr ? tokens->targets : targets->targets, own->targets);
      if (tokens != nullptr) {
        put(tokens->tokens, own->tokens);
      }
    } else if (const auto* other = load.As<op::LoadTargets>(); other != nullptr && other->head == head) {
      put(tokens != nullptr ? tokens->targets : targets->targets, other->targets);
    }
  }
}

auto BackwardVerifier::Evaluation() -> void {
  const std::vector<Op>& ops = plan_.section(SectionKind::Eval).ops;
  SymbolicRun evaluation(plan_, &terms_, point_);
  size_t found = 0;
  for (size_t i = 0; i < ops.size() && findings_.empty(); ++i) {
    const Op& op = ops[i];
    if (op.As<op::LoadTokens>() != nullptr || op.As<op::LoadTargets>() != nullptr) {
      LoadAsInStep(op, evaluation);
    } else if (op.As<op::Repeat>() == nullptr && op.As<op::EndRepeat>() == nullptr) {
      evaluation.Run(op);
      CheckSums(SectionKind::Eval, i, evaluation);
    }
    const auto own = LossOf(op);
    if (!own) {
      continue;
    }
    const TermId loss = LossAdded(evaluation, own->loss);
    if (found >= losses_.size() || loss != losses_[found]) {
      findings_.AddOp(SectionKind::Eval, i, "eval-differs"_rule,
                      "computes another loss of the same samples than section step does{}",
                      found < losses_.size() ? "" : ", which has fewer terms");
    }
    ++found;
  }
  if (!ops.empty() && found < losses_.size() && findings_.empty()) {
    findings_.Add("eval-differs"_rule, "section eval has {} terms of the loss, section step {}", found, losses_.size());
  }
  findings_.Spend(evaluation.work());
}

auto BackwardVerifier::Describe(TermId id) const -> std::string {
  const Term& term = terms_[id];
  switch (term.kind) {
    case TermKind::Memory: return fmt::format("{} bytes from before the step", term.bytes);
    case TermKind::Sum: return fmt::format("a sum of {} terms", terms_.Addends(id).size());
    case TermKind::Parts: return fmt::format("{} bytes in {} parts", term.bytes, term.parts.size());
    case TermKind::Result: break;
  }
  return VisitBody(term.op->body, [&](const auto& body) {
    return fmt::format("result {} of {}{}", term.result, std::remove_cvref_t<decltype(body)>::Mnemonic,
                       ConstantsOf(*term.op));
  });
}

auto BackwardVerifier::ReportDifference(std::string_view parameter, TermId expected, TermId found, size_t index)
    -> void {
  std::string field = "gradient";
  // Down to the first op that is another, or takes another operand that no op makes.
  for (bool deeper = true; deeper;) {
    deeper = false;
    const Term& e = terms_[expected];
    const Term& f = terms_[found];
    if (e.kind != f.kind) {
      break;
    }
    if (e.kind == TermKind::Result) {
      index = IndexOf(f).value_or(index);
      if (e.op->kind() != f.op->kind() || e.result != f.result || ConstantsOf(*e.op) != ConstantsOf(*f.op)) {
        break;
      }
    }
    const auto [wanted, other] = std::ranges::mismatch(e.operands, f.operands);
    if (wanted != e.operands.end() && other != f.operands.end()) {
      if (e.kind == TermKind::Result) {
        field = AccessesOf(f.op->body)[static_cast<size_t>(other - f.operands.begin())].field;
      }
      expected = *wanted;
      found = *other;
      deeper = true;
    } else if (e.kind == TermKind::Parts) {
      for (size_t i = 0; i < std::min(e.parts.size(), f.parts.size()) && !deeper; ++i) {
        if (e.parts[i].term != f.parts[i].term) {
          expected = e.parts[i].term;
          found = f.parts[i].term;
          deeper = true;
        }
      }
    }
  }
  findings_.AddOp(SectionKind::Step, index, "backward-differs"_rule,
                  "for the gradient of {}, the forward's backward has {} here (as {}), and this is {}", parameter,
                  Describe(expected), field, Describe(found));
}

}  // namespace

auto VerifyBackward(const Plan& plan, Findings& findings) -> void {
  // Once, of the whole plan: what passes leave on the way is in the making.
  if (!plan.Established(PassKind::Synchronize) || !plan.Established(PassKind::Update)) {
    return;
  }
  BackwardVerifier(plan, findings, {}).Check();
  // Places are affine in the coordinates: what holds for the first rank and for the next along each axis holds for all.
  for (int i = 0; i < NumAxes && findings.empty(); ++i) {
    const bool differs = std::ranges::any_of(
        plan.values, [&](const Value& value) { return value.offset.axis[static_cast<size_t>(i)] != 0; });
    if (differs) {
      RankPoint point;
      point.coordinates[static_cast<size_t>(i)] = 1;
      BackwardVerifier(plan, findings, point).Check();
    }
  }
}

}  // namespace shardc
