// The stages of a run of adapters: what was trained beside them in any of these, and the model that they are beside.
#pragma once

#include <string>
#include <vector>

#include "compiler/checkpoint/manifest.h"

namespace shardc {

struct AdapterStages {
  /// Globs of adapter.train_also, of all stages.
  std::vector<std::string> train_also;
  /// The path of the model of Hugging Face that the first stage began from, as its recipe gave it; empty if that began
  /// from scratch or from a checkpoint.
  std::string base;
  /// The class of that model, "Phi3ForCausalLM"; empty with it.
  std::string architecture;
  /// The id of the run before which a stage's record is not there; empty if all of them are.
  std::string lost;
};

/// Goes back from a checkpoint by the records of run directories, up to the stage that began without adapters.
auto AdapterStagesOf(const std::string& checkpoint, const Manifest& manifest) -> AdapterStages;

}  // namespace shardc
