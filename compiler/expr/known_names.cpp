#include "compiler/expr/known_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/base/mapped.h"
#include "compiler/base/text/joined.h"
#include "compiler/diag/diagnostics.h"
#include "compiler/expr/lexer.h"

namespace shardc {

auto WithArticle(ExprKind kind) -> std::string_view {
  switch (kind) {
    case ExprKind::Predicate: return "a predicate";
    case ExprKind::Schedule: return "a schedule";
    case ExprKind::Rule: return "an init rule";
    case ExprKind::Frequency: return "a frequency";
  }
  CHECK(false, "kind {}", static_cast<int>(kind));
}

auto KnownValues(ExprKind kind) -> std::vector<std::string_view> {
  std::vector<std::string_view> names;
  for (const ExprVariableRow& variable : ExprVariableRows()) {
    if (std::find(variable.kinds.begin(), variable.kinds.end(), kind) != variable.kinds.end()) {
      names.push_back(variable.name);
    }
  }
  for (const ExprConstantRow& constant : ExprConstantRows()) {
    names.push_back(constant.name);
  }
  return names;
}

auto KnownFunctions(ExprKind kind) -> std::vector<std::string_view> {
  std::vector<std::string_view> names;
  for (const ExprFunctionRow& function : ExprFunctionRows()) {
    if (function.IsKnownIn(kind)) {
      names.push_back(function.name);
    }
  }
  return names;
}

auto ListedKinds(const std::vector<ExprKind>& kinds) -> std::string {
  const auto texts = Mapped<std::string>(kinds, [](const ExprKind kind) { return WithArticle(kind); });
  return JoinedByAnd(texts);
}

namespace {

/// A name that other programs use for one of ours, or for what is written in another way.
struct NameElsewhere {
  std::string_view name;
  /// One of ours, or empty.
  std::string_view ours;
  std::string_view remedy = {};
};

constexpr NameElsewhere NamesElsewhere[] = {
    {"total_steps", "steps"},
    {"num_steps", "steps"},
    {"max_steps", "steps"},
    {"train_steps", "steps"},
    {"global_step", "step"},
    {"iteration", "step"},
    {"layer_id", "layer"},
    {"layer_idx", "layer"},
    {"n_layers", "layers"},
    {"num_layers", "layers"},
    {"num_hidden_layers", "layers"},
    {"d_model", "hidden"},
    {"hidden_size", "hidden"},
    {"n_heads", "heads"},
    {"vocab_size", "vocab"},
    {"seq_len", "seq"},
    {"ln", "log"},
    {"clip", "clamp"},
    {"atanh", "", "write 0.5 * log((1 + x) / (1 - x))"},
    {"log2", "", "write log(x) / log(2)"},
    {"log10", "", "write log(x) / log(10)"},
    {"sum", "", "write a + b"},
    {"mean", "", "write (a + b) / 2"},
    {"int", "", "write floor(x)"},
    {"round", "", "write floor(x + 0.5)"},
    {"float", "", "every number is real: leave it out"},
    {"None", "", "there is no None: leave the key out, or write a number"},
    {"True", "true"},
    {"False", "false"},
};

}  // namespace

auto DescribeUnknown(std::string_view name, ExprKind kind, const std::vector<std::string_view>& known) -> UnknownName {
  UnknownName unknown{.message = fmt::format("{} is not known in {}", Quoted(name), WithArticle(kind)), .closest = {}};
  std::string elsewhere;
  if (const auto row = FindRow(ExprVariableRows(), name)) {
    elsewhere = ListedKinds(ExprVariableRows()[static_cast<size_t>(*row)].kinds);
  } else if (const auto function = FindRow(ExprFunctionRows(), name)) {
    elsewhere = ListedKinds(ExprFunctionRows()[static_cast<size_t>(*function)].kinds);
  }
  const auto* const other = std::find_if(std::begin(NamesElsewhere), std::end(NamesElsewhere),
                                         [&](const NameElsewhere& row) { return row.name == name; });
  if (elsewhere.empty() && other != std::end(NamesElsewhere)) {
    if (std::find(known.begin(), known.end(), other->ours) != known.end()) {
      unknown.closest = other->ours;
    } else if (!other->remedy.empty()) {
      unknown.message += fmt::format("; {}", other->remedy);
      return unknown;
    }
  }
  if (elsewhere.empty()) {
    unknown.closest = unknown.closest.empty() ? ClosestWord(name, known) : unknown.closest;
  } else {
    unknown.message += fmt::format(", but in {}", elsewhere);
  }
  if (unknown.closest.empty()) {
    unknown.message += fmt::format("; known here: {}", fmt::join(known, ", "));
  }
  return unknown;
}

auto WrongCount(const ExprFunctionRow& function, int num_arguments) -> std::string {
  const int taken = function.num_parameters();
  if (taken == 0 && num_arguments == 0) {
    return fmt::format("`{0}` is a function without arguments: `{0}()`", function.name);
  }
  const std::string takes = taken == 0
                                ? "no arguments"
                                : fmt::format("{} argument{} ({})", taken, taken == 1 ? "" : "s", function.parameters);
  const std::string given = num_arguments == 0   ? "none is"
                            : num_arguments == 1 ? "1 is"
                                                 : fmt::format("{} are", num_arguments);
  const bool is_name_of_schedule = num_arguments == 0 && function.kinds == std::vector{ExprKind::Schedule};
  return fmt::format("`{}` takes {}, here {} given{}", function.name, takes, given,
                     is_name_of_schedule ? "; write 3e-4 * warmup(100) * cosine(100, 0.1)" : "");
}

}  // namespace shardc
