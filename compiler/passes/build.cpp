// Builds the forward ops of `step` and `eval` from the recipe.
//
// Needs: nothing. Gives: the header and tables of the plan; the `constants` and `data` sections; the forward of one
// microbatch of one rank, with whole parameters, in `step` and in `eval`; the loss.
//   1. declare parameters, groups and scalars
//   2. constants: the rotary table, if the positions of all samples are the same
//   3. data: the samples of every microbatch of a step, into host memory
//   4. step: for each term of the loss count the valid targets of all microbatches; forward, loss sums, means for the
//      metrics
//   5. eval: the same over the held-out samples, summed in a loop
#include <algorithm>

#include "compiler/check/check_recipe.h"
#include "compiler/check/rope_frequency.h"
#include "compiler/passes/declare_parameters.h"
#include "compiler/passes/loss_terms.h"
#include "compiler/passes/plan_header.h"
#include "compiler/passes/sample_loads.h"
#include "compiler/recipe/owned_keys.h"
#include "compiler/recipe/resolved.h"

namespace shardc {

namespace {

class PlanBuilder {
 public:
  PlanBuilder(Plan* plan, const Recipe* recipe, const ModelFamily* family,
              const std::unordered_map<std::string, ValueId>* parameters)
      : plan_(*plan),
        recipe_(*recipe),
        family_(*family),
        sizes_(ResolveModel(*recipe)),
        batch_(ResolveBatch(*recipe)),
        parameters_(*parameters),
        terms_(LossTermsOf(*recipe)),
        loads_(plan, recipe, batch_, &terms_) {}

  auto Scalars() -> void;
  auto Constants() -> void;
  auto Data() -> void {
    Emitter emitter = EmitterFor(SectionKind::Data);
    loads_.EmitData(emitter);
  }
  auto Step() -> void;
  auto Eval() -> void;

 private:
  auto EmitterFor(SectionKind section) -> Emitter {
    return Emitter(&plan_, &plan_.section(section).ops, PassKind::Build);
  }
  auto Forward(Emitter& emitter, const SampleValues& samples) -> ModelOutput;
  /// Returns the formula of the rotary frequencies, reduced.
  auto Frequency() const -> std::string;
  auto OriginOfFrequency() const -> Origin;
  /// Emits logits and loss sum of each term over all chunks of the sequence, added onto `sums` if these are valid;
  /// returns the last sums.
  auto Loss(Emitter& emitter, const ModelOutput& output, const std::vector<ValueId>& targets, std::vector<ValueId> sums,
            std::string_view name) -> std::vector<ValueId>;
  /// Returns what the sum of a term is divided by to be its share of the loss.
  auto Divisor(Emitter& emitter, const LossTerm& term, ValueId count) -> ValueId;
  /// Emits the loss that is trained on, and the mean of each term by itself if there are several.
  auto ReadMeans(Emitter& emitter, const std::vector<ValueId>& sums, const std::vector<ValueId>& counts,
                 const std::vector<ValueId>& divisors, ScalarRole metric) -> void;
  auto ReadMean(Emitter& emitter, ValueId sum, ValueId count, ScalarId metric) -> void;

