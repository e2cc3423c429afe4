#include "compiler/passes/pipeline.h"

#include <algorithm>

#include "compiler/base/plan_limits.h"
#include "compiler/ops/plan_limits.h"
#include "compiler/passes/plan_header.h"
#include "compiler/start/adapter_start.h"
#include "compiler/verify/verify.h"

namespace shardc {

auto PassRows() -> const std::vector<PassRow>& {
  static const std::vector<PassRow> rows{
#define PASS(Name, stem, doc) {PassKind::Name, #stem, doc},
#include "schemas/passes.def"
  };
  return rows;
}

using PassFunction = auto(*)(Plan, PassContext&) -> ErrorOr<Plan>;

static constexpr std::array<PassFunction, NumPasses> PassFunctions{
#define PASS(Name, stem, doc) Name,
#include "schemas/passes.def"
};

/// The first findings of the verifier, as one internal fault.
static auto Faults(PassKind pass, const std::vector<std::string>& findings) -> Error {
  constexpr size_t MostShown = 10;
  std::string text = fmt::format("the plan after pass `{}` does not verify ({} finding{})", ToText(pass),
                                 findings.size(), findings.size() == 1 ? "" : "s");
  for (size_t i = 0; i < std::min(MostShown, findings.size()); ++i) {
    text += "\n  " + findings[i];
  }
  return Error{ExitCode::InternalFault, text + "\nthis is a bug in the compiler"};
}

/// The keys that make a parameter, or a value of a step, so large.
static auto NoteSizes(const Recipe& recipe, const BrokenLimit& broken, Diagnostics::Builder& builder) -> void {
  const ModelSection& model = recipe.model;
  const auto note = [&](std::initializer_list<std::pair<const char*, const Located<int64_t>*>> sizes) {
    for (const auto& [name, size] : sizes) {
      if (size->at.valid()) {
        builder.Note(size->at, fmt::format("`{}` is {}", name, **size));
      }
    }
  };
  if (broken.most == MostOps || broken.most == MostScalars) {
    return;
  }
  note({{"hidden", &model.hidden},
        {"heads", &model.heads},
        {"kv_heads", &model.kv_heads},
        {"head_dim", &model.head_dim},
        {"ffn", &model.ffn},
        {"vocab", &model.vocab}});
  if (!broken.is_of_parameter) {
    note({{"seq", &model.seq}, {"micro", &recipe.batch.micro}, {"global", &recipe.batch.global}});
  }
}

auto Compile(const Recipe& recipe, const PipelineOptions& options, Diagnostics& diags) -> ErrorOr<Plan> {
  SetCheckContext("reading the seed");
  const std::string run_dir = options.run_dir.empty() ? RunDirOf(recipe) : options.run_dir;
  auto seed = ReadSeed(recipe, run_dir, diags);
  if (seed && !diags.has_errors()) {
    AddAdapter(recipe, run_dir, *seed, diags);
  }
  if (diags.has_errors()) {
    return Rejected();
  }
  PassContext context{&recipe, &diags, seed ? &*seed : nullptr};
  Plan plan;
  plan.disabled = options.disabled;
  const std::vector<PassKind> passes = PassesFor(*recipe.run.device);
  for (const PassRow& row : PassRows()) {
    SetCheckContext(fmt::format("running pass {}", row.name));
    const bool disabled =
        std::find(options.disabled.begin(), options.disabled.end(), row.kind) != options.disabled.end();
    if (!disabled && std::ranges::find(passes, row.kind) != passes.end()) {
      ASSIGN_OR_RETURN(plan, PassFunctions[static_cast<size_t>(row.kind)](std::move(plan), context));
      plan.passes.push_back(row.kind);
      // Without the verifier a plan of too many ops is stopped where it is made, and all others at the end.
      const bool is_judged =
          options.verify || row.kind == PassKind::Build || row.kind == options.stop_after || row.kind == passes.back();
      if (const auto broken = is_judged ? FindBrokenLimit(plan) : std::nullopt) {
        // What makes ops is known; a size has its reasons in several keys.
        const bool is_of_ops = broken->most == MostOps;
        auto builder = diags.Build(
            is_of_ops ? recipe.model.layers.at : recipe.model.at, DiagnosticKind::PlanTooLarge,
            is_of_ops ? fmt::format("{} with `layers` {}, `loss.chunks` {} and `recompute.policy` {}", broken->what,
                                    *recipe.model.layers, *recipe.loss.chunks, recipe.recompute.policy->text())
                      : broken->what,
            broken->most);
        NoteSizes(recipe, *broken, builder);
        builder.Emit();
        return Rejected();
      }
      // Without a disabled pass the verifier accepts every intermediate plan; with one, it is the developer's to judge.
      if (options.verify) {
        if (const auto findings = VerifyPlan(plan); !findings.empty() && options.disabled.empty()) {
          return Faults(row.kind, findings);
        }
      }
    }
    if (options.after_pass) {
      options.after_pass(row.kind, plan);
    }
    if (options.stop_after == row.kind) {
      break;
    }
  }
  SetCheckContext("");
  return plan;
}

}  // namespace shardc
