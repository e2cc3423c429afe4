// The lines `recipe` of rules over parameters, against the parameters: the groups of the optimizer with their factors,
// and the rules of initial values. Each of these lines holds a list of tables, in TOML as the compiler writes it.
//
// 1. Read the tables of a line.
// 2. Find the table of each parameter: an exact name beats a pattern.
// 3. Compare the parameter with it. A rule is compared after everything known was put into it, as pass build does. Of a
//    scheme, whose rules are by kinds of parameters, each rule may be that of a parameter.
//
// A plan may leave out any line. What the parameters have from a line that is left out is not judged. But a scheme
// gives the rules of all parameters that no line names otherwise.
#include <charconv>
#include <cstdlib>
#include <map>
#include <set>

#include "compiler/base/glob.h"
#include "compiler/base/recipe_words.h"
#include "compiler/expr/expr.h"
#include "compiler/expr/init_schemes.h"
#include "compiler/plan/init_rule.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

/// Texts without their quotes, and other values as they stand, by key.
using RuleTable = std::map<std::string, std::string, std::less<>>;

/// Returns the text that begins at a quote; nothing if it does not end. Moves `at` past it.
auto TakeText(std::string_view toml, size_t& at) -> std::optional<std::string> {
  constexpr size_t CodeDigits = 4;
  std::string text;
  for (++at; at < toml.size() && toml[at] != '"'; ++at) {
    if (toml[at] != '\\') {
      text += toml[at];
      continue;
    }
    ++at;
    if (toml.substr(at, 1) != "u") {
      text += toml.substr(at, 1);
      continue;
    }
    // Of a control character.
    unsigned code = 0;
    const std::string_view digits = toml.substr(at + 1, CodeDigits);
    std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    text += static_cast<char>(code);
    at += digits.size();
  }
  return at++ < toml.size() ? std::optional(text) : std::nullopt;
}

/// Returns the tables of `[{ match = "*", value = 1 }, ...]`; nothing if the text is something else.
auto ReadTables(std::string_view toml) -> std::optional<std::vector<RuleTable>> {
  size_t at = 0;
  const auto take = [&](std::string_view word) {
    const bool is_there = toml.substr(std::min(at, toml.size())).starts_with(word);
    at += is_there ? word.size() : 0;
    return is_there;
  };
  std::vector<RuleTable> tables;
  if (toml == "[]") {
    return tables;
  }
  if (!take("[")) {
    return std::nullopt;
  }
  do {
    if (!take("{ ")) {
      return std::nullopt;
    }
    RuleTable& table = tables.emplace_back();
    do {
      const size_t end = toml.find(" = ", at);
      if (end == std::string_view::npos) {
        return std::nullopt;
      }
      const std::string key(toml.substr(at, end - at));
      at = end + std::string_view(" = ").size();
      if (toml.substr(at, 1) == "\"") {
        const auto text = TakeText(toml, at);
        if (!text) {
          return std::nullopt;
        }
        table[key] = *text;
      } else {
        const size_t value_end = std::min(toml.find_first_of(", }", at), toml.size());
        table[key] = toml.substr(at, value_end - at);
        at = value_end;
      }
    } while (take(", "));
    if (!take(" }")) {
      return std::nullopt;
    }
  } while (take(", "));
  return take("]") && at == toml.size() ? std::optional(tables) : std::nullopt;
}

class RuleVerifier {
 public:
  RuleVerifier(const Plan& plan, Findings& findings) : plan_(plan), findings_(findings) {}

  auto Groups() -> void;
  auto InitRules() -> void;

 private:
  static constexpr size_t None = static_cast<size_t>(-1);

  auto ValueOf(std::string_view key) const -> const std::string* {
    const auto found = std::ranges::find(plan_.recipe, key, &RecipeEntry::key);
    return found == plan_.recipe.end() ? nullptr : &found->value;
  }
  template <class... Args>
  auto Refuse(std::string_view key, fmt::format_string<Args...> format, Args&&... args) -> void {
    findings_.Add("header-recipe"_rule, "the line `recipe {}` has {}, {}", key, *ValueOf(key),
                  fmt::format(format, std::forward<Args>(args)...));
  }
  /// Returns the tables of the line, each with a pattern; nothing if there is no such line. Adds a finding if the line
  /// cannot be read.
  auto TablesOf(std::string_view key) -> std::optional<std::vector<RuleTable>>;
  /// Returns the number of the table of a name, or None.
  static auto TableOf(const std::vector<RuleTable>& tables, std::string_view name) -> size_t;
  static auto NumberIn(const RuleTable& table, std::string_view key, double otherwise) -> std::optional<double>;
  auto FanIn(const Parameter& parameter) const -> int64_t;
  /// Returns true if the rule with everything known put in is the parameter's.
  auto Gives(const std::string& rule, const Parameter& parameter) -> bool;

