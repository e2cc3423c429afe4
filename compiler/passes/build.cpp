// Builds the forward ops of `step` and `eval` from the recipe.
//
// Needs: nothing. Gives: the header and tables of the plan; the `constants` and `data` sections; the forward of one
// microbatch of one rank, with whole parameters, in `step` and in `eval`; the loss.
//   1. declare parameters, groups and scalars
//   2. constants: the rotary table
//   3. data: the samples of every microbatch of a step, into host memory
//   4. step: count the valid targets of all microbatches, forward, loss sum, mean for the metrics
//   5. eval: the same over the held-out samples, summed in a loop
#include <filesystem>

#include "compiler/check/check_recipe.h"
#include "compiler/passes/declare_parameters.h"
#include "compiler/recipe/run_id.h"

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
        parameters_(*parameters) {}

  auto Scalars() -> void;
  auto Constants() -> void;
  auto Data() -> void;
  auto Step() -> void;
  auto Eval() -> void;

 private:
  auto EmitterFor(SectionKind section) -> Emitter {
    return Emitter(&plan_, &plan_.section(section).ops, PassKind::Build);
  }
  /// One rank's tokens of a microbatch, or targets.
  auto TokenType() const -> ValueType { return {DType::I32, {sizes_.seq, batch_.micro}}; }
  /// Number of the first sample of a rank and repeat, for `per_step` samples a step.
  auto SampleExpr(int64_t per_step) const -> RankExpr;
  auto Forward(Emitter& emitter, ValueId tokens) -> ModelOutput;
  /// Logits and loss sum over all chunks of the sequence, added onto `onto` if it is valid; the last sum.
  auto Loss(Emitter& emitter, const ModelOutput& output, ValueId targets, ValueId onto, std::string_view name)
      -> ValueId;
  auto ReadMean(Emitter& emitter, ValueId sum, ValueId count, std::string_view metric) -> void;

  Plan& plan_;
  const Recipe& recipe_;
  const ModelFamily& family_;
  ModelSizes sizes_;
  BatchSizes batch_;
  const std::unordered_map<std::string, ValueId>& parameters_;
  ValueId rope_table_;
  BufferId tokens_buffer_;
  BufferId targets_buffer_;
};

const ValueType Sum{DType::F64, {1}};

auto PlanBuilder::Scalars() -> void {
  plan_.scalars.Add({"step", ScalarKind::State, ""});
  plan_.scalars.Add({"updates", ScalarKind::State, ""});
  plan_.scalars.Add({"lr", ScalarKind::Schedule, recipe_.optimizer.lr->text});
  for (const char* flag : {"stop", "nonfinite", "bad_parameter"}) {
    plan_.scalars.Add({flag, ScalarKind::Flag, ""});
  }
  for (const char* metric : {"loss", "grad_norm", "eval_loss"}) {
    plan_.scalars.Add({metric, ScalarKind::Metric, ""});
  }
}

auto PlanBuilder::Constants() -> void {
  Emitter emitter = EmitterFor(SectionKind::Constants);
  emitter.set_origin(OriginOf(recipe_.model.rope_theta, "model.rope_theta"));
  rope_table_ = emitter.New({DType::F32, {sizes_.seq, 2, sizes_.head_dim / 2}}, Category::Workspace, "rope_table",
                            Arena::Persistent);
  emitter.Emit(op::RopeTable{.table = rope_table_, .theta = sizes_.rope_theta});
}

auto PlanBuilder::SampleExpr(int64_t per_step) const -> RankExpr {
  const int64_t replicas = plan_.mesh.size(Axis::Replicate) * plan_.mesh.size(Axis::Dp);
  RankExpr sample;
  sample.axis[static_cast<size_t>(Axis::Replicate)] = batch_.micro * plan_.mesh.size(Axis::Dp);
  sample.axis[static_cast<size_t>(Axis::Dp)] = batch_.micro;
  for (size_t i = 0; i < NumMeshAxes; ++i) {
    // An axis of one rank has the one coordinate 0: left out, so that the text says only what matters.
    sample.axis[i] = plan_.mesh.sizes[i] > 1 ? sample.axis[i] : 0;
  }
  sample.repeat = replicas * batch_.micro;
  sample.step = per_step;
  return sample;
}

