// shardc help NAME: the row that has a name, be it a diagnostic, a recipe key, a model family, an optimizer or a vector
// that it keeps, an op, a pass, a rule that the verifier holds plans to, a word of a plan's mesh, a function or
// variable of the expression language, or a scheme of init rules. One name may be several of these; all are printed. A
// word of another trainer gets what is here instead.

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <memory>

#include "compiler/base/exit_code_text.h"
#include "compiler/base/family_keys.h"
#include "compiler/base/mapped.h"
#include "compiler/base/text/parse_whole.h"
#include "compiler/driver/command.h"
#include "compiler/driver/error_reference.h"
#include "compiler/driver/output.h"
#include "compiler/expr/init_schemes.h"
#include "compiler/expr/names.h"
#include "compiler/passes/pipeline.h"
#include "compiler/recipe/key_rows.h"
#include "compiler/recipe/other_tools.h"
#include "compiler/recipe/reference.h"
#include "compiler/verify/plan_rule_rows.h"

namespace shardc {

namespace {

struct Topic {
  std::string name;
  std::string text;
};

struct OpRow {
  std::string_view mnemonic;
  std::string_view doc;
};

constexpr auto OpRows = std::to_array<OpRow>({
#define OP(Type, mnemonic, differentiable, fields, doc) {#mnemonic, doc},
#include "schemas/ops.def"
});

}  // namespace

/// The op, and under it its constraints.
static auto DescribeOp(const OpRow& op) -> std::string {
  std::string text = fmt::format("{} (op): {}\n", op.mnemonic, op.doc);
  for (const PlanRuleRow& row : PlanRuleRows()) {
    if (row.mnemonic == op.mnemonic) {
      text += fmt::format("  {}: {}\n", row.label, row.help);
    }
  }
  return text;
}

static auto DescribePlanRule(const PlanRuleRow& row) -> std::string {
  if (row.mnemonic.empty()) {
    return fmt::format("{} (rule of the verifier)\n  {}\n", row.label, row.help);
  }
  const auto* op = std::ranges::find(OpRows, row.mnemonic, &OpRow::mnemonic);
  CHECK(op != OpRows.end(), "a constraint of {}", row.mnemonic);
  return fmt::format("{} (constraint of the op {})\n  {}\n\n{}", row.label, row.mnemonic, row.help, DescribeOp(*op));
}

/// With the keys of [model] that each has.
static auto AddFamilies(std::vector<Topic>& topics) -> void {
#define FAMILY(Name, name, doc)                                                                              \
  topics.push_back({#name, fmt::format("{} (model family): {}\n  keys of [model]: family, {}\n", #name, doc, \
                                       fmt::join(KeysOf(Family::Name), ", "))});
#include "schemas/families.def"
}

/// Each optimizer, and each vector that one keeps.
static auto AddOptimizers(std::vector<Topic>& topics) -> void {
#define OPTIMIZER(Name, name, doc) topics.push_back({#name, fmt::format("{} (optimizer): {}\n", #name, doc)});
#define SETTING(Name, key) topics.back().text += fmt::format("  has the key {}\n", #key);
#include "schemas/optimizers.def"
#define ALWAYS ""
#define UNLESS_ZERO(key) "; none where " #key " is 0"
#define STATE(Name, Role, role, KEPT, doc)                                                                         \
  topics.push_back({#role, fmt::format("{} (vector that the optimizer {} keeps of each parameter): {}{}\n", #role, \
                                       ToText(Optimizer::Name), doc, KEPT)});
#include "schemas/optimizers.def"
}

/// Words of the field `mesh` of plans that are no keys of [mesh].
static auto AddMeshWords(std::vector<Topic>& topics) -> void {
  topics.push_back(
      {"hosts",
       "hosts (of a plan's mesh): number of hosts. Each has the same number of ranks, numbered host by host; "
       "1 where a plan does not say\n"});
#define PART(Name, name, Whole)                                                                                       \
  topics.push_back({#name, fmt::format("{} (of a plan's mesh): the ranks in a group of neighbours along {}\n", #name, \
                                       ToText(Axis::Whole))});
#include "schemas/axes.def"
}

