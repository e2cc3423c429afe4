// 1. Find the table of each parameter or unit: an exact name beats a pattern.
// 2. Compare the parameter or unit with it. A rule of initial values is compared after everything known was put into
//    it, as pass build does. Of a scheme, whose rules are by kinds of parameters, each rule may be that of a parameter.
//
// A plan may leave out any line. What the parameters have from a line that is left out is not judged. But a scheme
// gives the rules of all parameters that no line names otherwise, and a seed loads all parameters that start.first does
// not leave to their rules.
#include "compiler/verify/recipe_rules.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "compiler/base/glob.h"
#include "compiler/checkpoint/published_rows.h"
#include "compiler/expr/expr.h"
#include "compiler/expr/init_schemes.h"
#include "compiler/keys/adapters.h"
#include "compiler/keys/toml_value.h"
#include "compiler/ops/unit_collectives.h"
#include "compiler/plan/header.h"
#include "compiler/plan/init_rule.h"

namespace shardc {

namespace {

/// Returns the first table whose pattern matches a name, or the one that has the name itself; null if none does.
template <class Table>
auto TableOf(const std::vector<Table>& tables, std::string_view name) -> const Table* {
  const Table* found = nullptr;
  for (const Table& table : tables) {
    if (IsExactName(*table.match) && *table.match == name) {
      return &table;
    }
    found = found == nullptr && GlobMatches(*table.match, name) ? &table : found;
  }
  return found;
}

class RuleVerifier {
 public:
  RuleVerifier(const Plan& plan, const PlanKeys& keys, Findings& findings)
      : plan_(plan), keys_(keys), findings_(findings) {}

  auto Groups() -> void;
  auto Adapters() -> void;
  auto Frozen() -> void;
  auto Types() -> void;
  auto InitRules() -> void;

 private:
  template <class... Args>
  auto Refuse(std::string_view key, fmt::format_string<Args...> format, Args&&... args) -> void {
    findings_.Add("header-recipe"_rule, "the line `recipe {}` has {}, {}", key,
                  std::ranges::find(plan_.recipe, key, &RecipeEntry::key)->value,
                  fmt::format(format, std::forward<Args>(args)...));
  }
  /// Compares the type that a unit has with that of a key, or of the override that names the unit. Adds one finding for
  /// each key.
  template <class E>
  auto ExpectType(std::string_view key, const std::string& unit, const std::optional<OneOf<E>>& word,
                  const std::optional<OneOf<E>>& own, std::string_view what, DType in_plan) -> void;
  /// Returns true if start.first loads the parameter from the seed. Requires: the line is there if the plan has a seed.
  auto IsLoaded(const Parameter& parameter) const -> bool;
  auto FanIn(const Parameter& parameter) const -> int64_t;
  /// Returns true if the rule with everything known put in is the parameter's.
  auto Gives(const std::string& rule, const Parameter& parameter) -> bool;

