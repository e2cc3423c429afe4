#include "compiler/plan/header.h"

#include <algorithm>

#include "compiler/base/byte_limit.h"
#include "compiler/base/devices.h"
#include "compiler/base/family_keys.h"
#include "compiler/base/machine_rows.h"
#include "compiler/base/text/parse_whole.h"
#include "compiler/expr/spelling.h"
#include "compiler/keys/source_name.h"
#include "compiler/keys/toml_value.h"
#include "compiler/plan/field_text.h"
#include "compiler/plan/fields.h"

namespace shardc {

auto KeysOf(const Plan& plan) -> PlanKeys { return ReadKeys(plan.recipe).keys; }

auto IsAssumed(const Plan& plan, OriginKey key) -> bool {
  return std::ranges::any_of(plan.recipe,
                             [&](const RecipeEntry& entry) { return entry.key == key.text() && entry.is_assumed; });
}

auto PresetOf(const Plan& plan) -> const PresetRow* {
  const auto entry = std::ranges::find(plan.recipe, OriginKey("model.preset").text(), &RecipeEntry::key);
  const auto name = entry == plan.recipe.end() ? std::nullopt : ReadToml(entry->value);
  return name ? PresetNamed(name->text) : nullptr;
}

auto PrefetchDepth(const Plan& plan, const std::optional<int64_t>& depth) -> int64_t {
  return depth.value_or(FactsOf(plan.device).family == DeviceFamily::Cuda ? 1 : 0);
}

auto ModelSize(const PlanHeader& header, const std::string& name) -> std::optional<int64_t> {
  const auto found = header.model.find(name);
  return found == header.model.end() ? std::nullopt : ParseWhole<int64_t>(found->second);
}

/// Sets a field if the key is set.
template <class T, class Field>
static auto Put(const std::optional<T>& key, Field& field) -> void {
  if (key) {
    field = static_cast<Field>(*key);
  }
}

static auto PutMesh(const PlanKeys& keys, Mesh& mesh) -> void {
  const auto put = [&](const std::optional<int64_t>& size, Axis axis) {
    mesh.set_size(axis, size.value_or(mesh.size(axis)));
  };
#define AXIS(Name, name, ...) put(keys.mesh.name, Axis::Name);
#include "schemas/axes.def"
  put(keys.shard.reshard_size, Axis::DpInner);
  Put(keys.mesh.hosts, mesh.hosts);
}

/// Puts in a size or a setting as text. A formula has one spelling, and is left out if it is the default.
template <class T>
static auto PutSize(const std::string& name, const T& size, const T&, std::map<std::string, std::string>& model)
    -> void {
  model[name] = fmt::format("{}", size);
}
static auto PutSize(const std::string& name, const Formula& formula, const Formula& default_,
                    std::map<std::string, std::string>& model) -> void {
  std::string text = SpellingOf(formula.text, ExprKind::Frequency);
  if (text == default_.text) {
    model.erase(name);
  } else {
    model[name] = std::move(text);
  }
}

static auto PutModel(const PlanKeys& keys, std::map<std::string, std::string>& model) -> void {
  if (keys.model.family) {
    model["family"] = keys.model.family->text();
  }
  const auto family = FromText<Family>(model["family"]);
#define REQUIRED key_type::NoDefault()
#define UNSET key_type::NoDefault()
#define MODEL_KEY(name, Type, default_, doc)                                                \
  if (keys.model.name && family && HasSize(*family, #name)) {                               \
    PutSize(#name, *keys.model.name, key_type::DefaultOf<key_type::Type>(default_), model); \
  }
#include "schemas/model_keys.def"
#undef REQUIRED
#undef UNSET
}

/// Puts in the further heads, whose names and vocabularies the line `model` has too, after the model's own.
static auto PutHeads(const PlanKeys& keys, PlanHeader& header) -> void {
  if (keys.loss.head.empty()) {
    return;
  }
  std::string text;
  std::vector<TargetHead> heads;
  for (const TargetHead& head : header.heads) {
    if (head.is_own) {
      heads.push_back(head);
    }
  }
  for (const auto& key : keys.loss.head) {
    TargetHead head{.name = *key.name, .vocab = *key.vocab, .files = {}, .is_own = false};
    // Files are not among what the keys give.
    for (const TargetHead& before : header.heads) {
      head.files = before.name == head.name ? before.files : head.files;
    }
    heads.push_back(std::move(head));
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", *key.name, *key.vocab);
  }
  header.model["loss_heads"] = text;
  header.heads = {};
  for (TargetHead& head : heads) {
    header.heads.Add(std::move(head));
  }
}

auto PutData(const PlanKeys& keys, DataSource& data) -> void {
  Put(keys.data.format, data.format);
  Put(keys.data.synthetic, data.synthetic);
  Put(keys.data.order, data.order);
  Put(keys.data.seed, data.seed);
  Put(keys.data.eval_tokens, data.eval_tokens);
  Put(keys.data.documents, data.documents);
  Put(keys.data.pack, data.pack);
  Put(keys.data.document_end, data.document_end);
  Put(keys.data.too_long, data.too_long);
  Put(keys.data.max_lost, data.max_lost);
  if (data.is_synthetic()) {
    // A sample that is made is one document.
    data.pack = Pack::Stream;
  }
  Put(keys.model.vocab, data.vocab);
  Put(keys.model.seq, data.seq);
  const auto& sources = keys.data.source;
  if (!sources.empty()) {
    data.sources.resize(sources.size());
    for (size_t i = 0; i < sources.size(); ++i) {
      data.sources[i].name = SourceName(sources[i], i);
      data.sources[i].weight = sources[i].weight.value_or(Formula{}).text;
    }
  } else if (keys.data.tokens || data.is_synthetic()) {
    data.sources.resize(1);
    data.sources[0].name.clear();
    data.sources[0].weight.clear();
  }
  // Tokens that are made have no documents to find or to cut.
  for (size_t i = 0; i < data.sources.size() && !data.is_synthetic(); ++i) {
    Put(keys.data.document_end, data.sources[i].document_end);
    Put(keys.data.too_long, data.sources[i].too_long);
    if (!sources.empty()) {
      Put(sources[i].document_end, data.sources[i].document_end);
      Put(sources[i].too_long, data.sources[i].too_long);
    }
  }
}

static auto PutRun(const PlanKeys& keys, PlanHeader& header) -> void {
  RunSettings& run = header.run;
  Put(keys.start.run_id, run.run_id);
  Put(keys.checkpoint.keep, run.checkpoint_keep);
  Put(keys.train.steps, run.steps);
  Put(keys.train.max_minutes, run.max_minutes);
  Put(keys.batch.micro, run.micro_batch);
  Put(keys.batch.accumulate, run.accumulate);
  if (keys.batch.global && __builtin_mul_overflow(*keys.batch.global, header.data.seq, &run.tokens_per_step)) {
    run.tokens_per_step = 0;
  }
  if (keys.run.peak_flops) {
    run.peak_flops = *keys.run.peak_flops;
  } else if (keys.run.machine) {
    const MachineRow* row = FindMachine(*keys.run.machine);
    run.peak_flops = row == nullptr ? 0 : row->peak_bf16.value;
  }
  if (keys.run.comm && *keys.run.comm != Comm::Auto) {
    run.comm = *keys.run.comm;
  }
  Put(keys.optimizer.name, run.optimizer);
  Put(keys.init.seed, run.init_seed);
  if (keys.run.attention_workspace) {
    run.attention_workspace = *ParseByteLimit(keys.run.attention_workspace->text);
  }
  if (keys.data.scan) {
    run.scan_bytes = *ParseByteLimit(keys.data.scan->text);
  }
#define RUN_KEY(section, name, ...) Put(keys.section.name, run.name);
#include "schemas/recipe_keys.def"
}

auto PutKeys(const PlanKeys& keys, PlanHeader& header) -> void {
  PutMesh(keys, header.mesh);
  if (keys.run.device) {
    // A launch chooses among the devices of the family.
    const Device device = *keys.run.device;
    const bool is_chosen = FactsOf(device).is_open && FactsOf(device).family == FactsOf(header.device).family;
    header.device = is_chosen ? header.device : device;
  }
  Put(keys.run.kernels, header.kernels);
  PutModel(keys, header.model);
  PutData(keys, header.data);
  PutHeads(keys, header);
  PutRun(keys, header);
}

namespace {

/// Collects the fields of a line.
struct FieldCollector {
  std::string line;
  HeaderFields& fields;

  template <class T>
  auto Field(std::string_view name, const T& value) -> void {
    fields[{line, std::string(name)}] = FieldText(value);
  }
  template <class T>
  auto Default(std::string_view name, const T& value, const T&) -> void {
    Field(name, value);
  }
  /// Leaves out a path, which depends on folders.
  auto Path(std::string_view, const std::string&) -> void {}
};

}  // namespace

auto HeaderFieldsOf(const PlanHeader& header) -> HeaderFields {
  HeaderFields fields;
  FieldCollector plan{"plan", fields};
  for (int i = 0; i < NumAxes; ++i) {
    plan.Field(fmt::format("mesh {}", ToText(static_cast<Axis>(i))), header.mesh.size(static_cast<Axis>(i)));
  }
  plan.Field("mesh hosts", header.mesh.hosts);
  plan.Field("device", header.device);
  plan.Field("kernels", header.kernels);
  for (const auto& [name, value] : header.model) {
    fields[{"model", name}] = value;
  }
  VisitLine(header.data, FieldCollector{"data", fields});
  for (size_t i = 0; i < header.data.sources.size(); ++i) {
    FieldCollector source{fmt::format("source {}", i), fields};
    source.Field("name", header.data.sources[i].name);
    VisitLine(header.data.sources[i], source);
  }
  for (const TargetHead& head : header.heads) {
    VisitLine(head, FieldCollector{fmt::format("head {}", head.name), fields});
  }
  VisitLine(header.run, FieldCollector{"run", fields});
  return fields;
}

}  // namespace shardc