static auto AllTopics() -> std::vector<Topic> {
  std::vector<Topic> topics;
  for (const Subcommand& row : Subcommands()) {
    topics.push_back(
        {std::string(row.name), fmt::format("{0} (command): {1}\n{2}\n  shardc {0} --help has its options\n", row.name,
                                            row.doc, row.examples)});
  }
  for (const DiagnosticRow& row : DiagnosticRows()) {
    topics.push_back({std::string(row.name), DescribeDiagnostic(row.name)});
  }
  for (const RecipeSectionRow& row : RecipeSectionRows()) {
    const std::string name = row.list.empty() ? row.section : row.section + "." + row.list;
    std::string keys;
    for (const RecipeKeyRow& key : RecipeKeyRows()) {
      if (key.section == row.section && key.list == row.list) {
        keys += fmt::format("  {}: {}\n", key.name, key.doc);
      }
    }
    topics.push_back({name, fmt::format("{}: {}\n{}", name, row.doc, keys)});
  }
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    topics.push_back({row.path(), DescribeKey(row.path())});
    topics.push_back({row.name, DescribeKey(row.path())});
  }
  AddFamilies(topics);
  AddOptimizers(topics);
  AddMeshWords(topics);
  for (const OpRow& row : OpRows) {
    topics.push_back({std::string(row.mnemonic), DescribeOp(row)});
  }
  for (const PlanRuleRow& row : PlanRuleRows()) {
    topics.push_back({std::string(row.label), DescribePlanRule(row)});
  }
  for (const PassRow& row : PassRows()) {
    topics.push_back({std::string(row.name), fmt::format("{} (pass): establishes {}\n", row.name, row.doc)});
  }
  for (const ExprFunctionRow& row : ExprFunctionRows()) {
    const std::string domain = row.domain.empty() ? "" : fmt::format("; takes {}", row.domain);
    topics.push_back({std::string(row.name), fmt::format("{}({}) (function of expressions): {}{}\n", row.name,
                                                         row.parameters, row.doc, domain)});
    if (row.is_library()) {
      topics.back().text += fmt::format("  = {}\n", row.body);
    }
  }
  for (const ExprVariableRow& row : ExprVariableRows()) {
    topics.push_back({std::string(row.name), fmt::format("{} (variable of expressions): {}\n", row.name, row.doc)});
  }
  for (const auto& [code, meaning] : ExitCodeTexts()) {
    topics.push_back({std::to_string(code), fmt::format("{} (exit code): {}\n", code, meaning)});
  }
  for (const InitScheme& scheme : InitSchemes()) {
    std::string rules;
    for (const InitSchemeRule& rule : scheme.rules) {
      const auto kinds = Mapped<std::string_view>(rule.kinds, [](const ParameterKind kind) { return ToText(kind); });
      rules += fmt::format("  {}: {}\n", fmt::join(kinds, ", "), rule.value);
    }
    topics.push_back(
        {std::string(scheme.name), fmt::format("{} (scheme of init rules): {}\n{}", scheme.name, scheme.doc, rules)});
  }
  return topics;
}

/// Returns what the exit code of a process that a signal ended says; empty for any other name.
static auto DescribeSignalCode(const std::string& name) -> std::string {
  constexpr int Base = 128;
  const int signal = ParseWhole<int>(name).value_or(0) - Base;
  const char* const word = signal > 0 && signal < NSIG ? sigabbrev_np(signal) : nullptr;
  if (word == nullptr) {
    return "";
  }
  const std::string_view remedy =
      signal == SIGKILL
          ? "the kernel sends it if memory is short, Slurm and Kubernetes if a limit of theirs is: "
            "`shardc plan --explain RECIPE` shows what a rank takes, docs/memory_is_short.md what lowers it"
      : signal == SIGTERM || signal == SIGINT
          ? "a run that gets it saves and ends with 75; it was ended before it had begun, or by a second signal"
          : "a run's log.txt has its last lines";
  return fmt::format("{} (exit code): killed by signal {} (SIG{}): {}. The same command continues a run.\n", name,
                     signal, word, remedy);
}

/// What is here for a key, a section or a feature of another trainer: `fp8`, `mesh.pp`, `float8.emulate`.
static auto HintOfName(std::string_view name) -> std::string_view {
  const size_t dot = name.rfind('.');
  if (dot != std::string_view::npos) {
    return HintOfKey(name.substr(0, dot), name.substr(dot + 1));
  }
  const std::string_view of_key = HintOfKey("", name);
  return of_key.empty() ? HintOfSection(name) : of_key;
}

static auto RunHelp(const std::string& name) -> ExitCode {
  if (name.empty()) {
    return RunCommandLine(2, std::array{"shardc", "--help"}.data());
  }
  std::string text;
  std::vector<std::string_view> names;
  const std::vector<Topic> topics = AllTopics();
  for (const Topic& topic : topics) {
    names.push_back(topic.name);
    if (topic.name == name) {
      text += (text.empty() ? "" : "\n") + topic.text;
    }
  }
  text += DescribeSignalCode(name);
  if (!text.empty()) {
    return ExitCodeOf(WriteResult(text));
  }
  if (const std::string_view hint = HintOfName(name); !hint.empty()) {
    return ExitCodeOf(WriteResult(fmt::format("{} (word of other trainers): {}\n", name, hint)));
  }
  const std::string closest = ClosestWord(name, names);
  return ReportError(Fail(ExitCode::Usage, "nothing is called `{}`\n{}", name,
                          closest.empty()
                              ? "`shardc --help` lists the commands; docs/recipe.md and docs/errors.md list the names"
                              : fmt::format("did you mean `{}`?", closest)));
}

auto DeclareHelp(CommandOptions& options) -> Action {
  const auto name = std::make_shared<std::string>();
  options.Positional("NAME", *name,
                     "a command, a diagnostic, the label of a finding, a recipe key (model.layers or layers), a "
                     "family, an optimizer, an op, a "
                     "pass, a function or a scheme; default: the commands",
                     false);
  return [name] { return RunHelp(*name); };
}

}  // namespace shardc
