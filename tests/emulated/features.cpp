// Each feature of one rank on an emulated GPU, against the CPU: three steps of the same recipe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "runtime/control/host_control.h"
#include "tests/emulated/feature.h"
#include "tests/support/emulated/cuda.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// A head whose products are too large for a float.
constexpr const char* Overflow =
    R"--(init.rule=[{match = "*", value = "normal(0.5, 0.1)"}, {match = "lm_head.weight", value = 3e38}])--";
constexpr const char* Adapters[] = {"adapter.kind=lora", "adapter.rank=4", "adapter.alpha=8"};
/// Losses that hardly fall, any one of which is a spike if it lies above the mean of the two before it.
constexpr const char* EarlySpike[] = {"train.spike_window=2", "train.spike_sigma=0.001", "optimizer.lr=1e-4",
                                      "train.steps=5"};
constexpr const char* MomentumSgd = "optimizer.momentum=0.9";
constexpr const char* Compute = "precision.compute=bf16";
constexpr const char* Master = "precision.master=bf16";

const std::vector<Feature> Features{
    {"llama", {}},
    {"sizes without packs", {"model.hidden=20", "model.ffn=25", "model.vocab=257", "model.seq=17"}},
    {"shared keys", {"model.heads=4", "model.kv_heads=2"}},
    {"qwen2", {"model.family=qwen2"}},
    {"qwen3", {"model.family=qwen3", "model.head_dim=16"}},
    {"tied", {"model.tied=true"}},
    {"targets of their own", {"data.targets=['masked.bin']"}},
    {"heads", {R"(loss.head=[{name = "next", vocab = 256, targets = ["masked.bin"], weight = 0.5}])"}},
    {"heads in chunks",
     {R"(loss.head=[{name = "next", vocab = 256, targets = ["masked.bin"], weight = 0.5}])", "loss.chunks=4"}},
    {"chunks of the loss", {"loss.chunks=4", "model.tied=true"}},
    {"sgd", {"optimizer.name=sgd"}},
    {"sgd with momentum", {"optimizer.name=sgd", MomentumSgd}},
    {"nesterov", {"optimizer.name=sgd", MomentumSgd, "optimizer.nesterov=true"}},
    {"groups of sgd",
     {"optimizer.name=sgd", MomentumSgd,
      R"(optimizer.group=[{match = "*norm.weight", weight_decay = 0.0}, {match = "*.mlp.*", lr_scale = 0.5}])"}},
    {"groups of adamw",
     {R"(optimizer.group=[{match = "*norm.weight", weight_decay = 0.0}, {match = "*.mlp.*", lr_scale = 0.5}])"}},
    {"clipped", {"optimizer.clip_norm=0.1"}},
    {"not clipped", {"optimizer.clip_norm=0"}},
    {"reduced after each microbatch", {"batch.micro=2", "batch.reduce=each"}},
    {"reduced after the last microbatch", {"batch.micro=1", "batch.reduce=last"}},
    {"recomputed", {"recompute.policy=full"}},
    {"recomputed in every other block", {"recompute.policy=full", "recompute.layers=\"layer % 2 == 0\""}},
    {"recomputed but for some",
     {"recompute.policy=selective", R"(recompute.save=["attention", "q_proj", "gate_proj"])"}},
    {"recomputed as torchtitan does", {"recompute.policy=torchtitan-sac", "batch.micro=2"}},
    {"frozen", {R"(optimizer.frozen=["model.embed_tokens.weight", "model.layers.0.*"])"}},
    {"frozen norms", {R"(optimizer.frozen=["*norm.weight"])", "batch.micro=2", "batch.reduce=last"}},
    {"adapters", {Adapters[0], Adapters[1], Adapters[2], "recompute.policy=full", "batch.micro=2"}},
    {"adapters beside a base in bf16",
     {Adapters[0], Adapters[1], Adapters[2], Compute, "precision.frozen=bf16",
      R"(adapter.train_also=["*norm.weight"])"},
     InBf16},
    {"bf16", {Compute}, InBf16},
    {"bf16, sizes without packs",
     {Compute, "model.hidden=20", "model.ffn=25", "model.vocab=257", "model.seq=17"},
     InBf16},
    {"bf16, qwen2, recomputed", {Compute, "model.family=qwen2", "recompute.policy=full"}, InBf16},
    {"bf16, qwen3, tied, chunks",
     {Compute, "model.family=qwen3", "model.head_dim=16", "model.tied=true", "loss.chunks=2"},
     InBf16},
    {"bf16 masters", {Master}, InBf16},
    {"bf16 masters and compute", {Master, Compute}, InBf16},
    {"bf16 masters of sgd", {Master, Compute, "optimizer.name=sgd", MomentumSgd}, InBf16},
    {"fp32 residual", {Compute, "precision.residual=fp32"}, InBf16},
    {"precision by unit",
     {Compute, R"(precision.override=[{match = "layers.1", compute = "fp32"}, {match = "embed", master = "bf16"}])"},
     InBf16},
    {"reduced in bf16", {Compute, "precision.reduce=bf16", "batch.micro=2", "batch.reduce=last"}, InBf16},
    {"documents in a stream", OnDocuments(Pack::Stream)},
    {"documents in packed samples", OnDocuments(Pack::BestFit, {"data.eval=['held_out.bin']", "train.eval_every=2"})},
    {"documents, qwen3, recomputed, microbatches",
     OnDocuments(Pack::BestFit, {"model.family=qwen3", "model.head_dim=16", "recompute.policy=full", "batch.micro=2"})},
    {"documents, targets of their own", OnDocuments(Pack::Stream, {"data.targets=['masked.bin']", "loss.chunks=2"})},
    {"bf16, documents in a stream", OnDocuments(Pack::Stream, {Compute}), InBf16},
    {"bf16, documents in packed samples", OnDocuments(Pack::BestFit, {Compute, "model.heads=4", "model.kv_heads=2"}),
     InBf16},
    {"guard of documents", OnDocuments(Pack::BestFit, {"run.guard=true", "model.layers=1", "train.steps=1"})},
    {"evaluated after each step", {"train.eval_every=1", "data.eval_tokens=200"}},
    // The guard paints the 32 MiB of scratch of each product.
    {"guard", {"run.guard=true", "model.layers=1", "train.steps=1"}},
    {"guard in bf16", {"run.guard=true", "model.layers=1", "train.steps=1", Compute}, InBf16},
    {"checks of the device", {"run.device_checks=true"}},
    {"updates left out", {Overflow, "train.on_nonfinite=skip"}, InF32, ExitCode::Ok, "is not finite: matmul made it"},
    {"stopped as not finite", {Overflow}, InF32, ExitCode::Diverged, "is not finite: matmul made it first"},
    {"spikes left out",
     {"train.on_spike=skip", EarlySpike[0], EarlySpike[1], EarlySpike[2], EarlySpike[3]},
     InF32,
     ExitCode::Ok,
     " is a spike: it lies "},
    {"stopped by a spike",
     {"train.on_spike=stop", EarlySpike[0], EarlySpike[1], EarlySpike[2], EarlySpike[3]},
     InF32,
     ExitCode::Diverged,
     "the run saves and ends"},
};

