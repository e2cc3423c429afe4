#include "tests/parity/training_run.h"
#include "tests/parity/odd_model.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "compiler/recipe/resolved.h"
#include "runtime/core/runner.h"
#include "runtime/init/initial_values.h"
#include "runtime/launch/launch.h"
#include "tests/support/compile_recipe.h"
#include "tests/support/emulated/cuda.h"
#include "tests/support/kernel_fixture.h"
#include "tests/support/owned_intervals.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/whole_state.h"

namespace shardc {

static constexpr std::string_view BaseSettings = R"toml(
[init]
seed = 3
[[init.rule]]
match = "*_proj.weight"
value = "normal(0, 1 / sqrt(fan_in))"
[[init.rule]]
match = "*norm.weight"
value = "normal(1, 0.2)"
[[init.rule]]
match = "model.embed_tokens.weight"
value = "normal(0, 0.5)"
[optimizer]
lr = 0.01
clip_norm = 0.5
[data]
tokens = ["tokens.u16"]
format = "u16"
order = "sequential"
[batch]
micro = 3
[train]
steps = 20
[run]
threads = 1
)toml";

static constexpr std::string_view HeadRule = R"toml(
[[init.rule]]
match = "lm_head.weight"
value = "normal(0, 2 / sqrt(hidden))"
)toml";

static auto CompileCase(const TrainingCase& training_case, const std::string& recipe_path) -> CompiledRecipe {
  std::vector<std::string> sets = training_case.sets;
  sets.push_back(training_case.tied ? "model.tied=true" : "model.tied=false");
  const std::string text = OddModel(101, 257, 33) + std::string(BaseSettings) +
                           std::string(training_case.tied ? "" : HeadRule) + training_case.tables;
  return CompileRecipe(recipe_path, text, sets);
}

auto CompileTraining(const TrainingCase& training_case) -> Plan {
  return CompileCase(training_case, "recipe.toml").plan;
}

static auto ShapeOf(const Plan& plan) -> LlamaShape {
  const auto size = [&](const char* key) { return std::stoll(plan.model.at(key)); };
  return {.layers = size("layers"),
          .hidden = size("hidden"),
          .heads = size("heads"),
          .kv_heads = size("kv_heads"),
          .head_dim = size("head_dim"),
          .ffn = size("ffn"),
          .vocab = size("vocab"),
          .rope_theta = std::stod(plan.model.at("rope_theta")),
          .rope_frequencies = {},
          .norm_eps = std::stod(plan.model.at("norm_eps")),
          .tied = plan.model.at("tied") == "true",
          .attention_bias = plan.model.at("family") == "qwen2",
          .head_norms = plan.model.at("family") == "qwen3",
          .loss_heads = {}};
}

static auto WriteStream(const std::string& path, const std::vector<int32_t>& stream) -> void {
  std::string bytes;
  for (const int32_t id : stream) {
    bytes.push_back(static_cast<char>(id & 0xff));
    bytes.push_back(static_cast<char>(id >> 8));
  }
  WriteText(path, bytes);
}

/// Target files, -1 being u16's greatest number.
static auto WriteTargets(const Plan& plan, const TrainingCase& training_case, const std::vector<int32_t>& tokens)
    -> void {
  for (const HeadId id : plan.heads.ids()) {
    const TargetHead& head = plan.heads[id];
    const bool own = head.name == OwnHead;
    std::vector<int32_t> targets =
        own ? tokens
            : RandomTokens(static_cast<int64_t>(tokens.size()), 17 + static_cast<uint64_t>(id.index), head.vocab);
    for (size_t i = 0; training_case.has_targets && i < targets.size(); ++i) {
      // A sample predicts from its second token on.
      const int64_t sample = (static_cast<int64_t>(i) - 1) / plan.data.seq;
      targets[i] = training_case.has_targets(head.name, sample) ? targets[i] : -1;
    }
    WriteStream(head.files.front(), targets);
  }
}

