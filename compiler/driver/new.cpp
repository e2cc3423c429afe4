// shardc new FILE: a recipe to begin with, which says in comments what to change. It never replaces a file.

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "compiler/base/family_keys.h"
#include "compiler/base/files.h"
#include "compiler/base/json_reader.h"
#include "compiler/base/mapped.h"
#include "compiler/base/preset_rows.h"
#include "compiler/base/printable.h"
#include "compiler/base/text/joined.h"
#include "compiler/base/text/parse_whole.h"
#include "compiler/checkpoint/published_config.h"
#include "compiler/checkpoint/published_rows.h"
#include "compiler/checkpoint/seed_contents.h"
#include "compiler/checkpoint/what_lies_there.h"
#include "compiler/data/replaced_input.h"
#include "compiler/diag/render_order.h"
#include "compiler/driver/bf16_base.h"
#include "compiler/driver/command.h"
#include "compiler/driver/output.h"
#include "compiler/driver/recipe_source.h"
#include "compiler/keys/fused_modules.h"
#include "compiler/keys/toml_value.h"
#include "compiler/recipe/from_config.h"
#include "compiler/recipe/presets.h"
#include "compiler/recipe/reference.h"

namespace shardc {

namespace {

struct NewOptions {
  std::string path;
  std::string preset;
  std::string from;
  bool adapter = false;
};

/// Keys of [model] with their values in TOML: "layers", "32".
using ModelValues = std::map<std::string, std::string, std::less<>>;

}  // namespace

static auto Put(const std::string& path, std::string_view text) -> Status {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  FAIL_IF(descriptor < 0 && errno == EEXIST, ExitCode::Usage,
          "{} exists, and stays as it is; name a file that does not exist", path);
  FAIL_IF(descriptor < 0, ExitCode::Environment, "cannot make {}: {}", path, std::strerror(errno));
  const std::string_view all = text;
  while (!text.empty()) {
    const ssize_t written = write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      const Error failed =
          Fail(ExitCode::Environment, "cannot write {} ({} bytes): {}", path, all.size(), std::strerror(errno));
      close(descriptor);
      unlink(path.c_str());
      return failed;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  close(descriptor);
  return Success{};
}

static auto IntegerOf(const ModelValues& values, std::string_view key) -> int64_t {
  const auto found = values.find(key);
  return found == values.end() ? 0 : ParseWhole<int64_t>(found->second).value_or(0);
}

/// Adds the sizes that follow from others, so that two models can be compared; a sequence is as long as the run wants.
static auto Resolved(ModelValues values) -> ModelValues {
  const int64_t heads = IntegerOf(values, "heads");
  values.emplace("kv_heads", values["heads"]);
  values.emplace("head_dim", std::to_string(heads == 0 ? 0 : IntegerOf(values, "hidden") / heads));
  values.emplace("rope_frequency", "");
  values.erase("seq");
  return values;
}

/// Returns the preset that has all of these sizes; null if none has.
static auto PresetWith(const ModelValues& values) -> const PresetRow* {
  constexpr std::string_view Section = "model.";
  for (const PresetRow& row : PresetRows()) {
    ModelValues of_row;
    for (const PresetKey& key : KeysOf(row)) {
      if (key.path.starts_with(Section)) {
        of_row[key.path.substr(Section.size())] = key.value;
      }
    }
    if (Resolved(of_row) == Resolved(values)) {
      return &row;
    }
  }
  return nullptr;
}

/// Returns the lines of [model] of a model that has these values.
static auto ModelLines(ModelValues values) -> std::string {
  const int64_t longest = IntegerOf(values, "seq");
  const std::string of_seq = fmt::format("# The model takes sequences of at most {} tokens.\n", longest);
  if (const PresetRow* const preset = PresetWith(values)) {
    const std::string usual = ValueIn(*preset, "model.seq");
    const bool is_longer = ParseWhole<int64_t>(usual).value_or(0) > longest;
    return fmt::format(
        "# All sizes are those of this preset, which gives the init scheme too.\npreset = \"{}\"\n{}{}seq = {}\n",
        preset->name, of_seq, is_longer ? "" : "# ", is_longer ? std::to_string(longest) : usual);
  }
  // As the presets of most models: few train at the longest length, which makes activations many times as large.
  constexpr int64_t MostUsual = 4096;
  values["seq"] = std::to_string(std::min(longest, MostUsual));
  const std::string family = values.at("family");
  std::string lines = fmt::format("# From the model's config.json.\nfamily = {}\n", family);
  for (const std::string_view key : KeysOf(*FromText<Family>(family.substr(1, family.size() - 2)))) {
    if (const auto found = values.find(key); found != values.end()) {
      lines += fmt::format("{}{} = {}\n", key == "seq" ? of_seq : "", key, found->second);
    }
  }
  return lines;
}

/// Returns a comment on the types of a model's tensors; empty if all have one type.
static auto TypesLine(const Manifest& manifest) -> std::string {
  std::map<DType, int64_t> counts;
  for (const auto& [name, tensor] : manifest.tensors) {
    ++counts[tensor.dtype];
  }
  std::vector<std::string> texts;
  for (const auto& [dtype, count] : counts) {
    texts.push_back(fmt::format("{} {} {}", count, count == 1 ? "is" : "are", ToText(dtype)));
  }
  return texts.size() < 2 ? "" : fmt::format("# Of its tensors {}. Each is read as what it is.\n", JoinedByAnd(texts));
}

/// Returns the rank that adapters begin with: 16, or the narrowest side of a projection.
static auto RankFor(const ModelValues& values) -> int64_t {
  int64_t rank = 16;
  const ModelValues resolved = Resolved(values);
  const int64_t head_dim = IntegerOf(resolved, "head_dim");
  for (const int64_t side : {IntegerOf(resolved, "hidden"), IntegerOf(resolved, "ffn"),
                             IntegerOf(resolved, "heads") * head_dim, IntegerOf(resolved, "kv_heads") * head_dim}) {
    rank = side > 0 ? std::min(rank, side) : rank;
  }
  return rank;
}

/// Returns the recipe of another trainer's configuration in a file, and prints what it does not have.
static auto RecipeFromConfiguration(const std::string& path) -> ErrorOr<std::string> {
  // One byte more than is taken, so that a longer file is refused.
  auto text = ReadFile(path, MaxConfigBytes + 1);
  FAIL_IF(!text, ExitCode::Usage, "--from {}: {}", path, text.error().message);
  auto recipe = RecipeFromConfig(path, *std::move(text));
  FAIL_IF(!recipe, recipe.error().code, "--from {}", recipe.error().message);
  for (const std::string& line : recipe->not_carried) {
    RETURN_IF_ERROR(WriteResult(fmt::format("not carried over: {}\n", line)));
  }
  return std::move(recipe->text);
}

/// Checks that `shardc check` accepts the recipe of a model. Errors: its first error, with the keys of config.json.
static auto CheckAccepted(const NewOptions& options, const std::string& text, const Manifest& model) -> Status {
  RecipeSource source({.path = options.path}, text);
  if (const auto plan = source.LoadAndCompile({})) {
    return Success{};
  }
  for (const Diagnostic* const found : InPlaceOrder(source.diagnostics())) {
    if (found->severity != Severity::Error) {
      continue;
    }
    std::string keys;
    for (const published::SizeRow& row : published::SizeRows) {
      if (row.architecture == model.run_id &&
          found->text.find(fmt::format("`{}`", row.model_key)) != std::string::npos) {
        keys += fmt::format("; `{}` is from `{}`", row.model_key, row.key);
      }
    }
    for (const char* const key : {"rope_parameters", "rope_scaling"}) {
      if (model.published->config.contains(key) && found->text.find("_rope`") != std::string::npos) {
        keys += fmt::format("; it is from `{}`", key);
      }
    }
    return Fail(ExitCode::Checkpoint, "--from {}: {}: {}{}; correct it", options.from, ConfigName, found->text, keys);
  }
  return Success{};
}

/// Returns what a base in bf16 takes that has the sizes of the config.json of a quantized model; empty for another one.
static auto Bf16TextOf(const NewOptions& options) -> std::string {
  const auto text = ReadFile((std::filesystem::path(options.from) / ConfigName).string(), MaxConfigBytes + 1);
  if (!text || !IsQuantized(*text)) {
    return "";
  }
  auto json = ParseJson(*text, ExitCode::Checkpoint);
  for (const std::string_view key : published::QuantizedKeys) {
    json->erase(std::string(key));
  }
  const auto config = ReadPublishedConfig(json->dump());
  if (!config) {
    return "";
  }
  PlanKeys keys;
  keys.model = config->model;
  ModelValues values;
  for (const RecipeEntry& entry : WriteKeys(keys)) {
    values[entry.key.substr(entry.key.find('.') + 1)] = entry.value;
  }
  StarterModel model{.adapter_rank = RankFor(values)};
  model.lines = ModelLines(std::move(values));
  return Bf16BaseText(options.path, StarterRecipe(model), {});
}

static auto RecipeFrom(const NewOptions& options) -> ErrorOr<std::string> {
  std::error_code unknown;
  const std::filesystem::path file = options.from;
  const bool is_config = file.extension() == ".toml" || (file.extension() == ".json" && file.filename() != ConfigName);
  if (is_config && std::filesystem::is_regular_file(file, unknown)) {
    FAIL_IF(options.adapter, ExitCode::Usage,
            "--adapter trains beside a model that is there, and {} is a configuration; name the model's directory by "
            "--from DIR",
            options.from);
    return RecipeFromConfiguration(options.from);
  }
  const auto directory = OpenDirectory(PosixFs(), options.from);
  if (!directory || !HoldsSeed(*directory)) {
    return Fail(directory ? ExitCode::Checkpoint : ExitCode::Usage, "--from {}: {}", options.from,
                WhatLiesAt(options.from));
  }
  const auto contents = ReadSeedContents(*directory);
  if (!contents) {
    const std::string takes = Bf16TextOf(options);
    return Fail(contents.error().code, "--from {}: {}{}{}", options.from, contents.error().message,
                takes.empty() ? "" : "; ", takes);
  }
  FAIL_IF(!contents->manifest.published, ExitCode::Usage,
          "--from {}: it is a checkpoint of run {}; take the recipe of that run, and name the checkpoint in "
          "`start.first`",
          options.from, contents->manifest.run_id);
  RETURN_IF_ERROR(CheckWorkingDirectory());
  ModelValues values;
  for (const auto& [key, value] : contents->manifest.recipe) {
    values[key.substr(key.find('.') + 1)] = value;
  }
  // A path in a recipe is relative to the recipe's folder.
  const std::filesystem::path from = options.from;
  const auto folder = std::filesystem::absolute(options.path).lexically_normal().parent_path();
  const auto seed =
      from.is_absolute() ? from : std::filesystem::absolute(from).lexically_normal().lexically_proximate(folder);
  StarterModel model{.start = fmt::format("\n[start]\n# The run begins with the model's parameters, and with moments "
                                          "of 0.\n{}first = {{ seed = {} }}\n",
                                          TypesLine(contents->manifest), WriteToml(seed.string())),
                     .is_bf16 = std::ranges::all_of(contents->manifest.tensors, [](const auto& tensor) {
                       return tensor.second.dtype == DType::BF16;
                     })};
  if (options.adapter) {
    model.adapter_rank = RankFor(values);
    model.fused = Mapped<std::string>(FusedModulesOf(contents->manifest.run_id), &FusedModule::name);
  }
  model.lines = ModelLines(std::move(values));
  std::string text = StarterRecipe(model);
  RETURN_IF_ERROR(CheckAccepted(options, text, contents->manifest));
  return text;
}

static auto WriteNew(const NewOptions& options) -> Status {
  const bool has_preset = !options.preset.empty();
  FAIL_IF(has_preset && !options.from.empty(), ExitCode::Usage,
          "--preset and --from both say which model; give one of them");
  FAIL_IF(options.adapter && options.from.empty(), ExitCode::Usage,
          "--adapter trains beside a model that is there; name its directory by --from DIR");
  const std::string name = has_preset ? options.preset : "llama-debug";
  FAIL_IF(PresetNamed(name) == nullptr, ExitCode::Usage, "--preset: \"{}\" is no preset of a model\n{}", name,
          HelpOnPresets(name));
  RETURN_IF_ERROR(CheckReplacesNone("new", options.path, {}));
  ASSIGN_OR_RETURN(const auto text,
                   options.from.empty() ? StarterRecipe({.lines = PresetLines(name)}) : RecipeFrom(options));
  RETURN_IF_ERROR(Put(options.path, text));
  return WriteResult(
      fmt::format("{0}: a recipe for {1}; set `tokens` in [data], and see what it costs: shardc plan --explain {0}\n",
                  PrintableLine(options.path), options.from.empty() ? name : PrintableLine(options.from)));
}

auto DeclareNew(CommandOptions& options) -> Action {
  const auto values = std::make_shared<NewOptions>();
  options.Positional("FILE", values->path, "the recipe to write; a file that exists is never replaced");
  options.Text("--preset", values->preset, "NAME", "the model, one of `shardc presets`; default: llama-debug");
  options.Text(
      "--from", values->from, "DIR|FILE",
      "a model of Hugging Face that the run begins from: [model] is that of its config.json; or a configuration "
      "of torchtitan or KempnerForge, as far as recipes can say it");
  options.Flag("--adapter", values->adapter,
               "with --from DIR: train low-rank adapters beside the model, which stays as it is");
  return [values] { return ExitCodeOf(WriteNew(*values)); };
}

}  // namespace shardc