TEST(EmulatedGpu, FeaturesTrainAsOnCpu) {
  const SmallTraining training;
  for (const Feature& feature : Features) {
    ExpectTrainsAsOnCpu(training, feature);
  }
}

/// Returns sets of a run that begins from another's parameters.
auto FromSeed(const std::string& more_of_table, const Sets& more_sets) -> Sets {
  Sets sets = more_sets;
  sets.emplace_back("start.run_id=second");
  sets.push_back(fmt::format("start.first={{ seed = \"base/checkpoints/step-00000003\"{} }}", more_of_table));
  return sets;
}

TEST(EmulatedGpu, SeedsGiveCpusValues) {
  const SmallTraining training;
  ASSERT_EQ(TrainInProcess(training.Compile(), training / "base").code, ExitCode::Ok);
  const std::vector<Feature> rows{
      {"seed", FromSeed("", {}), InF32, ExitCode::Ok, "21 parameters loaded, 0 generated"},
      {"seed in bf16", FromSeed("", {Compute, Master}), InBf16},
      {"rules that read a seed",
       FromSeed(
           R"(, missing = ["lm_head.weight", "model.norm.weight"], unused = ["lm_head.weight", "model.norm.weight"])",
           {R"--(init.rule=[{match = "lm_head.weight", value = "0.5 * seed('model.embed_tokens.weight')"}, )--"
            R"--({match = "model.norm.weight", value = "copy('model.layers.0.input_layernorm.weight') + 0.1"}])--"}),
       InF32, ExitCode::Ok, "19 parameters loaded, 2 read by rules, 0 generated"},
  };
  for (const Feature& row : rows) {
    ExpectTrainsAsOnCpu(training, row);
  }
}

