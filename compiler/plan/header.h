// The header of a plan and the keys of the recipe: which fields follow from which keys. The compiler fills in a header
// by it, and the verifier holds the lines `recipe` of a plan against the plan's header by it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "compiler/base/preset_rows.h"
#include "compiler/keys/plan_keys.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Returns the keys that the lines `recipe` of a plan state. Lines that the verifier refuses count as left out.
auto KeysOf(const Plan& plan) -> PlanKeys;
/// Returns true if the recipe left the key out, and the plan has a value for it only so that it could be made.
auto IsAssumed(const Plan& plan, OriginKey key) -> bool;

/// Returns the preset that the recipe names; null if it names none that there is. Reads that line alone: traces ask for
/// each op.
auto PresetOf(const Plan& plan) -> const PresetRow*;
/// Returns how many units are gathered ahead by shard.prefetch_forward or shard.prefetch_backward, whose value in the
/// plan's keys is `depth`.
auto PrefetchDepth(const Plan& plan, const std::optional<int64_t>& depth) -> int64_t;

/// Returns a size of the line `model`, such as "heads"; nothing if the line lacks it.
auto ModelSize(const PlanHeader& header, const std::string& name) -> std::optional<int64_t>;

/// Puts what the keys give into a header; fields that follow from no key that is set stay as they are. What a key
/// leaves open (device "cpu", comm "auto") stays too. Names of files are not among the fields: they depend on folders.
auto PutKeys(const PlanKeys& keys, PlanHeader& header) -> void;
/// Puts in what the sources of the tokens are, as PutKeys does.
auto PutData(const PlanKeys& keys, DataSource& data) -> void;

/// The values of a header's fields by their lines and names: {"run", "steps"} is "300".
using HeaderFields = std::map<std::pair<std::string, std::string>, std::string>;
/// Returns the fields that PutKeys may write.
auto HeaderFieldsOf(const PlanHeader& header) -> HeaderFields;

}  // namespace shardc
