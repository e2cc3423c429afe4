#include "compiler/passes/choose_units.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "compiler/base/mapped.h"
#include "compiler/expr/layer_choice.h"
#include "compiler/model/model_family.h"
#include "compiler/plan/local_parameter.h"
#include "compiler/recipe/resolved.h"
#include "compiler/recipe/unit_preset.h"
#include "compiler/start/match_names.h"

namespace shardc {

static auto TypeOf(ComputePrecision precision) -> DType {
  switch (precision) {
    case ComputePrecision::Fp32: return DType::F32;
    case ComputePrecision::Bf16: return DType::BF16;
  }
  CHECK(false, "precision {}", static_cast<int>(precision));
}

static auto TypeOf(MasterPrecision precision) -> DType {
  switch (precision) {
    case MasterPrecision::Fp32: return DType::F32;
    case MasterPrecision::Bf16: return DType::BF16;
  }
  CHECK(false, "precision {}", static_cast<int>(precision));
}

static auto TypeOf(ReducePrecision precision) -> DType {
  switch (precision) {
    case ReducePrecision::Fp32: return DType::F32;
    case ReducePrecision::Bf16: return DType::BF16;
  }
  CHECK(false, "precision {}", static_cast<int>(precision));
}

auto ComputeType(const Recipe& recipe) -> DType { return TypeOf(*recipe.precision.compute); }

namespace {

/// Returns where each parameter outside the blocks is read: before them, after, or both.
auto SidesOf(const Recipe& recipe) -> std::vector<Side> {
  return Mapped<Side>(ParametersOf(ModelFamilyOf(*recipe.model.family), ResolveModel(recipe)), &ParameterSpec::side);
}

class UnitChooser {
 public:
  UnitChooser(const Plan& plan, PassContext& context)
      : plan_(plan),
        recipe_(*context.recipe),
        shard_(context.recipe->shard),
        diags_(*context.diags),
        preset_(*ParseUnitPreset(*context.recipe->shard.units)),
        sides_(SidesOf(*context.recipe)) {}

  auto Run() -> ErrorOr<std::vector<UnitChoice>> {
    MatchTables();
    Group();
    if (!diags_.has_errors()) {
      Reshard();
      ChooseTypes();
    }
    if (diags_.has_errors()) {
      return Rejected();
    }
    return std::move(units_);
  }

 private:
  auto MatchTables() -> void;
  auto Group() -> void;
  auto Reshard() -> void;
  auto ChooseTypes() -> void;
  auto CheckAdapterMaster(const UnitChoice& unit, const PrecisionOverride& own) -> void;
  /// Returns, for each unit, the rule that names it, or NoRule.
  template <class Rule>
  auto MatchUnits(const std::vector<Rule>& rules) const -> std::vector<size_t>;
  auto PresetNameOf(ParameterId id) -> std::string;
  auto PartOf(const Parameter& parameter) -> std::string;
  /// Returns what `shard.reshard_after_forward` says, before overrides.
  auto Reshards(const UnitChoice& unit) const -> bool;
  auto LastBlockOf(const UnitChoice& unit) const -> int64_t;
  auto SideOf(ParameterId id) const -> Side { return sides_[static_cast<size_t>(id.index)]; }
  auto TableOf(ParameterId id) const -> size_t { return tables_[static_cast<size_t>(id.index)]; }

