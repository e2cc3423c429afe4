// What a plan costs, added up from the plan's own lists: nothing is worked out a second time. One renderer a file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/cost/alive.h"
#include "compiler/cost/block_activations.h"
#include "compiler/cost/overlap.h"
#include "compiler/cost/preset_use.h"
#include "compiler/cost/source_shares.h"
#include "compiler/cost/state_shares.h"
#include "compiler/cost/step_time.h"
#include "compiler/data/document_facts.h"
#include "compiler/fit/fit.h"
#include "compiler/ops/communication.h"
#include "compiler/ops/ops.h"
#include "compiler/report/schedule_chart.h"

namespace shardc {

/// The moment of a section at which most bytes are alive.
struct MemoryPeak {
  SectionKind section = SectionKind::Step;
  /// Number of the op in its section; what it is, for people; its line in the plan.
  int64_t op_index = -1;
  std::string op_summary;
  std::string op_text;
  MemoryUse use;
};

/// Parameters that share the text of their init rule, with everything known put in.
struct InitUse {
  /// "seed" of parameters that are loaded.
  std::string rule;
  int32_t recipe_line = 0;
  int64_t num_parameters = 0;
  int64_t num_elements = 0;
  std::string first_parameter;
};

/// Parameters that a first start loads from the plan's seed, those that rules make of what they read there, and those
/// that it generates.
struct SeedUse {
  int64_t num_loaded = 0;
  int64_t loaded_elements = 0;
  int64_t num_read = 0;
  int64_t read_elements = 0;
  int64_t num_generated = 0;
  int64_t generated_elements = 0;
  /// The number of loaded ones whose moments are loaded too.
  int64_t num_with_moments = 0;
  /// Globs over tensors that nothing uses, as the recipe names them.
  std::vector<std::string> unused;
  /// Bytes that a rank loads, at most.
  Bytes read_by_rank;
  /// Differences from the run that it continues, each with what follows from it, as far as they are known.
  std::vector<std::string> changes;
};

struct UnitUse {
  std::string name;
  int64_t num_elements = 0;
  /// Bytes of the whole vector; the communication rows have the cost of its gathers.
  Bytes gathered;
  bool reshard_after_forward = true;
  /// In a step. 0 with one rank: the slice is the whole.
  int64_t num_gathers = 0;
  /// Does a gather of forward last into backward?
  bool kept_for_backward = false;
  /// The part of a freed vector that this rank holds until backward, which gathers it from a few ranks. 0: none.
  Bytes kept_slice;
  bool trainable = true;
  bool is_whole = false;
};

/// Buffers of one kind that are alive at once in a step, at most: a ring of that depth would hold them.
struct RingUse {
  int64_t depth = 0;
  Bytes bytes;
};

/// The logits of one chunk of the loss, which are computed, used and freed before those of the next.
struct LossUse {
  int64_t chunks = 0;
  Bytes logits;
  /// Those whose targets are read from files.
  std::vector<TargetHead> heads;
};

/// Bytes of the sums of gradients over microbatches: as owned slices, each microbatch reduced, or whole and reduced
/// last.
struct GradientSums {
  Bytes slices;
  Bytes whole;
  /// Which of the two the plan does.
  bool are_whole = false;
};

struct Report {
  const Plan* plan = nullptr;
  std::string plan_hash;
  PresetUse preset;
  int64_t parameters_total = 0;
  /// Elements a rank owns, padding included.
  int64_t parameters_per_rank = 0;
  StateShares shares;
  std::vector<AdapterUse> adapters;
  /// Peak of the section with the highest peak, then those of the others that have ops.
  MemoryPeak peak;
  std::vector<MemoryPeak> section_peaks;
  /// At each op of a step; at the peak, buffer by buffer.
  std::vector<MemoryUse> memory_over_step;
  std::vector<AliveBuffers> alive_at_peak;
  std::vector<BlockActivations> blocks;
  /// Bytes that a save writes of all ranks, without headers.
  Bytes checkpoint;
  /// Bytes of parameters that it leaves to the base.
  Bytes in_base;
  /// Sum of all arenas of a rank: what the run reserves.
  Bytes reserved;
  std::vector<Communication> step_communication;
  std::vector<OverlapUse> overlaps;
  StepFlops flops;
  /// Set for devices whose streams run side by side.
  std::optional<StepTime> time;
  std::vector<InitUse> init;
  SeedUse seed;
  std::vector<UnitUse> units;
  /// Gathered sub-vectors; inputs of reduce-scatters.
  RingUse gather_ring;
  RingUse reduce_ring;
  GradientSums gradient_sums;
  LossUse loss;
  std::vector<ScheduleUse> schedules;
  MixtureUse mixture;
  /// Set if documents are something to the model, and were counted.
  std::optional<RunDocuments> documents;
  /// Set if a budget of memory was named.
  std::optional<FitUse> fit;
};

/// Requires: every pass has run. The report points at the plan.
auto Explain(const Plan& plan) -> Report;

/// Returns the report for people; its form may change.
auto RenderReportText(const Report& report) -> std::string;
/// Returns the report for people as one page of HTML that needs nothing else. Its element of id `report` holds
/// RenderReportJson, byte for byte.
auto RenderReportHtml(const Report& report) -> std::string;
/// Returns the report for programs; fields are documented in docs/explain.md, `format_version` counts breaking changes.
auto RenderReportJson(const Report& report) -> std::string;

}  // namespace shardc
