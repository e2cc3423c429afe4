// One feature of training, trained on the CPU and on emulated GPUs: what each run leaves is compared.
#pragma once

#include <string>

#include "tests/support/in_process.h"
#include "tests/support/training.h"

namespace shardc {

/// Relative: products are those of the reference, and other sums are in another order.
constexpr double InF32 = 1e-4;
/// Relative: one more or less in the last of 8 bits, here and there.
constexpr double InBf16 = 2e-2;

struct Feature {
  const char* name;
  Sets sets;
  /// The greatest relative difference of losses, of norms of gradients, and of parameters by their norms. That of
  /// moments is ten times as much: the gradients of one parameter may cancel each other.
  double tolerance = InF32;
  ExitCode code = ExitCode::Ok;
  /// Part of what both runs print.
  const char* prints = "";
};

/// Trainings of 3 steps of 4 sequences of 16 tokens on one rank, with evaluations and a save.
class SmallTraining : public Training {
 public:
  /// Writes masked.bin beside tokens.bin: the tokens as targets, of which every third is left out. And documents.bin,
  /// as many tokens in documents, some longer than a sample, and held_out.bin, a few of those.
  SmallTraining();
};

/// Returns the sets with those that train on documents, which `pack` puts into samples. Packed ones are not evaluated.
auto OnDocuments(Pack pack, const Sets& more_sets = {}) -> Sets;

/// Returns the sets with that which chooses the emulated GPU.
auto OnGpu(Sets sets) -> Sets;

/// Trains as TrainInProcess does, on emulated GPUs if the plan is for GPUs: in the order of the plan's list, or with
/// warps and streams in other orders.
auto TrainInOrder(const Plan& plan, const std::string& run_dir) -> TrainedRun;
auto TrainInOtherOrder(const Plan& plan, const std::string& run_dir) -> TrainedRun;

/// Trains once on the CPU and twice on emulated GPUs, of which each rank has one, in folders of `training`. Expects
/// losses, norms and state within the tolerance of the CPU's, and the same bits in both orders.
auto ExpectTrainsAsOnCpu(const Training& training, const Feature& feature) -> void;

/// Trains on emulated GPUs with fused ops and with plain ones. Expects losses, norms and state of the first within the
/// tolerance of those of the second.
auto ExpectFusedTrainsAsPlain(const Training& training, const Feature& feature) -> void;

}  // namespace shardc
