// Gradients of one step on emulated GPUs against LibTorch's autograd, as those of the CPU are in the other files.
#include <gtest/gtest.h>

#include "tests/parity/compare.h"
#include "tests/parity/training_run.h"

namespace shardc {

static const std::vector<TrainingCase> EmulatedCases{
    {.name = "hidden 60, accumulate 3", .sets = {"batch.accumulate=3"}},
    {.name = "hidden 77, heads of 20", .sets = {"model.hidden=77", "model.head_dim=20"}},
    {.name = "tied, recomputed", .tied = true, .sets = {"recompute.policy=full"}},
    {.name = "chunks of the loss, reduced after the last",
     .sets = {"loss.chunks=3", "batch.accumulate=2", "batch.reduce=last"}},
    {.name = "qwen2",
     .sets = {"model.family=qwen2", "model.norm_eps=1e-5"},
     .tables = "[[init.rule]]\nmatch = \"*.bias\"\nvalue = \"normal(0, 0.5)\"\n"},
    {.name = "qwen3, tied", .tied = true, .sets = {"model.family=qwen3", "model.norm_eps=1e-5"}},
    {.name = "kept in bf16", .sets = {"precision.master=bf16"}},
    {.name = "dp 2", .sets = {"mesh.dp=2"}},
    {.name = "dp 2 x tp 2", .sets = {"mesh.dp=2", "mesh.tp=2", "model.ffn=102", "model.seq=34"}},
};

TEST(EmulatedGpu, GradientsEqualAutograd) {
  for (TrainingCase training_case : EmulatedCases) {
    training_case.name.insert(0, "emulated GPU, ");
    training_case.sets.emplace_back("run.device=cuda-sm90");
    ExpectAutograd(training_case.name, RunTraining(training_case));
  }
}

}  // namespace shardc