  Plan& plan_;
  const Recipe& recipe_;
  const ModelFamily& family_;
  ModelSizes sizes_;
  BatchSizes batch_;
  const std::unordered_map<std::string, ValueId>& parameters_;
  ValueId rope_table_;
  /// The model's own head first.
  std::vector<LossTerm> terms_;
  SampleLoads loads_;
};

const ValueType Sum{DType::F64, {1}};

auto PlanBuilder::Scalars() -> void {
  using enum ScalarRole;
  const auto add = [&](ScalarRole role, std::string name, HeadId head = {}) {
    const std::string expression = role == Lr ? recipe_.optimizer.lr->text : "";
    return plan_.scalars.Add({std::move(name), KindOf(role), expression, role, head});
  };
  for (const ScalarRole role : {Step, Updates, Lr, Stop, NonFinite, BadParameter, Loss, GradNorm, EvalLoss}) {
    add(role, std::string(ToText(role)));
  }
  if (recipe_.train.on_spike.is_set) {
    for (const ScalarRole role : {Spike, LeftOut}) {
      add(role, std::string(ToText(role)));
    }
  }
  if (plan_.data.varies_targets() || terms_.front().head.valid()) {
    add(ScalarRole::Targets, "targets");
  }
  for (size_t i = 0; terms_.size() > 1 && i < terms_.size(); ++i) {
    terms_[i].loss = add(TermLoss, fmt::format("loss_{}", terms_[i].name), terms_[i].head);
    terms_[i].eval_loss = add(TermEvalLoss, fmt::format("eval_loss_{}", terms_[i].name), terms_[i].head);
  }
}

auto PlanBuilder::Constants() -> void {
  if (IsLacked(recipe_, "model", "rope_frequency") || plan_.data.splits_documents()) {
    return;
  }
  Emitter emitter = EmitterFor(SectionKind::Constants);
  emitter.set_origin(OriginOfFrequency());
  rope_table_ = emitter.New({DType::F32, {sizes_.seq, 2, sizes_.head_dim / 2}}, Category::Workspace, "rope_table",
                            Arena::Persistent);
  emitter.Emit(op::RopeTable{.table = rope_table_, .frequency = Frequency()});
}

auto PlanBuilder::Frequency() const -> std::string {
  const auto frequency = ReduceRopeFrequency(recipe_);
  CHECK(frequency.ok(), "the frequency `{}` came this far", recipe_.model.rope_frequency->text);
  return frequency.value.text();
}

auto PlanBuilder::OriginOfFrequency() const -> Origin {
  // The default is a formula of rope_theta.
  return recipe_.model.rope_frequency.is_set ? OriginOf(recipe_.model.rope_frequency, "model.rope_frequency")
                                             : OriginOf(recipe_.model.rope_theta, "model.rope_theta");
}

/// Returns true if the residual stream is f32 whatever units compute in.
static auto IsWide(ResidualPrecision residual) -> bool {
  switch (residual) {
    case ResidualPrecision::Compute: return false;
    case ResidualPrecision::Fp32: return true;
  }
  CHECK(false, "residual {}", static_cast<int>(residual));
}

auto PlanBuilder::Forward(Emitter& emitter, const SampleValues& samples) -> ModelOutput {
  emitter.set_phase(Phase::Forward);
  ValueId rope_table = rope_table_;
  ValueId starts;
  if (samples.starts.valid()) {
    // Attention reads it once a tile, and host memory is far from a GPU.
    emitter.set_origin(OriginOf(recipe_.data.documents, "data.documents"));
    starts = emitter.New(loads_.Type(), Category::Workspace, "starts.here");
    emitter.Emit(op::Copy{.x = samples.starts, .y = starts});
    if (!IsLacked(recipe_, "model", "rope_frequency")) {
      emitter.set_origin(OriginOfFrequency());
      rope_table = emitter.New({DType::F32, {sizes_.seq, batch_.micro, 2, sizes_.head_dim / 2}}, Category::Workspace,
                               "rope_table");
      emitter.Emit(op::RopeTableAt{.positions = samples.positions, .table = rope_table, .frequency = Frequency()});
    }
  }
  emitter.set_origin(OriginOf(recipe_.model.family, "model.family"));
  ForwardBuilder forward(&emitter, &parameters_, samples.tokens, {.rope_table = rope_table, .document_starts = starts},
                         IsWide(*recipe_.precision.residual));
  return family_.forward(forward, sizes_);
}

auto PlanBuilder::Loss(Emitter& emitter, const ModelOutput& output, const std::vector<ValueId>& targets,
                       std::vector<ValueId> sums, std::string_view name) -> std::vector<ValueId> {
  const int64_t chunks = *recipe_.loss.chunks;
  const auto chunk_of = [&](ValueId whole, int64_t chunk) {
    if (chunks == 1) {
      return whole;
    }
    const Value value = plan_.values[whole];
    Dims shape = value.shape;
    shape[0] /= chunks;
    RankExpr offset = value.offset;
    offset.base += chunk * NumElements(shape) * SizeOf(value.dtype);
    return emitter.View(value.buffer, offset, {value.dtype, shape}, fmt::format("{}.chunk{}", value.name, chunk));
  };
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::string suffix = chunks == 1 ? "" : fmt::format(".chunk{}", chunk);
    std::vector<ValueId> hidden;
    for (size_t i = 0; i < terms_.size(); ++i) {
      // A chunk of what several heads read is one value.
      const auto same = std::find_if(output.begin(), output.begin() + static_cast<std::ptrdiff_t>(i),
                                     [&](const HeadOperands& head) { return head.hidden == output[i].hidden; });
      const auto first = static_cast<size_t>(same - output.begin());
      hidden.push_back(first < i ? hidden[first] : chunk_of(output[i].hidden, chunk));
      const std::string prefix = std::string(name) + terms_[i].prefix;
      op::Matmul head{.a = hidden[i],
                      .b = output[i].matrix,
                      .out = {},
                      .out_onto = {},
                      .scratch = {},
                      .transpose_a = false,
                      .transpose_b = true};
      head.out = emitter.New(Shape(head, plan_)[0], Category::Activations, fmt::format("{}logits{}", prefix, suffix));
      emitter.Emit(head);
      op::CrossEntropy loss{.logits = head.out,
                            .targets = chunk_of(targets[i], chunk),
                            .loss = {},
                            .loss_onto = sums[i],
                            .lse = {},
                            .head = terms_[i].head};
      const auto types = Shape(loss, plan_);
      const std::string loss_name = fmt::format("{}loss{}", prefix, suffix);
      loss.loss = sums[i].valid() ? emitter.Alias(sums[i], types[0], loss_name)
                                  : emitter.New(types[0], Category::Workspace, loss_name);
      loss.lse = emitter.New(types[1], Category::Activations, fmt::format("{}loss.lse{}", prefix, suffix));
      emitter.Emit(loss);
      sums[i] = loss.loss;
    }
  }
  return sums;
}

auto PlanBuilder::Divisor(Emitter& emitter, const LossTerm& term, ValueId count) -> ValueId {
  if (term.weight == 1) {
    return count;
  }
  const ValueId weight = emitter.New(Sum, Category::Workspace, term.prefix + "weight");
  emitter.Emit(op::Fill{.out = weight, .value = term.weight});
  const ValueId divisor = emitter.New(Sum, Category::Workspace, term.prefix + "divisor");
  emitter.Emit(op::Divide{.a = count, .b = weight, .y = divisor, .y_onto = {}});
  return divisor;
}

auto PlanBuilder::ReadMean(Emitter& emitter, ValueId sum, ValueId count, ScalarId metric) -> void {
  const ValueId mean = emitter.New(Sum, Category::Workspace, plan_.scalars[metric].name + ".mean");
  emitter.Emit(op::Divide{.a = sum, .b = count, .y = mean, .y_onto = {}});
  emitter.Emit(op::ReadScalar{.value = mean, .to = metric});
}

auto PlanBuilder::ReadMeans(Emitter& emitter, const std::vector<ValueId>& sums, const std::vector<ValueId>& counts,
                            const std::vector<ValueId>& divisors, ScalarRole metric) -> void {
  const ScalarId whole = plan_.ScalarOf(metric);
  const std::string name = plan_.scalars[whole].name;
  emitter.set_phase(Phase::None);
  emitter.set_layer(-1);
  if (terms_.size() == 1) {
    ReadMean(emitter, sums[0], divisors[0], whole);
    return;
  }
  ValueId total = emitter.New(Sum, Category::Workspace, name + ".none");
  emitter.Emit(op::Fill{.out = total, .value = 0});
  for (size_t i = 0; i < terms_.size(); ++i) {
    const ValueId next = emitter.Alias(total, Sum, fmt::format("{}.with_{}", name, terms_[i].name));
    emitter.Emit(op::Divide{.a = sums[i], .b = divisors[i], .y = next, .y_onto = total});
    total = next;
  }
  emitter.Emit(op::ReadScalar{.value = total, .to = whole});
  for (size_t i = 0; i < terms_.size(); ++i) {
    ReadMean(emitter, sums[i], counts[i], metric == ScalarRole::Loss ? terms_[i].loss : terms_[i].eval_loss);
  }
}

auto PlanBuilder::Step() -> void {
  Emitter emitter = EmitterFor(SectionKind::Step);
  const SampleValues samples = loads_.ViewMicrobatch(emitter);
  std::vector<ValueId> counts;
  std::vector<ValueId> divisors;
  for (const LossTerm& term : terms_) {
    const ValueId all_targets = emitter.View(
        term.buffer, {}, {DType::I32, {batch_.accumulate, sizes_.seq, batch_.micro}}, term.prefix + "targets.all");
    emitter.set_origin(term.origin);
    counts.push_back(emitter.New(Sum, Category::Workspace, term.prefix + "count"));
    emitter.Emit(op::CountValid{.targets = all_targets, .count = counts.back(), .count_onto = {}});
    divisors.push_back(Divisor(emitter, term, counts.back()));
  }
  const std::vector<ValueId> none(terms_.size());
  const std::vector<ValueId> sums = Loss(emitter, Forward(emitter, samples), samples.targets, none, "");
  emitter.set_origin(terms_.front().origin);
  ReadMeans(emitter, sums, counts, divisors, ScalarRole::Loss);
  if (const ScalarId targets = plan_.FindScalar(ScalarRole::Targets); targets.valid()) {
    emitter.Emit(op::ReadScalar{.value = counts.front(), .to = targets});
  }
}

auto PlanBuilder::Eval() -> void {
  const int64_t replicas = plan_.mesh.size(AxesSharing(Shared::Samples));
  const DataSource& data = plan_.data;
  const int64_t eval_tokens = data.has_eval_files() ? data.eval_file_tokens : data.eval_tokens;
  const int64_t sources = data.has_eval_files() ? 1 : std::ssize(data.sources);
  const int64_t samples = data.packs() ? data.eval_file_samples : (eval_tokens - 1) / sizes_.seq * sources;
  if (eval_tokens == 0 || samples == 0) {
    return;
  }
  plan_.run.eval_batches = CeilDiv(samples, replicas * batch_.micro);
  Emitter emitter = EmitterFor(SectionKind::Eval);
  const Origin held_out = data.has_eval_files() ? OriginOf(recipe_.data.eval, "data.eval")
                                                : OriginOf(recipe_.data.eval_tokens, "data.eval_tokens");
  emitter.set_origin(held_out);

  const auto zeros = [&](const char* name) {
    std::vector<ValueId> values;
    for (const LossTerm& term : terms_) {
      values.push_back(emitter.New(Sum, Category::Workspace, fmt::format("eval.{}{}", term.prefix, name)));
      emitter.Emit(op::Fill{.out = values.back(), .value = 0});
    }
    return values;
  };
  const std::vector<ValueId> loss_sums = zeros("loss");
  const std::vector<ValueId> count_sums = zeros("count");
  emitter.Emit(op::Repeat{.count = plan_.run.eval_batches});
  const SampleValues batch = loads_.EmitEval(emitter);
  const std::vector<ValueId> losses = Loss(emitter, Forward(emitter, batch), batch.targets, loss_sums, "eval.");
  emitter.set_phase(Phase::None);
  emitter.set_origin(held_out);
  std::vector<ValueId> counts;
  for (size_t i = 0; i < terms_.size(); ++i) {
    counts.push_back(emitter.Alias(count_sums[i], Sum, fmt::format("eval.{}count.next", terms_[i].prefix)));
    emitter.Emit(op::CountValid{.targets = batch.targets[i], .count = counts.back(), .count_onto = count_sums[i]});
  }
  for (size_t i = 0; i < terms_.size(); ++i) {
    emitter.Emit(op::Carry{.last = losses[i], .first = loss_sums[i]});
    emitter.Emit(op::Carry{.last = counts[i], .first = count_sums[i]});
  }
  emitter.Emit(op::EndRepeat{});
  std::vector<ValueId> divisors;
  for (size_t i = 0; i < terms_.size(); ++i) {
    divisors.push_back(Divisor(emitter, terms_[i], count_sums[i]));
  }
  ReadMeans(emitter, loss_sums, count_sums, divisors, ScalarRole::EvalLoss);
}

}  // namespace

auto Build(Plan plan, PassContext& context) -> ErrorOr<Plan> {
  const Recipe& recipe = *context.recipe;
  WriteHeader(plan, recipe);
  const ModelFamily& family = ModelFamilyOf(*recipe.model.family);
  ASSIGN_OR_RETURN(const auto parameters, DeclareParameters(plan, family, ResolveModel(recipe), context));
  PlanBuilder builder(&plan, &recipe, &family, &parameters);
  builder.Scalars();
  builder.Constants();
  builder.Data();
  builder.Step();
  builder.Eval();
  return plan;
}

}  // namespace shardc