TEST(EmulatedGpu, StopsWithSave) {
  UseEmulatedCuda();
  const SmallTraining training;
  // An evaluation after the step of the signal would stop too.
  const Plan plan = training.Compile(OnGpu({"train.steps=5", "train.eval_every=0"}));
  ASSERT_EQ(TrainInOrder(plan, training / "whole").code, ExitCode::Ok);
  const TrainedRun stopped = TrainInProcess(plan, training / "run", [](RankContext& context) {
    context.execution.wrap = [&context](SectionKind section, size_t, Kernel kernel) -> Kernel {
      return [&context, section, kernel = std::move(kernel)](const Moment& moment) -> Status {
        if (section == SectionKind::Step && moment.step == 1) {
          // A signal does this.
          static_cast<HostControl&>(*context.control).member().block().stop_flag() = true;
        }
        return kernel(moment);
      };
    };
  });
  EXPECT_EQ(stopped.code, ExitCode::Preempted) << stopped.error;
  EXPECT_THAT(CheckpointsOf(training / "run"), ElementsAre(CheckpointNameOf(3)));
  const TrainedRun rest = TrainInOrder(plan, training / "run");
  EXPECT_EQ(rest.code, ExitCode::Ok) << rest.error;
  EXPECT_EQ(rest.at_begin.DifferenceFrom(stopped.at_end), "");
  ExpectSameRun(training / "run", training / "whole");
}

/// Trains after an id was put into a value of the microbatch; returns the error.
auto ErrorWithId(const Plan& plan, const std::string& run_dir, ValueId op::LoadTokens::*operand, int32_t id,
                 int64_t position) -> std::string {
  const auto prepare = [&](RankContext& context) {
    context.execution.wrap = [&](SectionKind section, size_t index, Kernel kernel) -> Kernel {
      const Op& op = plan.section(section).ops[index];
      const auto* const load = op.As<op::LoadTokens>();
      if (section != SectionKind::Data || load == nullptr) {
        return kernel;
      }
      const Value& value = plan.values[load->*operand];
      const Buffer& buffer = plan.buffers[value.buffer];
      std::byte* const at =
          context.device->Base(buffer.arena) + buffer.offset + value.offset.base + position * SizeOf(DType::I32);
      return
          [=, &queue = context.device->queue(op.stream), kernel = std::move(kernel)](const Moment& moment) -> Status {
            RETURN_IF_ERROR(kernel(moment));
            HostScratch scratch;
            std::memcpy(queue.BeginWrite(at, sizeof(id), scratch), &id, sizeof(id));
            return queue.EndWrite(at, sizeof(id), scratch);
          };
    };
  };
  const TrainedRun run = TrainInProcess(plan, run_dir, prepare);
  EXPECT_EQ(run.code, ExitCode::InternalFault);
  return run.error;
}

TEST(EmulatedGpu, RefusesIdsOutsideVocabulary) {
  UseEmulatedCuda();
  const SmallTraining training;
  const Plan on_cpu = training.Compile();
  const Plan plan = training.Compile(OnGpu({}));
  const Plan checked = training.Compile(OnGpu({"run.device_checks=true"}));
  struct Row {
    ValueId op::LoadTokens::*operand;
    int32_t id;
    const char* op;
  };
  for (const auto& [operand, id, op] :
       {Row{&op::LoadTokens::tokens, 300, "embedding"}, Row{&op::LoadTokens::tokens, -1, "embedding"},
        Row{&op::LoadTokens::targets, 256, "cross_entropy"}}) {
    const std::string text = fmt::format("token id {} at position 7 is outside the vocabulary of 256", id);
    const std::string with_op = fmt::format(" {}: {}", op, text);
    const std::string run = training / fmt::format("{} {} ", op, id);
    EXPECT_THAT(ErrorWithId(on_cpu, run + "cpu", operand, id, 7), HasSubstr(with_op));
    EXPECT_THAT(ErrorWithId(plan, run + "gpu", operand, id, 7), HasSubstr(text));
    // The loss runs with its gradient there.
    EXPECT_THAT(ErrorWithId(checked, run + "checked", operand, id, 7),
                AllOf(HasSubstr(fmt::format(" {}", op)), HasSubstr(": " + text)));
  }
}

}  // namespace
}  // namespace shardc
