// init.json of a run directory: what a first start drew, as the runtime writes it and `plan --print-init` reads
// it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"

namespace shardc {

constexpr std::string_view InitRecordName = "init.json";

/// One parameter: what its values follow from, and what came of it.
struct RealisedParameter {
  std::string name;
  Dims shape;
  DType dtype = DType::F32;
  std::string rule;
  /// Statistics of the elements of the whole tensor, each counted once, as they are kept; the deviation is that from
  /// this mean.
  double mean = 0;
  double std = 0;

  friend auto operator==(const RealisedParameter&, const RealisedParameter&) -> bool = default;
};

struct InitRecord {
  uint64_t seed = 0;
  /// The digest of the manifest of the checkpoint that the others were loaded from; empty without a checkpoint.
  std::string loaded_from;
  /// XXH3-128 of the rotary table's bytes, 32 hex digits; the same on all ranks of any mesh. Empty in older records.
  std::string rotary_table;
  /// By all ranks together, copies included.
  int64_t elements_drawn = 0;
  /// In the order of the plan; without those that were loaded.
  std::vector<RealisedParameter> parameters;

  friend auto operator==(const InitRecord&, const InitRecord&) -> bool = default;
};

auto ToText(const InitRecord& record) -> std::string;
/// Errors: ExitCode::Usage, with what is missing or wrong.
auto ParseInitRecord(std::string_view text) -> ErrorOr<InitRecord>;

/// Returns why a plan's parameters do not begin with these values: the first seed, checkpoint, parameter, shape, type
/// or rule that is another. Returns an empty text if they do: initial values depend on nothing else, the mesh included.
auto DifferenceFrom(const InitRecord& record, const Plan& plan) -> std::string;

}  // namespace shardc