  const Plan& plan_;
  const PlanKeys& keys_;
  Findings& findings_;
  std::set<std::string_view> wrong_types_;
  /// Values that rules know: of the model, and of the parameter that was looked at last.
  ExprVariables variables_;
  std::map<std::string, std::optional<Expr>> parsed_;
  /// Rules with everything known put in, by rule and by what is known; nothing if that has no value.
  std::map<std::string, std::optional<std::string>> reduced_;
};

auto RuleVerifier::Groups() -> void {
  constexpr std::string_view Key = "optimizer.group";
  const auto& tables = keys_.optimizer.group;
  if (!plan_.groups.empty() && plan_.groups.begin()->lr_scale != 1) {
    findings_.Add("header-recipe"_rule, "the default group has lr_scale {}, which no recipe gives it",
                  plan_.groups.begin()->lr_scale);
    return;
  }
  if (tables.empty() || plan_.groups.empty()) {
    return;
  }
  if (plan_.groups.size() != std::ssize(tables) + 1) {
    Refuse(Key, "the plan {} beside the default", plan_.groups.size() - 1);
    return;
  }
  const double decay = plan_.groups.begin()->weight_decay;
  for (size_t i = 0; i < tables.size(); ++i) {
    const OptimizerGroup& group = plan_.groups[GroupId{static_cast<int32_t>(i) + 1}];
    if (group.name != *tables[i].match || tables[i].weight_decay.value_or(decay) != group.weight_decay ||
        tables[i].lr_scale.value_or(1) != group.lr_scale) {
      Refuse(Key, "the plan has group {} with weight_decay {} and lr_scale {} there", group.name, group.weight_decay,
             group.lr_scale);
      return;
    }
  }
  for (const Parameter& parameter : plan_.parameters) {
    const auto* table = TableOf(tables, parameter.name);
    if (parameter.group.index != (table == nullptr ? 0 : table - tables.data() + 1)) {
      Refuse(Key, "and {} is in group {} of the plan", parameter.name, plan_.groups[parameter.group].name);
      return;
    }
  }
}

/// Holds what is trained against [adapter]: the adapters, and what train_also names.
auto RuleVerifier::Adapters() -> void {
  const std::vector<std::string> also = keys_.adapter.train_also.value_or(std::vector<std::string>());
  for (const Parameter& parameter : plan_.parameters) {
    const bool is_trained =
        !AdaptedBy(parameter.name).empty() ||
        std::ranges::any_of(also, [&](const std::string& glob) { return GlobMatches(glob, parameter.name); });
    if (is_trained != parameter.trainable) {
      Refuse("adapter.kind", "and the plan {} {}", parameter.trainable ? "trains" : "does not train", parameter.name);
      return;
    }
  }
}

auto RuleVerifier::Frozen() -> void {
  if (keys_.adapter.kind) {
    if (keys_.optimizer.frozen && !keys_.optimizer.frozen->empty()) {
      Refuse("optimizer.frozen", "and the line `recipe adapter.kind` freezes everything else already");
    }
    Adapters();
    return;
  }
  if (!keys_.optimizer.frozen) {
    return;
  }
  for (const Parameter& parameter : plan_.parameters) {
    const bool is_frozen = std::ranges::any_of(
        *keys_.optimizer.frozen, [&](const std::string& glob) { return GlobMatches(glob, parameter.name); });
    if (is_frozen == parameter.trainable) {
      Refuse("optimizer.frozen", "and the plan {} {}", parameter.trainable ? "trains" : "does not train",
             parameter.name);
      return;
    }
  }
}

template <class E>
auto RuleVerifier::ExpectType(std::string_view key, const std::string& unit, const std::optional<OneOf<E>>& word,
                              const std::optional<OneOf<E>>& own, std::string_view what, DType in_plan) -> void {
  const std::optional<OneOf<E>>& decides = own ? own : word;
  if (decides && (*decides == E::Bf16) != (in_plan == DType::BF16) && wrong_types_.insert(key).second) {
    Refuse(own ? "precision.override" : key, "and the unit {} {} {}", unit, what, ToText(in_plan));
  }
}

auto RuleVerifier::Types() -> void {
  const auto& precision = keys_.precision;
  for (const SubVector& sub_vector : plan_.sub_vectors) {
    const std::string& unit = plan_.units[sub_vector.unit].name;
    const auto* table = TableOf(precision.override, unit);
    const auto of_unit = table == nullptr ? PrecisionOverrideOf<InPlan>{} : *table;
    ExpectType("precision.compute", unit, precision.compute, of_unit.compute, "computes in", sub_vector.compute);
    const DType kept = StateTypeOf(plan_, sub_vector, StateRole::Parameter);
    if (!sub_vector.trainable && precision.frozen) {
      ExpectType("precision.frozen", unit, precision.frozen, {}, "keeps its frozen parameters in", kept);
    } else {
      ExpectType("precision.master", unit, precision.master, of_unit.master, "keeps its parameters in", kept);
    }
  }
  for (const Op& op : plan_.section(SectionKind::Step).ops) {
    const auto scatter = GradientScatterOf(plan_, op);
    const SubVectorId id = scatter ? plan_.values[scatter->from].role.sub_vector() : SubVectorId{};
    if (id.valid()) {
      const std::string& unit = plan_.units[plan_.sub_vectors[id].unit].name;
      const auto* table = TableOf(precision.override, unit);
      ExpectType("precision.reduce", unit, precision.reduce, table == nullptr ? std::nullopt : table->reduce,
                 "sends its gradients in", plan_.values[scatter->from].dtype);
    }
  }
}

auto RuleVerifier::IsLoaded(const Parameter& parameter) const -> bool {
  const auto is_of_adapter = [](const auto& tensor) { return !AdaptedBy(tensor.name).empty(); };
  return plan_.seed.is_set() && (!is_of_adapter(parameter) || std::ranges::any_of(plan_.seed.tensors, is_of_adapter)) &&
         std::ranges::none_of(keys_.start.first->missing.value_or(std::vector<std::string>()),
                              [&](const std::string& glob) { return GlobMatches(glob, parameter.name); });
}

auto RuleVerifier::FanIn(const Parameter& parameter) const -> int64_t {
  constexpr std::string_view Bias = ".bias";
  if (parameter.shape.size() == 1 && parameter.name.ends_with(Bias)) {
    const std::string matrix = parameter.name.substr(0, parameter.name.size() - Bias.size()) + ".weight";
    const auto found = std::ranges::find(plan_.parameters, matrix, &Parameter::name);
    return found == plan_.parameters.end() ? parameter.shape.back() : found->shape.back();
  }
  return parameter.shape.back();
}

auto RuleVerifier::Gives(const std::string& rule, const Parameter& parameter) -> bool {
  const auto [found, is_new] = parsed_.try_emplace(rule);
  if (is_new) {
    auto parsed = ParseExpr(rule, ExprKind::Rule);
    found->second = parsed.ok() ? std::optional(std::move(parsed.value)) : std::nullopt;
  }
  if (!found->second) {
    return false;
  }
  if (!variables_.contains("init_std") && UsesVariable(*found->second, "init_std")) {
    return true;
  }
  // The blocks of a model share most of their rules.
  const int64_t layer = UsesVariable(*found->second, "layer") ? parameter.layer : -1;
  const auto [known, is_fresh] = reduced_.try_emplace(
      fmt::format("{} {} {} {}", rule, ToText(parameter.shape), FanIn(parameter), layer), std::nullopt);
  if (is_fresh) {
    SetParameterVariables(parameter.shape, FanIn(parameter), parameter.layer, variables_);
    const auto result = ReduceRule(*found->second, variables_);
    known->second = result.ok() ? std::optional(result.value.text()) : std::nullopt;
  }
  const std::optional<std::string>& reduced = known->second;
  if (!reduced || *reduced == parameter.init) {
    return reduced.has_value();
  }
  // A plan may spell it otherwise.
  const auto own = ParseExpr(parameter.init, ExprKind::Rule);
  const auto own_reduced = own.ok() ? ReduceRule(own.value, {}) : ExprResult<Expr>{};
  return own.ok() && own_reduced.ok() && own_reduced.value.text() == *reduced;
}

auto RuleVerifier::InitRules() -> void {
  const auto& init = keys_.init;
  for (const char* size : {"layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "seq"}) {
    variables_[size] = static_cast<double>(ModelSize(plan_, size).value_or(0));
  }
  if (init.std) {
    variables_["init_std"] = *init.std;
  }
  std::vector<std::string> of_scheme;
  if (init.scheme) {
    for (const InitSchemeRule& rule : InitSchemeNamed(*init.scheme).rules) {
      of_scheme.emplace_back(rule.value);
    }
  }
  auto made = plan_.seed.format == SeedFormat::HuggingFace ? published::MadeRowsOf(plan_.seed.run_id)
                                                           : std::vector<published::MadeRow>();
  if (!plan_.seed.adapter.empty()) {
    std::ranges::move(published::AdapterRowsOf(ResolveAdapters(keys_)), std::back_inserter(made));
  }
  for (const Parameter& parameter : plan_.parameters) {
    if (parameter.shape.empty()) {
      continue;
    }
    if (IsLoaded(parameter)) {
      const std::string loading = published::LoadingRule(made, parameter.name);
      if (parameter.init != loading && !Gives(loading, parameter)) {
        Refuse("start.first", "and the rule of {} in the plan is {}", parameter.name, parameter.init);
        return;
      }
      continue;
    }
    if (const auto* table = TableOf(init.rule, parameter.name)) {
      if (!Gives(table->value->text, parameter)) {
        Refuse("init.rule", "and the rule of {} in the plan is {}", parameter.name, parameter.init);
        return;
      }
    } else if (!AdaptedBy(parameter.name).empty()) {
      const std::string_view own = parameter.name.ends_with(UpSuffix) ? UpInit : DownInit;
      if (keys_.adapter.kind && !Gives(std::string(own), parameter)) {
        Refuse("adapter.kind", "and the rule of {} in the plan is {}", parameter.name, parameter.init);
        return;
      }
    } else if (init.scheme &&
               std::ranges::none_of(of_scheme, [&](const std::string& rule) { return Gives(rule, parameter); })) {
      Refuse("init.scheme", "and the rule of {} in the plan is {}", parameter.name, parameter.init);
      return;
    }
  }
}

}  // namespace

auto VerifyRecipeRules(const Plan& plan, const PlanKeys& keys, Findings& findings) -> void {
  RuleVerifier rules(plan, keys, findings);
  rules.Groups();
  rules.Frozen();
  rules.Types();
  if (!plan.seed.is_set() || keys.start.first) {
    rules.InitRules();
  }
}

}  // namespace shardc
