// 1. see which parameters are loaded from the seed, if there is one, and from which parts of its tensors
// 2. match the recipe's rules with the parameters' names; then the scheme's with those that are left
// 3. report the parameters without a rule that are not loaded, and rules without a parameter
// 4. put everything known into each rule for each of its parameters, from the logical shape: fans are those of the
//    unsharded matrix
// 5. see that what is left has values: that floats hold them, that copies have a source, and, at some elements,
//    that every operation has a value

#include "compiler/passes/init_values.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "compiler/base/mapped.h"
#include "compiler/base/text/joined.h"
#include "compiler/check/expression_place.h"
#include "compiler/expr/element.h"
#include "compiler/expr/expr.h"
#include "compiler/expr/init_schemes.h"
#include "compiler/keys/adapters.h"
#include "compiler/plan/init_rule.h"
#include "compiler/start/match_names.h"

namespace shardc {

namespace {

/// Of the recipe or of a scheme.
struct Rule {
  Expr expr;
  /// What faults and origins point at: the rule's value, or the key that names the scheme.
  SourceRange at;
  Origin origin;
  bool is_of_scheme = false;
};

auto ParsedRule(std::string_view text) -> Expr {
  auto parsed = ParseExpr(text, ExprKind::Rule);
  CHECK(parsed.ok(), "the rule `{}` came this far", text);
  return std::move(parsed.value);
}

/// Parameters without a rule, in one diagnostic: the first few names and how many there are.
auto ReportMissing(const std::vector<size_t>& chosen, const std::vector<bool>& loaded, const ParameterSpecs& specs,
                   const InitSection& init, Diagnostics& diags) -> void {
  constexpr size_t MostNamed = 3;
  std::vector<std::string_view> missing;
  for (size_t s = 0; s < specs.size(); ++s) {
    if (chosen[s] == NoRule && !loaded[s]) {
      missing.emplace_back(specs[s].name);
    }
  }
  if (!missing.empty()) {
    diags
        .Build(init.at.valid() ? init.at : SourceRange{0, 0, 0, 1}, DiagnosticKind::InitRuleMissing,
               Listed(missing, MostNamed, ", ", ", "))
        .Help(init.scheme.is_set ? "" : "[init] scheme = \"torchtitan-llama\" gives every parameter a rule")
        .Emit();
  }
}

/// Gives each parameter that has a rule of its own this rule, unless the recipe has one; it goes after those in
/// `rules`.
auto ApplyOwnRules(const Located<OneOf<AdapterKind>>& key, const ParameterSpecs& specs, std::vector<size_t>& chosen,
                   std::vector<Rule>& rules) -> void {
  std::map<std::string_view, size_t> rule_of;
  for (size_t s = 0; s < specs.size(); ++s) {
    if (chosen[s] != NoRule || specs[s].init.empty()) {
      continue;
    }
    const auto [found, fresh] = rule_of.try_emplace(specs[s].init, rules.size());
    if (fresh) {
      rules.push_back({ParsedRule(specs[s].init), key.at, OriginOf(key, "adapter.kind"), true});
    }
    chosen[s] = found->second;
  }
}

/// Gives each parameter without a rule the scheme's; its rules go after those in `rules`.
auto ApplyScheme(const Located<OneOf<InitSchemeName>>& key, const ParameterSpecs& specs, std::vector<size_t>& chosen,
                 std::vector<Rule>& rules, bool is_of_preset, Diagnostics& diags) -> void {
  bool is_used = false;
  for (const InitSchemeRule& row : InitSchemeNamed(*key).rules) {
    for (size_t s = 0; s < specs.size(); ++s) {
      const bool is_of_row = std::find(row.kinds.begin(), row.kinds.end(), specs[s].kind) != row.kinds.end();
      if (chosen[s] == NoRule && is_of_row) {
        chosen[s] = rules.size();
        is_used = true;
      }
    }
    rules.push_back({ParsedRule(row.value), key.at, OriginOf(key, "init.scheme"), true});
  }
  if (!is_used && !is_of_preset) {
    diags.Report(key.at, DiagnosticKind::KeyHasNoEffect, "scheme", "an [[init.rule]] matches every parameter");
  }
}

/// Reports what is wrong with a rule for one parameter, once a rule.
class RuleFaults {
 public:
  RuleFaults(const std::vector<Rule>& rules, Diagnostics& diags) : rules_(rules), diags_(diags) {}

