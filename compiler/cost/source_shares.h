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
  /// Samples of the run that come from this source.
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
  /// The sources of a mixture; for one stream, itself if its files are here, else nothing.
  std::vector<SourceShare> sources;
  /// Those of a very long run are estimated.
  bool is_exact = true;
  /// The fault of the first step at which the weights give no shares.
  std::string fault;
};

/// Returns the shares as the run will count them (compiler/plan/run_samples.h).
/// `facts`: the contents of the files (LookAtData), or nothing if they were not looked at.
auto MixtureOf(const Plan& plan, const std::vector<SourceFacts>& facts = {}) -> MixtureUse;

/// Returns the lines on data of the report for people; empty if there is nothing to report.
auto DataText(const Plan& plan, const MixtureUse& use) -> std::string;

}  // namespace shardc