auto PlanBuilder::Data() -> void {
  Emitter emitter = EmitterFor(SectionKind::Data);
  emitter.set_origin(OriginOf(recipe_.data.tokens, "data.tokens"));
  const ValueType all{DType::I32, {batch_.accumulate, sizes_.seq, batch_.micro}};
  const auto host_buffer = [&](const char* name) {
    return plan_.buffers.Add({.name = name,
                              .arena = Arena::Host,
                              .category = Category::Data,
                              .bytes = Bytes{NumElements(all.shape) * SizeOf(DType::I32)},
                              .offset = -1});
  };
  tokens_buffer_ = host_buffer("tokens");
  targets_buffer_ = host_buffer("targets");
  RankExpr offset;
  RankExpr sample = SampleExpr(batch_.global);
  if (batch_.accumulate > 1) {
    offset.repeat = NumElements(TokenType().shape) * SizeOf(DType::I32);
    emitter.Emit(op::Repeat{.count = batch_.accumulate});
  } else {
    sample.repeat = 0;
  }
  emitter.Emit(op::LoadTokens{.tokens = emitter.View(tokens_buffer_, offset, TokenType(), "tokens"),
                              .targets = emitter.View(targets_buffer_, offset, TokenType(), "targets"),
                              .split = Split::Train,
                              .sample = sample});
  if (batch_.accumulate > 1) {
    emitter.Emit(op::EndRepeat{});
  }
}

auto PlanBuilder::Forward(Emitter& emitter, ValueId tokens) -> ModelOutput {
  emitter.set_phase(Phase::Forward);
  emitter.set_origin(OriginOf(recipe_.model.family, "model.family"));
  ForwardBuilder forward(&emitter, &parameters_, tokens, rope_table_, ResidualType(recipe_));
  return family_.forward(forward, sizes_);
}

auto PlanBuilder::Loss(Emitter& emitter, const ModelOutput& output, ValueId targets, ValueId onto,
                       std::string_view name) -> ValueId {
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
  ValueId sum = onto;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::string suffix = chunks == 1 ? "" : fmt::format(".chunk{}", chunk);
    op::Matmul head{.a = chunk_of(output.hidden, chunk),
                    .b = output.head,
                    .out = {},
                    .out_onto = {},
                    .scratch = {},
                    .transpose_a = false,
                    .transpose_b = true};
    head.out = emitter.New(Shape(head, plan_)[0], Category::Activations, fmt::format("{}logits{}", name, suffix));
    emitter.Emit(head);
    op::CrossEntropy loss{
        .logits = head.out, .targets = chunk_of(targets, chunk), .loss = {}, .loss_onto = sum, .lse = {}};
    const auto types = Shape(loss, plan_);
    loss.loss = sum.valid() ? emitter.Alias(sum, types[0], fmt::format("{}loss{}", name, suffix))
                            : emitter.New(types[0], Category::Workspace, fmt::format("{}loss{}", name, suffix));
    loss.lse = emitter.New(types[1], Category::Activations, fmt::format("{}loss.lse{}", name, suffix));
    emitter.Emit(loss);
    sum = loss.loss;
  }
  return sum;
}

auto PlanBuilder::ReadMean(Emitter& emitter, ValueId sum, ValueId count, std::string_view metric) -> void {
  emitter.set_phase(Phase::None);
  emitter.set_layer(-1);
  const ValueId mean = emitter.New(Sum, Category::Workspace, fmt::format("{}.mean", metric));
  emitter.Emit(op::Divide{.a = sum, .b = count, .y = mean});
  emitter.Emit(op::ReadScalar{.value = mean, .to = plan_.ScalarNamed(metric)});
}

auto PlanBuilder::Step() -> void {
  Emitter emitter = EmitterFor(SectionKind::Step);
  RankExpr offset;
  if (batch_.accumulate > 1) {
    offset.repeat = NumElements(TokenType().shape) * SizeOf(DType::I32);
  }
  const ValueId tokens = emitter.View(tokens_buffer_, offset, TokenType(), "tokens");
  const ValueId targets = emitter.View(targets_buffer_, offset, TokenType(), "targets");
  const ValueId all_targets =
      emitter.View(targets_buffer_, {}, {DType::I32, {batch_.accumulate, sizes_.seq, batch_.micro}}, "targets.all");

  const Origin data = OriginOf(recipe_.data.tokens, "data.tokens");
  emitter.set_origin(data);
  const ValueId count = emitter.New(Sum, Category::Workspace, "count");
  emitter.Emit(op::CountValid{.targets = all_targets, .count = count, .count_onto = {}});
  const ValueId loss = Loss(emitter, Forward(emitter, tokens), targets, {}, "");
  emitter.set_origin(data);
  ReadMean(emitter, loss, count, "loss");
}

