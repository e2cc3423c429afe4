// The lines `recipe` against the rest of the plan. Nothing is computed from them, but reports, searches and records
// read them, so each has a value of its key's type, and what the plan has too, the plan has alike.
//
// 1. Read the lines as typed keys.
// 2. Hold the plan's header against the header that these keys give.
// 3. Hold keys against what ops, triggers and halts have of them.
//
// A plan may leave out all keys, and any key that a recipe need not set and that has no default. Keys of which
// a plan has no such fact may have any value of their type: units, blocks that are recomputed, the residual stream,
// folders of token files, how a start finds its checkpoint.
#include <set>

#include "compiler/base/glob.h"
#include "compiler/base/machine_rows.h"
#include "compiler/base/text/parse_whole.h"
#include "compiler/keys/toml_value.h"
#include "compiler/ops/loss.h"
#include "compiler/ops/unit_collectives.h"
#include "compiler/plan/header.h"
#include "compiler/verify/internal.h"
#include "compiler/verify/recipe_rules.h"

namespace shardc {

namespace {

/// Compares values of a key. Formulas that are numbers are compared as numbers.
template <class T>
auto IsSame(const T& a, const T& b) -> bool {
  return a == b;
}
auto IsSame(const Formula& a, const Formula& b) -> bool {
  const auto number = ParseWhole<double>(a.text);
  return a == b || (number && number == ParseWhole<double>(b.text));
}

class RecipeVerifier {
 public:
  RecipeVerifier(const Plan& plan, Findings& findings) : plan_(plan), findings_(findings) {}

  auto Run() -> void {
    KeysRead read = ReadKeys(plan_.recipe);
    for (const KeyFault& fault : read.faults) {
      findings_.Add("header-recipe"_rule, "{}", fault.message);
    }
    if (!read.faults.empty()) {
      return;
    }
    keys_ = std::move(read.keys);
    Owners();
    if (!plan_.recipe.empty()) {
      Missing();
    }
    Header();
    Files();
    Expect(Triggers());
    Expect(Halts());
    Expect(Scalars());
    Expect(Loss());
    Expect(Reduction());
    for (const Op& op : plan_.section(SectionKind::Step).ops) {
      if (FactsOf(op).update != UpdatePart::None) {
        Expect(Update(op));
      }
    }
    Recomputation();
    Start();
    VerifyRecipeRules(plan_, keys_, findings_);
  }

 private:
  /// Returns the optimizer that a key is of, if it is another than the plan's.
  auto OtherOwnerOf(const KeyInfo& key) const -> std::optional<Optimizer>;
  auto Owners() -> void;
  auto Missing() -> void;
  auto Header() -> void;
  auto Files() -> void;
  /// Returns which line has another value than the plan: one without which the header has the field as the plan has it,
  /// which is null if the plan lacks it.
  auto CauseOf(const HeaderFields::key_type& field, const std::string* in_plan) -> std::string;
  auto Recomputation() -> void;
  auto Start() -> void;

  // The values that the plan has for keys beside its header.
  auto Triggers() const -> PlanKeys;
  auto Halts() const -> PlanKeys;
  auto Scalars() const -> PlanKeys;
  auto Loss() const -> PlanKeys;
  auto Reduction() const -> PlanKeys;
  static auto Update(const Op& op) -> PlanKeys;

  template <class... Args>
  auto Refuse(std::string_view key, std::string_view value, fmt::format_string<Args...> in_plan, Args&&... args)
      -> void {
    findings_.Add("header-recipe"_rule, "the line `recipe {}` has {}, the plan {}", key, value,
                  fmt::format(in_plan, std::forward<Args>(args)...));
  }
  /// Adds a finding for each key that the lines and the plan both have, with other values.
  auto Expect(const PlanKeys& in_plan) -> void {
    WalkSections(
        [&](std::string_view, std::string_view, const auto& section, const auto& section_in_plan) {
          WalkKeys(
              [&](const KeyInfo& key, const auto& line, const auto& leaf_in_plan) {
                if (line && leaf_in_plan && !IsSame(*line, *leaf_in_plan)) {
                  Refuse(key.path(), WriteToml(*line), "{}", WriteToml(*leaf_in_plan));
                }
              },
              section, section_in_plan);
        },
        keys_, in_plan);
  }
  /// Returns the steps between two starts of a section by a trigger of its own; 0 if it has no such trigger.
  auto EveryOf(SectionKind section) const -> int64_t {
    const auto found = std::ranges::find_if(plan_.triggers, [&](const Trigger& trigger) {
      return trigger.section == section && trigger.kind == TriggerKind::EverySteps;
    });
    return found == plan_.triggers.end() ? 0 : found->every;
  }
  auto HaltsAt(ScalarRole role) const -> bool {
    return std::ranges::any_of(plan_.halts, [&](const Halt& halt) { return plan_.scalars[halt.scalar].role == role; });
  }