  auto Has(size_t rule) const -> bool { return failed_.contains(rule); }

  auto Report(size_t rule, const std::string& parameter, const std::string& message) -> void {
    ReportAt(rules_[rule].at, rule, parameter, message);
  }

  auto Report(size_t r, const std::string& parameter, const ExprError& error) -> void {
    const Rule& rule = rules_[r];
    ReportAt(rule.is_of_scheme ? rule.at : PlaceInValue(diags_.sources(), rule.at, error.column, error.length), r,
             parameter, error.message);
  }

 private:
  auto ReportAt(const SourceRange& place, size_t rule, const std::string& parameter, const std::string& message)
      -> void {
    failed_.insert(rule);
    diags_.Report(place, DiagnosticKind::InitValueDomain, parameter, message);
  }

  const std::vector<Rule>& rules_;
  Diagnostics& diags_;
  std::set<size_t> failed_;
};

/// Why floats do not hold what a distribution draws; or empty.
auto FloatFault(const Distribution& distribution) -> std::string {
  for (const double argument : distribution.arguments) {
    if (std::abs(argument) > std::numeric_limits<float>::max()) {
      return fmt::format("{} is beyond the floats, 3.4e38", argument);
    }
  }
  return {};
}

/// Warns of rules by which adapters learn nothing, or change the seed's model before the first step, once a rule.
/// `rules_of`: for each parameter the place of its rule; an invalid one if it is loaded or of no rule of the recipe.
auto WarnOfAdapters(const ParameterSpecs& specs, const std::vector<Expr>& reduced,
                    const std::vector<SourceRange>& rules_of, const std::string& seed, Diagnostics& diags) -> void {
  std::set<std::tuple<DiagnosticKind, int16_t, int32_t, int32_t>> told;
  const auto warn = [&](DiagnosticKind kind, size_t s, const auto&... more) {
    const SourceRange& at = rules_of[s];
    if (told.emplace(kind, at.source, at.line, at.column).second) {
      diags.Report(at, kind, specs[s].name, more...);
    }
  };
  const auto is_zero = [&](size_t s) { return reduced[s].text() == "0"; };
  // A and B of an adapter follow each other.
  for (size_t s = 0; s + 1 < specs.size(); ++s) {
    const size_t up = s + 1;
    if (!specs[s].name.ends_with(DownSuffix) || !specs[up].name.ends_with(UpSuffix)) {
      continue;
    }
    if (is_zero(s) && is_zero(up) && (rules_of[s].valid() || rules_of[up].valid())) {
      warn(DiagnosticKind::AdapterStill, rules_of[s].valid() ? s : up);
    } else if (!seed.empty() && rules_of[up].valid() && !is_zero(up)) {
      warn(DiagnosticKind::AdapterNotBase, up, seed);
    }
  }
}

/// An exact name is meant for that very parameter, and a rule of it that nothing reads is most likely a slip.
auto WarnOfRulesOfLoaded(const InitSection& init, const ParameterSpecs& specs, const std::vector<bool>& loaded,
                         Diagnostics& diags) -> void {
  for (const InitRule& rule : init.rule) {
    for (size_t s = 0; s < specs.size(); ++s) {
      if (loaded[s] && specs[s].name == *rule.match) {
        diags.Report(rule.value.at, DiagnosticKind::KeyHasNoEffect, "value",
                     fmt::format("{} is loaded from the seed; `missing` in start.first would leave it to the rule",
                                 specs[s].name));
      }
    }
  }
}

/// Why an element of a parameter whose rule is a formula has no value, of its corners and its middle; or empty. What is
/// loaded is not known yet.
auto ElementFault(const ElementSource& source, ElementProgram program) -> std::string {
  int64_t numel = 1;
  for (const int64_t dim : source.shape) {
    numel *= dim;
  }
  const int64_t row_size = source.shape.back();
  const bool depends_on_loaded = !program.loads.empty();
  ElementEvaluator evaluator(std::move(program));
  for (const int64_t element : {int64_t{0}, row_size - 1, numel / 2, numel - row_size, numel - 1}) {
    if (depends_on_loaded ? evaluator.HasKnownFault(element) : evaluator.At(element).has_fault) {
      return NoValueText(source, element);
    }
  }
  return {};
}

/// The shapes of the seed's tensors; empty where there is no seed.
auto ShapesOf(const SeedCheckpoint* seed, std::map<std::string, std::vector<int64_t>, std::less<>>& shapes)
    -> FindLoadedShape {
  if (seed == nullptr) {
    return {};
  }
  for (const auto& [name, tensor] : seed->manifest.tensors) {
    shapes[name].assign(tensor.shape.begin(), tensor.shape.end());
  }
  return [&shapes](std::string_view name) -> const std::vector<int64_t>* {
    const auto found = shapes.find(name);
    return found == shapes.end() ? nullptr : &found->second;
  };
}

/// The rules that are left to the elements, of all parameters: copies name others. Adds what they read of the seed.
auto CheckElements(const ParameterSpecs& specs, const std::vector<Expr>& reduced, const std::vector<size_t>& chosen,
                   const std::vector<bool>& loaded, const SeedCheckpoint* seed, RuleFaults& faults, TensorUses& uses)
    -> void {
  std::map<std::string, std::vector<int64_t>, std::less<>> shapes;
  const FindLoadedShape find_loaded = ShapesOf(seed, shapes);
  std::unordered_map<std::string_view, ElementSource> sources;
  for (size_t s = 0; s < specs.size(); ++s) {
    sources[specs[s].name] = {.rule = reduced[s],
                              .shape = std::vector<int64_t>(specs[s].shape.begin(), specs[s].shape.end()),
                              .key = {static_cast<uint64_t>(s), 0},
                              .is_bfloat16 = false};
  }
  const FindElementSource find = [&](std::string_view name) -> const ElementSource* {
    const auto found = sources.find(name);
    return found == sources.end() ? nullptr : &found->second;
  };
  for (size_t s = 0; s < specs.size(); ++s) {
    const ElementSource& source = sources.at(specs[s].name);
    if (loaded[s] || chosen[s] == NoRule || faults.Has(chosen[s]) || DistributionOf(source.rule)) {
      continue;
    }
    auto program = MakeElementProgram(source, find, find_loaded);
    for (const ElementLoad& load : program.value.loads) {
      uses.emplace(load.tensor, fmt::format("read by the rule of {}", specs[s].name));
    }
    if (!program.ok()) {
      faults.Report(chosen[s], specs[s].name, program.errors.front().message);
    } else if (const std::string length = LengthFault(program.value); !length.empty()) {
      faults.Report(chosen[s], specs[s].name, length);
    } else if (const std::string fault = ElementFault(source, std::move(program.value)); !fault.empty()) {
      faults.Report(chosen[s], specs[s].name, fault);
    }
  }
}

}  // namespace

auto ChooseInitValues(const ParameterSpecs& specs, const ModelSizes& sizes, PassContext& context) -> InitValues {
  const InitSection& init = context.recipe->init;
  const Located<FirstStart>& first = context.recipe->start.first;
  const SeedCheckpoint* const seed = context.seed;
  Diagnostics& diags = *context.diags;
  const bool is_of_peft = seed != nullptr && !seed->adapter_digest.empty();
  const AdapterSizes of_peft = is_of_peft ? sizes.adapter : AdapterSizes();
  const LoadedParts parts =
      seed == nullptr ? LoadedParts() : PartsOf(specs, sizes, MadeRowsOf(seed->manifest, of_peft));
  const std::vector<bool> loaded = seed == nullptr ? std::vector<bool>(specs.size(), false)
                                                   : ChooseLoaded(specs, parts, *seed, *context.recipe, diags);
  const auto names = Mapped<std::string_view>(specs, &ParameterSpec::name);
  std::vector<size_t> chosen = MatchNames(
      PatternsOf(init.rule), names,
      {.duplicate = DiagnosticKind::InitRuleDuplicate, .unused = DiagnosticKind::InitRuleUnused, .noun = "parameter"},
      diags);
  auto rules = Mapped<Rule>(init.rule, [](const InitRule& rule) {
    return Rule{ParsedRule(rule.value->text), rule.value.at, OriginOf(rule.value, "init.rule"), false};
  });
  ApplyOwnRules(context.recipe->adapter.kind, specs, chosen, rules);
  if (init.scheme.is_set) {
    ApplyScheme(init.scheme, specs, chosen, rules, context.recipe->StandInAt(init.scheme.at) != nullptr, diags);
  }
  ReportMissing(chosen, loaded, specs, init, diags);
  WarnOfRulesOfLoaded(init, specs, loaded, diags);
  // Of a seed with faults nothing is known.
  if (seed != nullptr && diags.has_errors()) {
    return {};
  }

  ExprVariables variables = ModelVariables(sizes);
  variables["init_std"] = *init.std;
  std::vector<InitValue> values(specs.size());
  TensorUses uses;
  // Where a rule has a fault, whatever else may be copied.
  std::vector<Expr> reduced(specs.size(), ParsedRule("0"));
  bool has_formulas = false;
  RuleFaults faults(rules, diags);
  for (size_t s = 0; s < specs.size(); ++s) {
    if (loaded[s]) {
      reduced[s] = parts.rules[s];
      values[s] = {reduced[s].text(), OriginOf(first, "start.first")};
      uses.emplace(LoadedBlockOf(reduced[s])->tensor, "loaded");
      continue;
    }
    const size_t rule = chosen[s];
    if (rule == NoRule || faults.Has(rule)) {
      continue;
    }
    SetParameterVariables(specs[s].shape, specs[s].fan_in, specs[s].layer, variables);
    auto result = ReduceRule(rules[rule].expr, variables);
    if (!result.ok()) {
      faults.Report(rule, specs[s].name, result.errors.front());
      continue;
    }
    reduced[s] = std::move(result.value);
    values[s] = {reduced[s].text(), rules[rule].origin};
    const auto distribution = DistributionOf(reduced[s]);
    has_formulas = has_formulas || !distribution;
    if (const std::string fault = distribution ? FloatFault(*distribution) : ""; !fault.empty()) {
      faults.Report(rule, specs[s].name, fault);
    }
  }
  if (has_formulas) {
    CheckElements(specs, reduced, chosen, loaded, seed, faults, uses);
  }
  if (diags.has_errors()) {
    return {};
  }
  std::vector<SourceRange> rules_of(specs.size());
  for (size_t s = 0; s < specs.size(); ++s) {
    rules_of[s] =
        loaded[s] || chosen[s] == NoRule || rules[chosen[s]].is_of_scheme ? SourceRange() : rules[chosen[s]].at;
  }
  WarnOfAdapters(specs, reduced, rules_of, seed == nullptr ? "" : seed->path, diags);
  if (seed != nullptr) {
    CheckLeftTensors(*seed, *context.recipe, uses, diags);
  }
  return {std::move(values), std::move(uses)};
}

}  // namespace shardc