namespace {

/// The ranks of one run; each writes what is its own of `run`, whose memory is made before they start.
class Trainer {
 public:
  Trainer(const Plan* plan, const TrainingCase* training_case, TrainingRun* run)
      : plan_(*plan), case_(*training_case), run_(*run) {
    for (NamedNumbers* tensors : {&run_.initial, &run_.parameters, &run_.exp_avg, &run_.exp_avg_sq, &run_.gradients}) {
      for (const Parameter& parameter : plan_.parameters) {
        // What no rank owns stays NaN.
        (*tensors)[parameter.name].assign(static_cast<size_t>(parameter.num_elements()),
                                          std::numeric_limits<double>::quiet_NaN());
      }
    }
    const auto steps = static_cast<size_t>(case_.steps);
    for (Numbers* numbers : {&run_.losses, &run_.grad_norms, &run_.lrs}) {
      numbers->resize(steps);
    }
    const int64_t seq = plan_.data.seq;
    const int64_t sequences = plan_.run.tokens_per_step / seq;
    const auto size = static_cast<size_t>(sequences * seq);
    TokenBatch empty{sequences, seq, std::vector<int32_t>(size), std::vector<int32_t>(size), {}};
    empty.starts.resize(plan_.data.splits_documents() ? size : 0);
    for (const HeadShape& head : run_.shape.loss_heads) {
      empty.head_targets[head.name] = empty.targets;
    }
    run_.batches.assign(steps, empty);
  }

  auto RunRank(RankContext& context) -> ErrorOr<ExitCode> {
    auto made = RankRunner::Create(context);
    if (!made) {
      return made.error();
    }
    RankRunner& runner = **made;
    const int64_t rank = context.rank;
    // Begin() does the same, but looks for checkpoints first and says so.
    RETURN_IF_ERROR(runner.RunSection(SectionKind::Constants));
    RETURN_IF_ERROR(runner.RunSection(SectionKind::Init));
    Collect(runner, rank, &SubVector::shard, run_.initial);
    for (size_t step = 0; step < static_cast<size_t>(case_.steps); ++step) {
      runner.after_data() = [&] { TakeBatch(runner, rank, run_.batches[step]); };
      const auto halt = runner.Step();
      if (!halt) {
        return halt.error();
      }
      if (*halt) {
        return **halt;
      }
      if (rank == 0) {
        const auto scalar = [&](ScalarRole role) { return runner.scalars()[plan_.ScalarOf(role)]; };
        run_.losses[step] = scalar(ScalarRole::Loss);
        run_.grad_norms[step] = scalar(ScalarRole::GradNorm);
        run_.lrs[step] = scalar(ScalarRole::Lr);
        run_.num_nonfinite += scalar(ScalarRole::NonFinite) != 0 ? 1 : 0;
      }
    }
    // The gradients' memory is free by now, but nothing has run since that would use it.
    Collect(runner, rank, &SubVector::gradient, run_.gradients);
    Collect(runner, rank, &SubVector::shard, run_.parameters);
    const auto state_of = [](StateRole role) { return [role](const SubVector& own) { return StateOf(own, role); }; };
    Collect(runner, rank, state_of(StateRole::ExpAvg), run_.exp_avg);
    Collect(runner, rank, state_of(StateRole::ExpAvgSq), run_.exp_avg_sq);
    if (case_.evaluates) {
      RETURN_IF_ERROR(runner.RunSection(SectionKind::Eval));
      if (rank == 0) {
        run_.eval_loss = runner.scalars()[plan_.ScalarOf(ScalarRole::EvalLoss)];
      }
    }
    return ExitCode::Ok;
  }

 private:
  /// Of ranks that hold the same, the last one's: a sum that only some of them have shows.
  template <class SliceOf>
  auto Collect(RankRunner& runner, int64_t rank, SliceOf slice_of, NamedNumbers& tensors) const -> void {
    for (const SubVector& sub_vector : plan_.sub_vectors) {
      const AxisSet copies = CopyAxes(sub_vector, plan_.mesh);
      if (plan_.mesh.IndexIn(copies, rank) != plan_.mesh.size(copies) - 1) {
        continue;
      }
      // Frozen parameters have no gradients and moments.
      const ValueId id = std::invoke(slice_of, sub_vector);
      if (!id.valid()) {
        continue;
      }
      const std::vector<uint32_t> bits = BitsOf(runner, id);
      ForEachOwnedInterval(plan_, sub_vector, rank,
                           [&](const Parameter& parameter, int64_t begin, int64_t end, int64_t at) {
                             std::transform(bits.begin() + at, bits.begin() + at + (end - begin),
                                            tensors.at(parameter.name).begin() + begin,
                                            [](uint32_t element) { return std::bit_cast<float>(element); });
                           });
    }
  }

  /// A buffer of the arena `host`: its address, and its ids [accumulate, seq, micro].
  struct HostBuffer {
    std::byte* at = nullptr;
    std::vector<int32_t> ids;

    auto bytes() const -> int64_t { return std::ssize(ids) * SizeOf(DType::I32); }
  };