auto PlanBuilder::Eval() -> void {
  const int64_t replicas = plan_.mesh.size(Axis::Replicate) * plan_.mesh.size(Axis::Dp);
  const int64_t samples = (plan_.data.eval_tokens - 1) / sizes_.seq;
  if (plan_.data.eval_tokens == 0 || samples == 0) {
    return;
  }
  plan_.run.eval_batches = CeilDiv(samples, replicas * batch_.micro);
  Emitter emitter = EmitterFor(SectionKind::Eval);
  const Origin held_out = OriginOf(recipe_.data.eval_tokens, "data.eval_tokens");
  emitter.set_origin(held_out);

  const auto zero = [&](const char* name) {
    const ValueId value = emitter.New(Sum, Category::Workspace, name);
    emitter.Emit(op::Fill{.out = value, .value = 0});
    return value;
  };
  const ValueId loss_sum = zero("eval.loss");
  const ValueId count_sum = zero("eval.count");
  emitter.Emit(op::Repeat{.count = plan_.run.eval_batches});
  const ValueId tokens = emitter.New(TokenType(), Category::Data, "eval.tokens");
  const ValueId targets = emitter.New(TokenType(), Category::Data, "eval.targets");
  emitter.Emit(op::LoadTokens{.tokens = tokens, .targets = targets, .split = Split::Eval, .sample = SampleExpr(0)});
  const ValueId loss = Loss(emitter, Forward(emitter, tokens), targets, loss_sum, "eval.");
  emitter.set_phase(Phase::None);
  emitter.set_origin(held_out);
  const ValueId count = emitter.Alias(count_sum, Sum, "eval.count.next");
  emitter.Emit(op::CountValid{.targets = targets, .count = count, .count_onto = count_sum});
  emitter.Emit(op::Carry{.last = loss, .first = loss_sum});
  emitter.Emit(op::Carry{.last = count, .first = count_sum});
  emitter.Emit(op::EndRepeat{});
  ReadMean(emitter, loss_sum, count_sum, "eval_loss");
}

auto Header(Plan& plan, const Recipe& recipe) -> void {
  const ModelSizes sizes = ResolveModel(recipe);
  const BatchSizes batch = ResolveBatch(recipe);
  plan.mesh.sizes = {*recipe.mesh.replicate, *recipe.mesh.dp, *recipe.mesh.tp};
  plan.mesh.dp_inner = recipe.shard.reshard_size.is_set ? *recipe.shard.reshard_size : 1;
  plan.device = *recipe.run.device;
  plan.kernels = *recipe.run.kernels;
  plan.model = {{"family", sizes.family},
                {"layers", std::to_string(sizes.layers)},
                {"hidden", std::to_string(sizes.hidden)},
                {"heads", std::to_string(sizes.heads)},
                {"kv_heads", std::to_string(sizes.kv_heads)},
                {"head_dim", std::to_string(sizes.head_dim)},
                {"ffn", std::to_string(sizes.ffn)},
                {"vocab", std::to_string(sizes.vocab)},
                {"seq", std::to_string(sizes.seq)},
                {"rope_theta", fmt::format("{}", sizes.rope_theta)},
                {"norm_eps", fmt::format("{}", sizes.norm_eps)},
                {"tied", sizes.tied ? "true" : "false"}};
  plan.overrides = recipe.overrides;

  const std::filesystem::path folder = std::filesystem::path(recipe.path).parent_path();
  const auto resolve = [&](const std::string& path) { return (folder / path).lexically_normal().string(); };
  for (const std::string& file : *recipe.data.tokens) {
    plan.data.files.push_back(resolve(file));
  }
  plan.data.format = *FromText<TokenFormat>(*recipe.data.format);
  plan.data.order = *FromText<SampleOrder>(*recipe.data.order);
  plan.data.seed = static_cast<uint64_t>(*recipe.data.seed);
  plan.data.eval_tokens = *recipe.data.eval_tokens;
  plan.data.vocab = sizes.vocab;
  plan.data.seq = sizes.seq;

  RunSettings& run = plan.run;
  run.run_id = RunIdOf(recipe);
  run.run_dir = resolve("runs/" + run.run_id);
  run.checkpoint_dir = recipe.checkpoint.dir.is_set ? resolve(*recipe.checkpoint.dir) : "";
  run.checkpoint_keep = *recipe.checkpoint.keep;
  run.steps = *recipe.train.steps;
  run.log_every = *recipe.train.log_every;
  run.tokens_per_step = batch.global * sizes.seq;
  run.micro_batch = batch.micro;
  run.accumulate = batch.accumulate;
  run.threads = *recipe.run.threads;
  run.guard = *recipe.run.guard;
  run.comm = *recipe.run.comm;
  run.init_seed = static_cast<uint64_t>(*recipe.init.seed);
}

}  // namespace

auto Build(Plan plan, PassContext& context) -> ErrorOr<Plan> {
  const Recipe& recipe = *context.recipe;
  Header(plan, recipe);
  const ModelFamily* family = FindModelFamily(*recipe.model.family);
  CHECK(family != nullptr, "check let family {} pass", *recipe.model.family);
  const auto parameters = DeclareParameters(plan, *family, ResolveModel(recipe), context);
  if (!parameters) {
    return parameters.error();
  }
  PlanBuilder builder(&plan, &recipe, family, &*parameters);
  builder.Scalars();
  builder.Constants();
  builder.Data();
  builder.Step();
  builder.Eval();
  return plan;
}

}  // namespace shardc
