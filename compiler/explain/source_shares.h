// What the run takes from each source of its data, and what the source has, where its files are here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/data/data_files.h"
#include "compiler/plan/plan.h"

namespace shardc {

struct SourceShare {
  std::string name;
  /// The expression.
  std::string weight;
  /// Of the run's samples.
  int64_t samples = 0;
  double fraction = 0;
  /// Are all files of the source here? Then what they hold follows.
  bool is_known = false;
  int64_t tokens = 0;
  int64_t epoch_samples = 0;
  int64_t eval_samples = 0;

  auto epochs() const -> double { return static_cast<double>(samples) / static_cast<double>(epoch_samples); }
};

struct MixtureUse {
  /// Of one stream, itself if its files are here, and none else.
  std::vector<SourceShare> sources;
  /// Those of a very long run are estimated.
  bool is_exact = true;
  /// What is wrong at the first step where the weights give no shares.
  std::string fault;
};

/// As the run will count (compiler/plan/run_samples.h).
/// `facts`: what the files hold (LookAtData), or nothing if they were not looked at.
auto MixtureOf(const Plan& plan, const std::vector<SourceFacts>& facts = {}) -> MixtureUse;

/// The lines on data of the report for people; empty if there is nothing to say.
auto DataText(const Plan& plan, const MixtureUse& use) -> std::string;

}  // namespace shardc