  const Plan& plan_;
  Findings& findings_;
  /// Values that rules know: of the model, and of the parameter that was looked at last.
  ExprVariables variables_;
  std::map<std::string, std::optional<Expr>> parsed_;
  /// Rules with everything known put in, by rule and by what is known; nothing if that has no value.
  std::map<std::string, std::optional<std::string>> reduced_;
};

auto RuleVerifier::TablesOf(std::string_view key) -> std::optional<std::vector<RuleTable>> {
  const std::string* const value = ValueOf(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  auto tables = ReadTables(*value);
  if (!tables || std::ranges::any_of(*tables, [](const RuleTable& table) { return !table.contains("match"); })) {
    Refuse(key, "which is no list of tables with patterns");
    return std::nullopt;
  }
  return tables;
}

auto RuleVerifier::TableOf(const std::vector<RuleTable>& tables, std::string_view name) -> size_t {
  size_t found = None;
  for (size_t i = 0; i < tables.size(); ++i) {
    const std::string& pattern = tables[i].at("match");
    if (IsExactName(pattern) && pattern == name) {
      return i;
    }
    found = found == None && GlobMatches(pattern, name) ? i : found;
  }
  return found;
}

auto RuleVerifier::NumberIn(const RuleTable& table, std::string_view key, double otherwise) -> std::optional<double> {
  const auto found = table.find(key);
  if (found == table.end()) {
    return otherwise;
  }
  double number = 0;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

auto RuleVerifier::Groups() -> void {
  constexpr std::string_view Key = "optimizer.group";
  const auto tables = TablesOf(Key);
  if (!tables || plan_.groups.empty()) {
    return;
  }
  if (plan_.groups.size() != std::ssize(*tables) + 1) {
    Refuse(Key, "the plan {} beside the default", plan_.groups.size() - 1);
    return;
  }
  const double decay = plan_.groups.begin()->weight_decay;
  for (size_t i = 0; i < tables->size(); ++i) {
    const RuleTable& table = (*tables)[i];
    const OptimizerGroup& group = plan_.groups[GroupId{static_cast<int32_t>(i) + 1}];
    if (group.name != table.at("match") || NumberIn(table, "weight_decay", decay) != group.weight_decay ||
        NumberIn(table, "lr_scale", 1) != group.lr_scale) {
      Refuse(Key, "the plan has group {} with weight_decay {} and lr_scale {} there", group.name, group.weight_decay,
             group.lr_scale);
      return;
    }
  }
  for (const Parameter& parameter : plan_.parameters) {
    const size_t table = TableOf(*tables, parameter.name);
    if (parameter.group.index != (table == None ? 0 : static_cast<int32_t>(table) + 1)) {
      Refuse(Key, "and {} is in group {} of the plan", parameter.name, plan_.groups[parameter.group].name);
      return;
    }
  }
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
  constexpr std::string_view Rules = "init.rule";
  constexpr std::string_view Scheme = "init.scheme";
  const auto tables = TablesOf(Rules);
  const std::string* const scheme = ValueOf(Scheme);
  for (const char* size : {"layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab", "seq"}) {
    const auto found = plan_.model.find(size);
    variables_[size] = found == plan_.model.end() ? 0 : std::strtod(found->second.c_str(), nullptr);
  }
  if (const std::string* const std = ValueOf("init.std")) {
    variables_["init_std"] = std::strtod(std->c_str(), nullptr);
  }
  std::vector<std::string> of_scheme;
  if (scheme != nullptr) {
    const bool is_quoted = scheme->size() >= 2 && scheme->starts_with('"') && scheme->ends_with('"');
    const auto name = FromText<InitSchemeName>(is_quoted ? scheme->substr(1, scheme->size() - 2) : "");
    if (!name) {
      Refuse(Scheme, "which is no scheme");
      return;
    }
    for (const InitSchemeRule& rule : InitSchemeNamed(*name).rules) {
      of_scheme.emplace_back(rule.value);
    }
  }
  for (const Parameter& parameter : plan_.parameters) {
    if (parameter.shape.empty() || (plan_.seed.is_set() && parameter.init == RuleOfLoaded(parameter.name))) {
      continue;
    }
    const size_t table = tables ? TableOf(*tables, parameter.name) : None;
    if (table != None) {
      const auto value = (*tables)[table].find("value");
      if (value == (*tables)[table].end() || !Gives(value->second, parameter)) {
        Refuse(Rules, "and the rule of {} in the plan is {}", parameter.name, parameter.init);
        return;
      }
    } else if (scheme != nullptr &&
               std::ranges::none_of(of_scheme, [&](const std::string& rule) { return Gives(rule, parameter); })) {
      Refuse(Scheme, "and the rule of {} in the plan is {}", parameter.name, parameter.init);
      return;
    }
  }
}

}  // namespace

auto VerifyRecipeRules(const Plan& plan, Findings& findings) -> void {
  // The rules are those of pass build and stay: looked at once, as this takes milliseconds for a large model.
  if (plan.Established(PassesFor(plan.device).back())) {
    RuleVerifier rules(plan, findings);
    rules.Groups();
    rules.InitRules();
  }
}

}  // namespace shardc
