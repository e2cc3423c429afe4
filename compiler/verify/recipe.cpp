// The lines `recipe` against the rest of the plan. Nothing is computed from them, but reports, records and comparisons
// tell them, so a key has the value that the plan has: in its header, its triggers and halts, and the ops that update.
//
// A plan may leave out any key. Keys of which the plan has no such fact may have any value: units, precision,
// recomputation, chunks of the loss, rules of initial values, groups of the optimizer and frozen parameters, names of
// token files, how a start finds its checkpoint.
#include <charconv>

#include "compiler/base/byte_limit.h"
#include "compiler/base/devices.h"
#include "compiler/base/machine_rows.h"
#include "compiler/base/recipe_words.h"
#include "compiler/plan/origin_key.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

/// Returns the number that the whole of `text` is.
template <class T>
auto NumberIn(std::string_view text) -> std::optional<T> {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// Compares a value in TOML, as the compiler writes it, with a value of the plan.
auto Says(std::string_view toml, int64_t value) -> bool { return NumberIn<int64_t>(toml) == value; }
auto Says(std::string_view toml, uint64_t value) -> bool { return NumberIn<uint64_t>(toml) == value; }
auto Says(std::string_view toml, double value) -> bool { return NumberIn<double>(toml) == value; }
auto Says(std::string_view toml, bool value) -> bool { return toml == (value ? "true" : "false"); }
/// Compares texts. The compiler escapes quotes, backslashes and control characters; expressions that are numbers have
/// no quotes.
auto Says(std::string_view toml, const std::string& value) -> bool {
  std::string quoted = "\"";
  for (const char c : value) {
    const bool is_control = static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
    quoted += is_control              ? fmt::format("\\u{:04X}", static_cast<unsigned>(c))
              : c == '"' || c == '\\' ? fmt::format("\\{}", c)
                                      : std::string(1, c);
  }
  return toml == quoted + "\"" || (toml == value && NumberIn<double>(toml));
}
template <class E>
requires std::is_enum_v<E>
auto Says(std::string_view toml, E value) -> bool { return Says(toml, std::string(ToText(value))); }

template <class T>
auto TextOf(const T& value) -> std::string {
  if constexpr (std::is_enum_v<T>) {
    return std::string(ToText(value));
  } else {
    return fmt::format("{}", value);
  }
}

class RecipeVerifier {
 public:
  RecipeVerifier(const Plan& plan, Findings& findings) : plan_(plan), findings_(findings) {}

  auto Run() -> void {
    Keys();
    ModelAndMesh();
    DataAndBatch();
    Settings();
    Triggers();
    Halts();
    for (const Op& op : plan_.section(SectionKind::Step).ops) {
      Update(op);
    }
  }

 private:
  /// The plan's type for a key of each type.
  struct InPlan {
    using Int = int64_t;
    using Real = double;
    using Bool = bool;
    using Formula = std::string;
  };

  auto Keys() -> void;
  auto ModelAndMesh() -> void;
  auto DataAndBatch() -> void;
  auto Settings() -> void;
  auto Triggers() -> void;
  auto Halts() -> void;
  auto Update(const Op& op) -> void;

  /// Returns the value of the plan's line for the key; null if there is no such line.
  auto ValueOf(OriginKey key) const -> const std::string* {
    const auto found = std::ranges::find(plan_.recipe, key.text(), &RecipeEntry::key);
    return found == plan_.recipe.end() ? nullptr : &found->value;
  }
  template <class T>
  auto Expect(OriginKey key, const T& in_plan) -> void {
    const std::string* value = ValueOf(key);
    if (value != nullptr && !Says(*value, in_plan)) {
      findings_.Add("header-recipe"_rule, "the line `recipe {}` has {}, the plan {}", key.text(), *value,
                    TextOf(in_plan));
    }
  }
  /// Compares a key that is a number of bytes.
  auto ExpectBytes(OriginKey key, int64_t in_plan) -> void {
    const std::string* value = ValueOf(key);
    if (value == nullptr) {
      return;
    }
    const bool is_quoted = value->size() >= 2 && value->starts_with('"') && value->ends_with('"');
    const std::string text = is_quoted ? value->substr(1, value->size() - 2) : *value == "0" ? *value : "";
    if (ParseByteLimit(text) != in_plan) {
      findings_.Add("header-recipe"_rule, "the line `recipe {}` has {}, the plan {} bytes", key.text(), *value,
                    in_plan);
    }
  }
  /// Compares a key of [model] with the line `model`, or with the default that this line leaves out.
  template <class T>
  auto ExpectSize(OriginKey key, const char* name, const T& default_) -> void {
    const auto found = plan_.model.find(name);
    if constexpr (std::is_same_v<T, std::string>) {
      Expect(key, found == plan_.model.end() ? default_ : found->second);
    } else if constexpr (std::is_same_v<T, bool>) {
      Expect(key, found == plan_.model.end() ? default_ : found->second == "true");
    } else if (found != plan_.model.end()) {
      Expect(key, NumberIn<T>(found->second).value_or(default_));
    }
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
};

auto RecipeVerifier::Keys() -> void {
  struct Setting {
    std::string_view key;
    Optimizer owner;
  };
  static constexpr Setting Settings[] = {
#define SETTING(Name, key) {"optimizer." #key, Optimizer::Name},
#include "schemas/optimizers.def"
  };
  for (const RecipeEntry& entry : plan_.recipe) {
    // "optimizer.group" is a key, and "optimizer.group.match" stands in its tables.
    if (!OriginKey::Find(entry.key) || std::ranges::count(entry.key, '.') != 1) {
      findings_.Add("header-recipe"_rule, "`{}` is no key of a recipe", entry.key);
    }
    const auto is_of_this = [&](const Setting& setting) { return setting.key == entry.key; };
    const auto* setting = std::ranges::find_if(Settings, is_of_this);
    if (setting != std::end(Settings) && setting->owner != plan_.run.optimizer) {
      findings_.Add("header-recipe"_rule, "the line `recipe {}` is of the optimizer {}, the plan has {}", entry.key,
                    ToText(setting->owner), ToText(plan_.run.optimizer));
    }
  }
}

auto RecipeVerifier::ModelAndMesh() -> void {
  ExpectSize<InPlan::Formula>("model.family", "family", "");
#define REQUIRED
#define UNSET
#define MODEL_KEY(name, Type, default_, ...) ExpectSize<InPlan::Type>("model." #name, #name, InPlan::Type{default_});
#include "schemas/model_keys.def"
#undef REQUIRED
#undef UNSET
#define AXIS(Name, name, ...) Expect("mesh." #name, plan_.mesh.size(Axis::Name));
#include "schemas/axes.def"
  Expect("mesh.hosts", plan_.mesh.hosts);
  Expect("shard.reshard_size", plan_.mesh.size(Axis::DpInner));
}

auto RecipeVerifier::DataAndBatch() -> void {
  Expect("data.format", plan_.data.format);
  Expect("data.synthetic", plan_.data.synthetic);
  Expect("data.order", plan_.data.order);
  Expect("data.seed", plan_.data.seed);
  Expect("data.eval_tokens", plan_.data.eval_tokens);
  if (const std::string* eval = ValueOf("data.eval"); eval != nullptr && !plan_.data.has_eval_files()) {
    findings_.Add("header-recipe"_rule, "the line `recipe data.eval` has {}, the plan evaluates on no files", *eval);
  }
  ExpectBytes("data.scan", plan_.run.scan_bytes);
  Expect("batch.global", SamplesPerStep(plan_));
  Expect("batch.micro", plan_.run.micro_batch);
  Expect("batch.accumulate", plan_.run.accumulate);
}

auto RecipeVerifier::Settings() -> void {
  const RunSettings& run = plan_.run;
  Expect("start.run_id", run.run_id);
  Expect("checkpoint.keep", run.checkpoint_keep);
  Expect("init.seed", run.init_seed);
  Expect("optimizer.name", run.optimizer);
  if (!plan_.groups.empty()) {
    // The first group has the parameters that no rule of the recipe names.
    Expect("optimizer.weight_decay", plan_.groups.begin()->weight_decay);
  }
  Expect("train.steps", run.steps);
  Expect("train.max_minutes", run.max_minutes);
#define RUN_KEY(section, name, ...) Expect(#section "." #name, run.name);
#include "schemas/recipe_keys.def"
  ExpectBytes("run.attention_workspace", run.attention_workspace);
  Expect("run.kernels", plan_.kernels);
  Expect("run.peak_flops", run.peak_flops);
  if (const std::string* name = ValueOf("run.machine"); name != nullptr && ValueOf("run.peak_flops") == nullptr) {
    const auto is_this = [&](const MachineRow& row) { return Says(*name, std::string(row.name)); };
    const auto rows = MachineRows();
    const auto row = std::ranges::find_if(rows, is_this);
    if (row == rows.end() || row->peak_bf16.value != run.peak_flops) {
      findings_.Add("header-recipe"_rule, "the line `recipe run.machine` has {}, the plan a peak of {} FLOP/s", *name,
                    run.peak_flops);
    }
  }
  // These are chosen when the plan is made, or when it is launched.
  if (const std::string* comm = ValueOf("run.comm"); comm != nullptr && !Says(*comm, Comm::Auto)) {
    Expect("run.comm", run.comm);
  }
  const auto decides = [&](const std::string& word) {
    return std::ranges::any_of(EnumNames<Device>::names, [&](std::string_view name) {
      const Device device = *FromText<Device>(name);
      return Says(word, device) && FactsOf(device).is_open && FactsOf(device).family == FactsOf(plan_.device).family;
    });
  };
  if (const std::string* device = ValueOf("run.device"); device != nullptr && !decides(*device)) {
    Expect("run.device", plan_.device);
  }
  if (const ScalarId lr = plan_.FindScalar(ScalarRole::Lr); lr.valid()) {
    Expect("optimizer.lr", plan_.scalars[lr].expression);
  }
}

auto RecipeVerifier::Triggers() -> void {
  Expect("checkpoint.every", EveryOf(SectionKind::Save));
  // Without held-out tokens there is nothing to start.
  if (!plan_.section(SectionKind::Eval).ops.empty()) {
    Expect("train.eval_every", EveryOf(SectionKind::Eval));
  }
}

auto RecipeVerifier::Halts() -> void {
  Expect("train.on_nonfinite", HaltsAt(ScalarRole::NonFinite) ? OnNonfinite::Stop : OnNonfinite::Skip);
  if (plan_.FindScalar(ScalarRole::Spike).valid()) {
    Expect("train.on_spike", HaltsAt(ScalarRole::Spike) ? OnSpike::Stop : OnSpike::Skip);
  } else if (const std::string* on_spike = ValueOf("train.on_spike")) {
    findings_.Add("header-recipe"_rule, "the line `recipe train.on_spike` has {}, the plan judges no loss", *on_spike);
  }
  const bool skips_spikes = plan_.FindScalar(ScalarRole::Spike).valid() && !HaltsAt(ScalarRole::Spike);
  if (HaltsAt(ScalarRole::NonFinite) && !skips_spikes) {
    // No update is left out, so the key has no effect, whatever it says.
    return;
  }
  const auto counts = [&](const Halt& halt) { return plan_.scalars[halt.scalar].role == ScalarRole::None; };
  const auto counting = std::ranges::find_if(plan_.halts, counts);
  Expect("train.max_skipped", counting == plan_.halts.end() ? int64_t{0} : counting->above);
}

auto RecipeVerifier::Update(const Op& op) -> void {
  if (FactsOf(op).update == UpdatePart::Clip) {
    Expect("optimizer.clip_norm", *AttributeOf<double>(op.body, "max_norm"));
  }
  if (FactsOf(op).update != UpdatePart::Apply) {
    return;
  }
  const auto expect = [&](OriginKey key, std::string_view name) {
    if (const auto* value = AttributeOf<double>(op.body, name)) {
      Expect(key, *value);
    }
  };
  expect("optimizer.eps", "eps");
  expect("optimizer.momentum", "momentum");
  if (const auto* nesterov = AttributeOf<bool>(op.body, "nesterov")) {
    Expect("optimizer.nesterov", *nesterov);
  }
  const auto* beta1 = AttributeOf<double>(op.body, "beta1");
  const auto* beta2 = AttributeOf<double>(op.body, "beta2");
  if (const std::string* betas = ValueOf("optimizer.betas"); betas != nullptr && beta1 != nullptr && beta2 != nullptr) {
    const size_t comma = std::min(betas->find(", "), betas->size());
    const bool is_pair = betas->starts_with('[') && betas->ends_with(']') && comma + 3 < betas->size();
    if (!is_pair || !Says(std::string_view(*betas).substr(1, comma - 1), *beta1) ||
        !Says(std::string_view(*betas).substr(comma + 2, betas->size() - comma - 3), *beta2)) {
      findings_.Add("header-recipe"_rule, "the line `recipe optimizer.betas` has {}, the plan [{}, {}]", *betas, *beta1,
                    *beta2);
    }
  }
}

}  // namespace

auto VerifyRecipe(const Plan& plan, Findings& findings) -> void {
  // Until then triggers and halts come about.
  if (plan.Established(PassKind::Lifecycle)) {
    RecipeVerifier(plan, findings).Run();
  }
}

}  // namespace shardc