  const Plan& plan_;
  Findings& findings_;
  PlanKeys keys_;
};

auto RecipeVerifier::OtherOwnerOf(const KeyInfo& key) const -> std::optional<Optimizer> {
  struct Setting {
    std::string_view key;
    Optimizer owner;
  };
  static constexpr Setting Settings[] = {
#define SETTING(Name, key) {#key, Optimizer::Name},
#include "schemas/optimizers.def"
  };
  const auto is_of_this = [&](const Setting& setting) {
    return key.section == "optimizer" && key.list.empty() && setting.key == key.name;
  };
  const auto* setting = std::ranges::find_if(Settings, is_of_this);
  return setting != std::end(Settings) && setting->owner != plan_.run.optimizer ? std::optional(setting->owner)
                                                                                : std::nullopt;
}

auto RecipeVerifier::Owners() -> void {
  ForEachKey(keys_.optimizer, [&](const KeyInfo& key, const auto& leaf) {
    if (const auto owner = OtherOwnerOf(key); leaf && owner) {
      findings_.Add("header-recipe"_rule, "the line `recipe {}` is of the optimizer {}, the plan has {}", key.path(),
                    ToText(*owner), ToText(plan_.run.optimizer));
    }
  });
}

auto RecipeVerifier::Missing() -> void {
  ForEachSection(keys_, [&](std::string_view, std::string_view, const auto& section) {
    ForEachKey(section, [&](const KeyInfo& key, const auto& leaf) {
      // A plan that leaves out no update has none of these; sources or made tokens take the place of data.tokens.
      const bool is_of_skipping =
          key.section == "train" && (key.name == "max_skipped" || key.name.starts_with("spike_"));
      if (!leaf && !is_of_skipping && key.default_row != "UNSET" && key.path() != "data.tokens" && !OtherOwnerOf(key)) {
        findings_.Add("header-recipe"_rule,
                      "no line `recipe {}`; a plan has all keys that are required or have a default, or none",
                      key.path());
      }
    });
  });
}

auto RecipeVerifier::Files() -> void {
  // Paths depend on folders, and names do not.
  const auto base = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  const auto compare = [&](std::string_view key, const std::optional<std::vector<std::string>>& line,
                           const std::vector<std::string>& files) {
    const auto is_named = [&](const std::string& file) {
      return std::ranges::any_of(*line,
                                 [&](const std::string& pattern) { return GlobMatches(base(pattern), base(file)); });
    };
    const auto other = line ? std::ranges::find_if_not(files, is_named) : files.end();
    if (other != files.end()) {
      Refuse(key, WriteToml(*line), "reads {}", *other);
    }
  };
  const auto& data = keys_.data;
  const auto& sources = plan_.data.sources;
  for (size_t i = 0; i < std::min(data.source.size(), sources.size()); ++i) {
    compare("data.source", data.source[i].tokens, sources[i].files);
  }
  if (data.source.empty() && sources.size() == 1) {
    compare("data.tokens", data.tokens, sources[0].files);
  }
  compare("data.eval", data.eval, plan_.data.eval_files);
  for (const TargetHead& head : plan_.heads) {
    const auto own = std::ranges::find(keys_.loss.head, head.name, [](const auto& table) { return *table.name; });
    compare(head.is_own ? "data.targets" : "loss.head",
            head.is_own                    ? data.targets
            : own == keys_.loss.head.end() ? std::nullopt
                                           : own->targets,
            head.files);
  }
}

auto RecipeVerifier::CauseOf(const HeaderFields::key_type& field, const std::string* in_plan) -> std::string {
  std::string cause;
  // Puts the header together without a leaf, and sets the leaf back.
  const auto judge = [&](const std::string& path, auto& leaf) {
    auto value = std::exchange(leaf, {});
    PlanHeader header = plan_;
    PutKeys(keys_, header);
    leaf = std::move(value);
    const HeaderFields fields = HeaderFieldsOf(header);
    const auto found = fields.find(field);
    if (in_plan == nullptr ? found == fields.end() : found != fields.end() && found->second == *in_plan) {
      cause = fmt::format("the line `recipe {}` has {}", path,
                          std::ranges::find(plan_.recipe, path, &RecipeEntry::key)->value);
    }
  };
  ForEachSection(keys_, [&](std::string_view name, std::string_view, auto& section) {
    ForEachKey(section, [&](const KeyInfo& key, auto& leaf) {
      if (leaf && cause.empty()) {
        judge(key.path(), leaf);
      }
    });
    ForEachList(section, [&](std::string_view list, std::string_view, auto& tables) {
      if (!tables.empty() && cause.empty()) {
        judge(fmt::format("{}.{}", name, list), tables);
      }
    });
  });
  return cause.empty() ? "several lines `recipe` contradict the plan" : cause;
}

auto RecipeVerifier::Header() -> void {
  if (keys_.run.machine && FindMachine(*keys_.run.machine) == nullptr) {
    Refuse("run.machine", WriteToml(*keys_.run.machine), "knows no such machine");
    return;
  }
  PlanHeader of_keys = plan_;
  PutKeys(keys_, of_keys);
  const HeaderFields in_plan = HeaderFieldsOf(plan_);
  const HeaderFields expected = HeaderFieldsOf(of_keys);
  // One finding for each line, though several fields follow from some.
  std::set<std::string> told;
  const auto tell = [&](const HeaderFields::key_type& field, const std::string* value, std::string_view has,
                        const std::string& shown) {
    if (std::string cause = CauseOf(field, value); told.insert(cause).second) {
      findings_.Add("header-recipe"_rule, "{}, the plan has {} `{}` with {}={}", cause, has, field.first, field.second,
                    shown);
    }
  };
  for (const auto& [field, value] : in_plan) {
    const auto found = expected.find(field);
    if (found == expected.end() || found->second != value) {
      tell(field, &value, "a line", value);
    }
  }
  for (const auto& [field, value] : expected) {
    if (!in_plan.contains(field)) {
      tell(field, nullptr, "no line", value);
    }
  }
  if (keys_.data.eval && !plan_.data.has_eval_files()) {
    Refuse("data.eval", WriteToml(*keys_.data.eval), "evaluates on no files");
  }
}

auto RecipeVerifier::Triggers() const -> PlanKeys {
  PlanKeys in_plan;
  in_plan.checkpoint.every = EveryOf(SectionKind::Save);
  // Without held-out tokens there is nothing to start.
  if (!plan_.section(SectionKind::Eval).ops.empty()) {
    in_plan.train.eval_every = EveryOf(SectionKind::Eval);
  }
  return in_plan;
}

auto RecipeVerifier::Halts() const -> PlanKeys {
  PlanKeys in_plan;
  in_plan.train.on_nonfinite = OneOf(HaltsAt(ScalarRole::NonFinite) ? OnNonfinite::Stop : OnNonfinite::Skip);
  const bool judges_losses = plan_.FindScalar(ScalarRole::Spike).valid();
  if (judges_losses) {
    in_plan.train.on_spike = OneOf(HaltsAt(ScalarRole::Spike) ? OnSpike::Stop : OnSpike::Skip);
  }
  // If no update is left out, the key has no effect, whatever it says.
  if (!HaltsAt(ScalarRole::NonFinite) || (judges_losses && !HaltsAt(ScalarRole::Spike))) {
    const auto counts = [&](const Halt& halt) { return plan_.scalars[halt.scalar].role == ScalarRole::None; };
    const auto counting = std::ranges::find_if(plan_.halts, counts);
    in_plan.train.max_skipped = counting == plan_.halts.end() ? 0 : counting->above;
  }
  return in_plan;
}

auto RecipeVerifier::Scalars() const -> PlanKeys {
  PlanKeys in_plan;
  if (const ScalarId lr = plan_.FindScalar(ScalarRole::Lr); lr.valid()) {
    in_plan.optimizer.lr = Formula{plan_.scalars[lr].expression};
  }
  if (!plan_.groups.empty()) {
    // The first group has the parameters that no rule of the recipe names.
    in_plan.optimizer.weight_decay = plan_.groups.begin()->weight_decay;
  }
  return in_plan;
}

auto RecipeVerifier::Loss() const -> PlanKeys {
  PlanKeys in_plan;
  int64_t chunks = 0;
  HeadId first;
  for (const Op& op : plan_.section(SectionKind::Step).ops) {
    if (const auto loss = LossOf(op)) {
      first = chunks == 0 ? loss->head : first;
      chunks += loss->head == first ? 1 : 0;
    }
  }
  if (chunks > 0) {
    in_plan.loss.chunks = chunks;
  }
  return in_plan;
}

auto RecipeVerifier::Reduction() const -> PlanKeys {
  PlanKeys in_plan;
  LoopTracker loops;
  for (const Op& op : plan_.section(SectionKind::Step).ops) {
    loops.Enter(op);
    if (plan_.run.accumulate > 1 && GradientScatterOf(plan_, op)) {
      in_plan.batch.reduce = OneOf(loops.count() > 1 ? BatchReduce::Each : BatchReduce::Last);
    }
  }
  return in_plan;
}

auto RecipeVerifier::Update(const Op& op) -> PlanKeys {
  PlanKeys in_plan;
  const auto take = [&](std::optional<double>& leaf, std::string_view name) {
    if (const auto* value = AttributeOf<double>(op.body, name)) {
      leaf = *value;
    }
  };
  if (FactsOf(op).update == UpdatePart::Clip) {
    take(in_plan.optimizer.clip_norm, "max_norm");
  }
  if (FactsOf(op).update != UpdatePart::Apply) {
    return in_plan;
  }
  take(in_plan.optimizer.eps, "eps");
  take(in_plan.optimizer.momentum, "momentum");
  if (const auto* nesterov = AttributeOf<bool>(op.body, "nesterov")) {
    in_plan.optimizer.nesterov = *nesterov;
  }
  const auto* beta1 = AttributeOf<double>(op.body, "beta1");
  const auto* beta2 = AttributeOf<double>(op.body, "beta2");
  if (beta1 != nullptr && beta2 != nullptr) {
    in_plan.optimizer.betas = std::vector{*beta1, *beta2};
  }
  return in_plan;
}

auto RecipeVerifier::Recomputation() -> void {
  if (!keys_.recompute.policy) {
    return;
  }
  const bool recomputes = std::ranges::any_of(plan_.section(SectionKind::Step).ops,
                                              [](const Op& op) { return op.phase == Phase::Recompute; });
  const bool is_of_all = !keys_.recompute.layers || keys_.recompute.layers->text == "true";
  const bool has_blocks = std::ranges::any_of(plan_.parameters, [](const Parameter& own) { return own.layer >= 0; });
  // A list of results to keep may name all that backward reads.
  const bool has_to = is_of_all && has_blocks && keys_.recompute.policy != RecomputePolicy::None &&
                      keys_.recompute.policy != RecomputePolicy::Selective;
  if (recomputes ? keys_.recompute.policy == RecomputePolicy::None : has_to) {
    Refuse("recompute.policy", WriteToml(*keys_.recompute.policy), "computes {} again",
           recomputes ? "results" : "nothing");
  }
}

auto RecipeVerifier::Start() -> void {
  const auto& first = keys_.start.first;
  if (first &&
      (first->from().has_value() != plan_.seed.is_set() || first->adapter.has_value() == plan_.seed.adapter.empty())) {
    Refuse("start.first", WriteToml(*first), "begins from {}",
           plan_.seed.is_set() ? ToText(plan_.seed) : "no checkpoint");
  }
  const auto refuse_part = [&](StagePart part, bool is_kept) {
    if (first && is_kept && !first->Keeps(part)) {
      Refuse("start.first", WriteToml(*first), "goes on with the {} of {}", ToText(part), ToText(plan_.seed));
    }
  };
  refuse_part(StagePart::Moments, plan_.seed.updates > 0);
  refuse_part(StagePart::Schedule, plan_.run.first_step > 0);
  refuse_part(StagePart::Data, plan_.data.goes_on());
  if (!plan_.FindScalar(ScalarRole::Spike).valid() && keys_.train.on_spike) {
    Refuse("train.on_spike", WriteToml(*keys_.train.on_spike), "judges no loss");
  }
}

}  // namespace

auto VerifyRecipe(const Plan& plan, Findings& findings) -> void {
  // The lines stay as pass build wrote them: looked at once, as this takes milliseconds for a large model.
  if (plan.Established(PassesFor(plan.device).back())) {
    RecipeVerifier(plan, findings).Run();
  }
}

}  // namespace shardc
