// Fused ops against the plain ones that they replace: they differ in how often a sum is rounded alone.
#include <gtest/gtest.h>

#include "tests/emulated/feature.h"

namespace shardc {
namespace {

/// Relative. Sums are in the same order; cross_entropy's gradient has the log of the sum of exponentials at hand.
constexpr double AsPlain = 1e-6;

/// The bias of keys adds the same to all scores of a query, so its gradient is nothing but rounding, by which AdamW
/// still moves it.
constexpr double OfRounding = 1e-5;

const std::vector<Feature> Rows{
    {"llama", {}, AsPlain},
    {"qwen3, shared keys, tied",
     {"model.family=qwen3", "model.head_dim=16", "model.kv_heads=2", "model.tied=true"},
     AsPlain},
    {"qwen2, recomputed", {"model.family=qwen2", "recompute.policy=full"}, OfRounding},
    {"recomputed but for some",
     {"recompute.policy=selective", R"(recompute.save=["attention", "q_proj", "gate_proj"])"},
     AsPlain},
    // The sum that is added again reads what the forward's product has saved.
    {"recomputed from saved results in bf16",
     {"precision.compute=bf16", "precision.residual=fp32", "recompute.policy=selective",
      R"(recompute.save=["o_proj"])"},
     InBf16},
    {"chunks of the loss", {"loss.chunks=4", "batch.micro=2"}, AsPlain},
    {"documents in a stream, recomputed", OnDocuments(Pack::Stream, {"recompute.policy=full"}), AsPlain},
    {"documents in packed samples, tp 2", OnDocuments(Pack::BestFit, {"mesh.tp=2"}), AsPlain},
    {"frozen", {R"(optimizer.frozen=["model.embed_tokens.weight", "model.layers.0.*"])"}, AsPlain},
    {"tp 2", {"mesh.tp=2"}, AsPlain},
    {"tp 2, head in bf16", {"mesh.tp=2", R"(precision.override=[{match = "head", compute = "bf16"}])"}, InBf16},
    {"tp 2, dp 2, recomputed", {"mesh.tp=2", "mesh.dp=2", "recompute.policy=torchtitan-sac"}, AsPlain},
    {"bf16", {"precision.compute=bf16"}, InBf16},
    {"bf16, fp32 residual, tp 2", {"precision.compute=bf16", "precision.residual=fp32", "mesh.tp=2"}, InBf16},
};

TEST(EmulatedGpu, FusedOpsTrainAsPlainOnes) {
  const SmallTraining training;
  for (const Feature& row : Rows) {
    ExpectFusedTrainsAsPlain(training, row);
  }
}

}  // namespace
}  // namespace shardc
