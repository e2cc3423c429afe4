// A small Llama trained by the program itself: recipe, plan, ranks as threads; and what it did, put together from the
// ranks' slices as whole tensors by name.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "tests/parity/torch_llama.h"

namespace shardc {

/// What differs from the recipe in training_run.cpp: 3 layers, hidden 60, 4 heads of 12 on 2 kv heads, vocab 257,
/// seq 33.
struct TrainingCase {
  std::string name;
  bool tied = false;
  /// `section.key=value`.
  std::vector<std::string> sets;
  /// Tables put after the recipe.
  std::string tables;
  int64_t steps = 1;
  /// The stream is random ids; the shorter, the sooner it comes round.
  int64_t num_tokens = 4000;
  /// May overwrite the stream.
  std::function<void(std::span<int32_t> stream)> edit_stream = {};
  /// May overwrite the targets [accumulate, seq, micro] of a step that the ranks of a replica have.
  std::function<void(int64_t replica, std::span<int32_t> targets)> mask;
  /// Of heads that read targets from files: has sample `sample` any? By default each has. Those of the model's own head
  /// are the tokens, those of others random ids.
  std::function<bool(std::string_view head, int64_t sample)> has_targets;
  /// Run the eval section at the end.
  bool evaluates = false;
};

struct TrainingRun {
  LlamaShape shape;
  /// As the tests made it.
  std::vector<int32_t> stream;
  NamedNumbers initial;
  /// After the last step.
  NamedNumbers parameters;
  NamedNumbers exp_avg;
  NamedNumbers exp_avg_sq;
  /// Of the last step, before clipping.
  NamedNumbers gradients;
  /// One a step.
  std::vector<TokenBatch> batches;
  Numbers losses;
  Numbers grad_norms;
  Numbers lrs;
  /// Steps whose gradient was not finite.
  int64_t num_nonfinite = 0;
  double eval_loss = 0;
};

/// Its plan. A case that does not compile ends the test program.
auto CompileTraining(const TrainingCase& training_case) -> Plan;

/// Compiles, trains `steps` steps and gathers. A case that does not compile or run ends the test program.
auto RunTraining(const TrainingCase& training_case) -> TrainingRun;

}  // namespace shardc