  const Plan& plan_;
  const Recipe& recipe_;
  const ShardSection& shard_;
  Diagnostics& diags_;
  UnitPreset preset_;
  /// In the order of the plan's parameters.
  std::vector<Side> sides_;
  /// Index of the table that matches each parameter, or NoRule.
  std::vector<size_t> tables_;
  /// Is a parameter outside the blocks and the tables read on both sides of the blocks?
  bool any_both_ = false;
  /// The unit that is being filled; for UnitPreset::Kind::Size.
  int64_t part_ = -1;
  Bytes part_bytes_;
  std::vector<UnitChoice> units_;
  /// Overrides that were refused.
  std::set<const PrecisionOverride*> reported_;
  /// For each block, what shard.reshard_after_forward says.
  std::vector<bool> resharded_blocks_;
};

auto UnitChooser::MatchTables() -> void {
  std::vector<NamePattern> patterns;
  for (size_t t = 0; t < shard_.unit.size(); ++t) {
    for (const std::string& glob : *shard_.unit[t].match) {
      patterns.push_back({glob, shard_.unit[t].match.at, t});
    }
  }
  const auto names = Mapped<std::string_view>(plan_.parameters, &Parameter::name);
  tables_ = MatchNames(
      patterns, names,
      {.duplicate = DiagnosticKind::UnitDuplicate, .unused = DiagnosticKind::UnitUnused, .noun = "parameter"}, diags_);
  for (const ParameterId id : plan_.parameters.ids()) {
    any_both_ |= TableOf(id) == NoRule && plan_.parameters[id].layer < 0 && SideOf(id) == Side::Both;
  }
}

/// Returns the name of the unit that the parameter goes to. A parameter that does not fit begins the next unit.
auto UnitChooser::PartOf(const Parameter& parameter) -> std::string {
  const Bytes bytes{NumElements(LocalShape(parameter, plan_.mesh)) * SizeOf(ComputeType(recipe_))};
  if (part_ < 0 || part_bytes_ + bytes > preset_.most) {
    ++part_;
    part_bytes_ = {};
  }
  part_bytes_ += bytes;
  return fmt::format("part.{}", part_);
}

auto UnitChooser::PresetNameOf(ParameterId id) -> std::string {
  const Parameter& parameter = plan_.parameters[id];
  if (preset_.kind == UnitPreset::Kind::Size) {
    return PartOf(parameter);
  }
  if (parameter.layer >= 0) {
    const int64_t layers = *recipe_.model.layers;
    const int64_t first = parameter.layer / preset_.num_blocks * preset_.num_blocks;
    const int64_t last = std::min(first + preset_.num_blocks, layers) - 1;
    return first == last ? fmt::format("layers.{}", first) : fmt::format("layers.{}-{}", first, last);
  }
  if (any_both_) {
    return "root";
  }
  return SideOf(id) == Side::Before ? "embed" : "head";
}

auto UnitChooser::Group() -> void {
  std::unordered_map<std::string, size_t> index_of;
  for (const ParameterId id : plan_.parameters.ids()) {
    const size_t table = TableOf(id);
    const std::string name = table == NoRule ? PresetNameOf(id) : UnitNameOf(shard_, table);
    const auto [found, fresh] = index_of.try_emplace(name, units_.size());
    if (fresh) {
      units_.push_back({.name = name, .reshard_after_forward = true, .origin = {}, .parameters = {}});
    }
    UnitChoice& unit = units_[found->second];
    if (!fresh && TableOf(unit.parameters.front()) != table) {
      const UnitRule& rule = shard_.unit[table == NoRule ? TableOf(unit.parameters.front()) : table];
      diags_.Report(rule.name.is_set ? rule.name.at : rule.at, DiagnosticKind::UnitNameTaken, name, *shard_.units);
      return;
    }
    unit.parameters.push_back(id);
  }
}

auto UnitChooser::LastBlockOf(const UnitChoice& unit) const -> int64_t {
  int64_t last = -1;
  for (const ParameterId id : unit.parameters) {
    last = std::max(last, plan_.parameters[id].layer);
  }
  return last;
}

/// Returns true if the unit is freed between forward and backward. A predicate decides for blocks; units outside keep
/// what they gathered, as backward wants it at once. A plain bool decides for all.
auto UnitChooser::Reshards(const UnitChoice& unit) const -> bool {
  const std::string& text = shard_.reshard_after_forward->text;
  const ParameterId first = unit.parameters.front();
  const int64_t layer = LastBlockOf(unit);
  const bool is_read_last = layer < 0 && (any_both_ || SideOf(first) != Side::Before);
  if (TableOf(first) == NoRule && preset_.kind == UnitPreset::Kind::Torchtitan && is_read_last) {
    return false;
  }
  if (layer < 0) {
    return text == "true";
  }
  return resharded_blocks_.at(static_cast<size_t>(layer));
}

template <class Rule>
auto UnitChooser::MatchUnits(const std::vector<Rule>& rules) const -> std::vector<size_t> {
  const auto names = Mapped<std::string_view>(units_, &UnitChoice::name);
  return MatchNames(PatternsOf(rules), names,
                    {.duplicate = DiagnosticKind::OverrideDuplicate,
                     .unused = DiagnosticKind::OverrideUnused,
                     .noun = "unit",
                     .lists_names = true},
                    diags_);
}

/// Refuses an override that keeps adapters, or what is trained beside them, in another type than fp32.
auto UnitChooser::CheckAdapterMaster(const UnitChoice& unit, const PrecisionOverride& own) -> void {
  const auto is_trained = [&](ParameterId id) { return plan_.parameters[id].trainable; };
  if (recipe_.adapter.kind.is_set && own.master.is_set && unit.master != DType::F32 &&
      std::ranges::any_of(unit.parameters, is_trained) && reported_.insert(&own).second) {
    diags_.Build(own.master.at, DiagnosticKind::AdapterMaster)
        .Help(fmt::format("the unit {} has some; leave `master` out here, and write precision.frozen = \"bf16\", which "
                          "keeps what is frozen in bf16",
                          unit.name))
        .Emit();
  }
}

auto UnitChooser::ChooseTypes() -> void {
  const PrecisionSection& precision = recipe_.precision;
  const auto overrides = MatchUnits(precision.override);
  for (size_t u = 0; u < units_.size(); ++u) {
    units_[u].compute = TypeOf(*precision.compute);
    units_[u].master = TypeOf(*precision.master);
    units_[u].reduce = TypeOf(*precision.reduce);
    if (overrides[u] != NoRule) {
      const PrecisionOverride& own = precision.override[overrides[u]];
      units_[u].compute = own.compute.is_set ? TypeOf(*own.compute) : units_[u].compute;
      units_[u].master = own.master.is_set ? TypeOf(*own.master) : units_[u].master;
      units_[u].reduce = own.reduce.is_set ? TypeOf(*own.reduce) : units_[u].reduce;
      CheckAdapterMaster(units_[u], own);
    }
    units_[u].frozen = precision.frozen.is_set ? TypeOf(*precision.frozen) : units_[u].master;
  }
}

auto UnitChooser::Reshard() -> void {
  const auto predicate = ParseExpr(shard_.reshard_after_forward->text, ExprKind::Predicate);
  CHECK(predicate.ok(), "check let the predicate `{}` pass", shard_.reshard_after_forward->text);
  auto blocks = LayersWhere(predicate.value, *recipe_.model.layers, *recipe_.model.hidden);
  CHECK(blocks.ok(), "check let the predicate `{}` pass", shard_.reshard_after_forward->text);
  resharded_blocks_ = std::move(blocks.value);
  const auto overrides = MatchUnits(shard_.override);
  for (size_t u = 0; u < units_.size(); ++u) {
    if (overrides[u] == NoRule) {
      units_[u].reshard_after_forward = Reshards(units_[u]);
      units_[u].origin = OriginOf(shard_.reshard_after_forward, "shard.reshard_after_forward");
    } else {
      const auto& reshard = shard_.override[overrides[u]].reshard_after_forward;
      units_[u].reshard_after_forward = *reshard;
      units_[u].origin = OriginOf(reshard, "shard.override");
    }
  }
}

}  // namespace

auto ChooseUnits(const Plan& plan, PassContext& context) -> ErrorOr<std::vector<UnitChoice>> {
  return UnitChooser(plan, context).Run();
}

}  // namespace shardc