  auto Read(RankRunner& runner, std::string_view name) const -> HostBuffer {
    for (const ValueId id : plan_.values.ids()) {
      const Buffer& buffer = plan_.buffers[plan_.values[id].buffer];
      if (buffer.arena == Arena::Host && buffer.name == name) {
        HostBuffer result{.at = runner.ViewOf(id).At<std::byte>({}),
                          .ids = std::vector<int32_t>(static_cast<size_t>(buffer.bytes.value) / sizeof(int32_t))};
        HostScratch scratch;
        const auto read = runner.binder().device().Read(result.at, result.bytes(), scratch);
        CHECK(read.ok(), "{}", read.error().message);
        std::memcpy(result.ids.data(), *read, static_cast<size_t>(result.bytes()));
        return result;
      }
    }
    CHECK(false, "no host buffer {}", name);
  }

  static auto Write(RankRunner& runner, const HostBuffer& buffer) -> void {
    HostScratch scratch;
    Queue& queue = runner.binder().device().queue(Stream::Compute);
    std::memcpy(queue.BeginWrite(buffer.at, buffer.bytes(), scratch), buffer.ids.data(),
                static_cast<size_t>(buffer.bytes()));
    const Status written = queue.EndWrite(buffer.at, buffer.bytes(), scratch);
    CHECK(written.ok(), "{}", written.error().message);
  }

  /// Masks, and copies this rank's sequences to where their sample numbers put them.
  auto TakeBatch(RankRunner& runner, int64_t rank, TokenBatch& batch) const -> void {
    const Coordinates at = plan_.mesh.CoordinatesOf(rank);
    const int64_t replicas = plan_.mesh.size(AxisSet::Of(Axis::Replicate) | AxisSet::Of(Axis::Dp));
    const int64_t replica = at[0] * plan_.mesh.size(Axis::Dp) + at[1];
    const HostBuffer tokens = Read(runner, "tokens");
    HostBuffer targets = Read(runner, "targets");
    if (case_.mask) {
      case_.mask(replica, targets.ids);
      Write(runner, targets);
    }
    if (at[static_cast<size_t>(Axis::Tp)] != 0) {
      return;
    }
    std::map<std::string, HostBuffer> of_heads;
    for (const auto& [name, of_head] : batch.head_targets) {
      of_heads[name] = Read(runner, name + ".targets");
    }
    const HostBuffer starts = batch.starts.empty() ? HostBuffer{} : Read(runner, "starts");
    const int64_t micro = plan_.run.micro_batch;
    for (int64_t repeat = 0; repeat < plan_.run.accumulate; ++repeat) {
      for (int64_t position = 0; position < batch.seq; ++position) {
        for (int64_t m = 0; m < micro; ++m) {
          const auto from = static_cast<size_t>((repeat * batch.seq + position) * micro + m);
          const int64_t sequence = (repeat * replicas + replica) * micro + m;
          const auto to = static_cast<size_t>(sequence * batch.seq + position);
          batch.tokens[to] = tokens.ids[from];
          batch.targets[to] = targets.ids[from];
          if (!batch.starts.empty()) {
            batch.starts[to] = starts.ids[from];
          }
          for (auto& [name, of_head] : batch.head_targets) {
            of_head[to] = of_heads.at(name).ids[from];
          }
        }
      }
    }
  }

  const Plan& plan_;
  const TrainingCase& case_;
  TrainingRun& run_;
};

}  // namespace

auto RunTraining(const TrainingCase& training_case) -> TrainingRun {
  // Compiled once for all launches, and not once per launch.
  static const auto kernels = SharedInitKernels();
  UseEmulatedCuda();
  const TemporaryFolder folder;
  const auto [recipe, plan, warnings] = CompileCase(training_case, folder / "parity.toml");
  TrainingRun run{.shape = ShapeOf(plan), .stream = RandomTokens(training_case.num_tokens, 11, plan.data.vocab)};
  for (const LossHead& head : recipe.loss.head) {
    run.shape.loss_heads.push_back({.name = *head.name, .vocab = *head.vocab, .weight = *head.weight});
  }
  if (training_case.edit_stream) {
    training_case.edit_stream(run.stream);
  }
  WriteStream(folder / "tokens.u16", run.stream);
  WriteTargets(plan, training_case, run.stream);
  Trainer trainer(&plan, &training_case, &run);
  const auto code = LaunchThreads(plan, {}, [&](RankContext& context) { return trainer.RunRank(context); });
  CHECK(code.ok(), "{}: {}", training_case.name, code.error().message);
  CHECK(*code == ExitCode::Ok, "{}: exit code {}", training_case.name, static_cast<int>(*code));
  return run;
}

}  // namespace shardc
