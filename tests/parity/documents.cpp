// Documents in samples: the loss and the gradients of packed samples are those of each document alone, on every mesh,
// as LibTorch's autograd has them: the mean over all targets of the global batch, whatever document, microbatch and
// rank they belong to.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/parity/compare.h"
#include "tests/parity/training_run.h"

namespace shardc {

using Sets = std::vector<std::string>;

/// Ends documents of 1 to 24 tokens: some within a sample of 34, some over the border of two.
static auto EndDocuments(std::span<int32_t> stream) -> void {
  std::ranges::replace(stream, 0, 1);
  uint32_t state = 7;
  for (size_t at = 5; at < stream.size(); at += 1 + (state >> 16) % 24) {
    stream[at] = 0;
    state = state * 1664525 + 1013904223;
  }
  stream.back() = 0;
}

/// Returns each document of a batch as a batch of its own; those without a target are left out.
static auto DocumentsOf(const TokenBatch& batch) -> std::vector<TokenBatch> {
  std::vector<TokenBatch> documents;
  for (int64_t sequence = 0; sequence < batch.num_sequences; ++sequence) {
    for (int64_t begin = 0; begin < batch.seq;) {
      const auto at = [&](int64_t s) { return static_cast<std::ptrdiff_t>(sequence * batch.seq + s); };
      int64_t end = begin + 1;
      while (end < batch.seq && batch.starts[static_cast<size_t>(at(end))] == begin) {
        ++end;
      }
      TokenBatch document{1,
                          end - begin,
                          {batch.tokens.begin() + at(begin), batch.tokens.begin() + at(end)},
                          {batch.targets.begin() + at(begin), batch.targets.begin() + at(end)},
                          {}};
      if (std::ranges::any_of(document.targets, [](int32_t target) { return target >= 0; })) {
        documents.push_back(std::move(document));
      }
      begin = end;
    }
  }
  return documents;
}

/// Returns the mean over all targets of the documents, each alone.
static auto MeanOf(Precision precision, const TrainingRun& run, const std::vector<TokenBatch>& documents)
    -> LossAndGradients {
  LossAndGradients mean;
  double targets = 0;
  for (const TokenBatch& document : documents) {
    const auto own =
        static_cast<double>(std::ranges::count_if(document.targets, [](int32_t target) { return target >= 0; }));
    const LossAndGradients alone = TorchGradients(precision, run.shape, run.initial, document);
    mean.loss += own * alone.loss;
    for (const auto& [name, numbers] : alone.gradients) {
      Numbers& sum = mean.gradients[name];
      sum.resize(numbers.size());
      std::ranges::transform(sum, numbers, sum.begin(), [&](double all, double one) { return all + own * one; });
    }
    targets += own;
  }
  mean.loss /= targets;
  for (auto& [name, numbers] : mean.gradients) {
    std::ranges::for_each(numbers, [&](double& number) { number /= targets; });
  }
  return mean;
}

static auto ExpectDocumentsAlone(const std::string& what, const TrainingRun& run) -> void {
  const std::vector<TokenBatch> documents = DocumentsOf(run.batches[0]);
  ASSERT_GT(std::ssize(documents), run.batches[0].num_sequences) << what;
  const LossAndGradients f64 = MeanOf(Precision::F64, run, documents);
  const LossAndGradients f32 = MeanOf(Precision::F32, run, documents);
  EXPECT_NEAR(run.losses[0], f64.loss, LossTolerance * f64.loss) << what;
  ExpectClose(what, run.gradients, f64.gradients, f32.gradients, f64.gradients, GradientTolerance);
}

static auto DocumentCase(std::string name, const std::vector<Sets>& sets) -> TrainingCase {
  TrainingCase result{.name = std::move(name),
                      .sets = {"model.ffn=102", "model.seq=34", "data.documents=split", "data.document_end=0"},
                      .edit_stream = EndDocuments};
  for (const Sets& more : sets) {
    result.sets.insert(result.sets.end(), more.begin(), more.end());
  }
  return result;
}

static const std::vector<std::pair<const char*, Sets>> DocumentMeshes{
    {"one rank", {}},
    {"dp 2", {"mesh.dp=2"}},
    {"tp 2", {"mesh.tp=2"}},
    {"dp 2 x tp 2", {"mesh.dp=2", "mesh.tp=2"}},
    {"replicate 2 x dp 2", {"mesh.replicate=2", "mesh.dp=2"}},
};

/// Each with another number of microbatches, of which each has another number of targets.
static const std::vector<Sets> DocumentPolicies{
    {"recompute.policy=none", "batch.accumulate=1"},
    {"recompute.policy=full", "batch.accumulate=3", "loss.chunks=2"},
    {"recompute.policy=selective", "recompute.save=[\"q_proj\", \"v_proj\", \"attention\"]", "batch.accumulate=2"},
    {"recompute.policy=torchtitan-sac", "batch.accumulate=4", "batch.reduce=last", "data.pack=best-fit"},
};

TEST(Documents, GradientsEqualThoseOfEachAlone) {
  for (const auto& [mesh, sets] : DocumentMeshes) {
    for (const Sets& policy : DocumentPolicies) {
      const TrainingCase training_case = DocumentCase(fmt::format("{}, {}", mesh, policy[0]), {sets, policy});
      ExpectDocumentsAlone(training_case.name, RunTraining(training_case));
    }
  }
}

// With fused ops and with plain ones.
TEST(Documents, GradientsOnEmulatedGpusEqualThoseOfEachAlone) {
  const std::vector<Sets> cases{
      {"batch.accumulate=2", "recompute.policy=full"},
      {"run.kernels=plain", "data.pack=best-fit"},
      {"mesh.dp=2", "mesh.tp=2", "batch.accumulate=2"},
      {"model.family=qwen3", "model.norm_eps=1e-5"},
  };
  for (const Sets& sets : cases) {
    const TrainingCase training_case =
        DocumentCase(fmt::format("emulated GPU, {}", sets[0]), {{"run.device=cuda-sm90"}, sets});
    ExpectDocumentsAlone(training_case.name, RunTraining(training_case));
  }
}

// Ranks and microbatches of which some have few targets, and some none: a mean of means would weigh them alike.
TEST(Documents, EachTargetWeighsTheSame) {
  for (const auto& [mesh, sets] : DocumentMeshes) {
    for (const char* accumulate : {"batch.accumulate=1", "batch.accumulate=2", "batch.accumulate=4"}) {
      TrainingCase training_case = DocumentCase(fmt::format("{}, {}", mesh, accumulate), {sets, {accumulate}});
      training_case.mask = [](int64_t replica, std::span<int32_t> targets) {
        // The first replica keeps one target in five of its first microbatch, and all of the others.
        const size_t one = targets.size() / 2;
        for (size_t i = 0; replica == 0 && i < one; ++i) {
          targets[i] = i % 5 == 0 ? targets[i] : -1;
        }
        if (replica == 1) {
          std::ranges::fill(targets, -1);
        }
      };
      ExpectDocumentsAlone(training_case.name, RunTraining(training_case));
    }
  }
}

}  // namespace shardc
