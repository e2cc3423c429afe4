#include "compiler/start/seed.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "compiler/base/files.h"
#include "compiler/base/glob.h"
#include "compiler/base/mapped.h"
#include "compiler/base/text/joined.h"
#include "compiler/base/text/parse_whole.h"
#include "compiler/check/expression_place.h"
#include "compiler/checkpoint/published_config.h"
#include "compiler/checkpoint/seed_contents.h"
#include "compiler/checkpoint/what_lies_there.h"
#include "compiler/expr/spelling.h"
#include "compiler/keys/adapters.h"
#include "compiler/keys/toml_value.h"
#include "compiler/plan/text.h"
#include "compiler/recipe/resolved.h"
#include "compiler/recipe/resolved_path.h"
#include "compiler/start/match_names.h"
#include "compiler/start/start_help.h"

namespace shardc {

/// Returns what is wrong with the types of tensors; empty if parameters can be loaded from all of them.
static auto TypeFault(const Manifest& manifest) -> std::string {
  for (const auto& [name, tensor] : manifest.tensors) {
    if (!IsTypeOfSeed(tensor.dtype)) {
      return fmt::format("its tensor {} is {}; parameters are loaded from f32, bf16 or f16", name,
                         ToText(tensor.dtype));
    }
  }
  return {};
}

auto SeedPathOf(const Recipe& recipe) -> std::string {
  const FirstStart& first = *recipe.start.first;
  if (!first.from().is_set) {
    return "";
  }
  const std::filesystem::path path = ResolvedPath(recipe, *first.from());
  // "a/step-00000001/" names what "a/step-00000001" does.
  return (path.has_filename() ? path : path.parent_path()).string();
}

/// Returns "a, b, c, 7 more".
static auto FirstOf(const std::vector<std::string>& items, std::string_view separator = ", ") -> std::string {
  return Listed(items, 3, separator, separator);
}

/// Reads what the run that once began from the directory put on record of it.
static auto ReadRecord(const std::string& run_dir, const std::string& path) -> ErrorOr<SeedContents> {
  const std::string none = WhatLiesAt(path);
  const auto directory = OpenDirectory(PosixFs(), run_dir);
  const auto status = directory ? StatusAt(*directory, SeedRecordName) : directory.error();
  FAIL_IF(!status || status->kind == EntryKind::Missing, ExitCode::Checkpoint, "{}", none);
  auto text = ReadFileAt(*directory, SeedRecordName, MaxManifestBytes);
  auto contents = text ? SeedContentsFromRecord(*std::move(text)) : text.error();
  FAIL_IF(!contents, ExitCode::Checkpoint, "its manifest as the run put it on record: {}", contents.error().message);
  const Manifest& manifest = contents->manifest;
  const std::string name = manifest.published ? manifest.published->directory : CheckpointName(manifest.step);
  FAIL_IF(std::filesystem::path(path).filename() != name, ExitCode::Checkpoint,
          "{}, and the run began from another one, {} of {}", none, name, manifest.run_id);
  return contents;
}

/// Returns the sizes that a published model's config.json gives; nothing if no plan can have them.
static auto PublishedSizes(const Manifest& manifest) -> std::optional<ModelSizes> {
  const KeysRead read = ReadKeys(manifest.recipe);
  const auto& model = read.keys.model;
  if (!read.faults.empty() || !model.family || !model.hidden || !model.heads || !model.ffn || !model.vocab ||
      !model.layers || !model.seq) {
    return std::nullopt;
  }
  return ResolveModel(read.keys);
}

/// Returns the value of a key as a recipe has it. A formula has one spelling.
static auto Written(const auto& value) -> std::string { return WriteToml(value); }
static auto Written(const Formula& formula) -> std::string {
  return WriteToml(Formula{SpellingOf(formula.text, ExprKind::Frequency)});
}

/// Returns the number of layers of which a published model has tensors.
static auto BlocksIn(const Manifest& manifest) -> int64_t {
  constexpr std::string_view Block = "model.layers.";
  int64_t blocks = 0;
  for (const auto& [name, tensor] : manifest.tensors) {
    if (name.starts_with(Block)) {
      const auto number = std::string_view(name).substr(Block.size());
      blocks = std::max(blocks, 1 + ParseWhole<int64_t>(number.substr(0, number.find('.'))).value_or(-1));
    }
  }
  return blocks;
}

/// Compares what config.json gives with the tensors that there are, and with the recipe.
static auto CheckPublished(const Manifest& manifest, const Recipe& recipe, Diagnostics& diags) -> void {
  const Located<std::string>& at = recipe.start.first->from();
  const auto sizes = PublishedSizes(manifest);
  // Each block has tensors of its own: no more layers are gone through than the files have tensors.
  if (!sizes || sizes->layers > std::ssize(manifest.tensors)) {
    diags.Report(at.at, DiagnosticKind::SeedContradictsConfig,
                 fmt::format("no model of {} tensors has such sizes", manifest.tensors.size()));
    return;
  }
  if (const int64_t blocks = BlocksIn(manifest); blocks != sizes->layers) {
    diags.Report(
        at.at, DiagnosticKind::SeedContradictsConfig,
        fmt::format("`num_hidden_layers` is {}, and the weights have tensors of {} layers", sizes->layers, blocks));
    return;
  }
  std::vector<std::string> faults;
  const ParameterSpecs specs = ParametersOf(ModelFamilyOf(*FromText<Family>(sizes->family)), *sizes);
  for (const auto& [name, shape] : PartsOf(specs, *sizes, MadeRowsOf(manifest)).shapes) {
    const auto tensor = manifest.tensors.find(name);
    if (tensor == manifest.tensors.end()) {
      faults.push_back(fmt::format("there is no {}", name));
    } else if (tensor->second.shape != shape) {
      faults.push_back(fmt::format("{} in {} is {}, and config.json makes it {}", name,
                                   tensor->second.pieces.front().file, ToText(tensor->second.shape), ToText(shape)));
    }
  }
  if (!faults.empty()) {
    diags.Report(at.at, DiagnosticKind::SeedContradictsConfig, FirstOf(faults, "; "));
    return;
  }
  const ModelSizes here = ResolveModel(recipe);
  std::vector<std::string> differences;
  const auto compare = [&](std::string_view key, const std::string& of_recipe, const std::string& of_seed) {
    if (of_recipe != of_seed) {
      differences.push_back(fmt::format("model.{} is {}, there {}", key, of_recipe, of_seed));
    }
  };
  compare("family", here.family, sizes->family);
#define MODEL_KEY(name, ...)                                       \
  if (std::string_view(#name) != "seq" || here.seq > sizes->seq) { \
    compare(#name, Written(here.name), Written(sizes->name));      \
  }
#include "schemas/model_keys.def"
  if (!differences.empty()) {
    diags.Report(at.at, DiagnosticKind::SeedOfAnotherModel, fmt::format("{}", fmt::join(differences, "; ")));
  }
}

namespace {

/// The checkpoint that a run continues, and what the run has on record of it, if it goes by that.
struct Continued {
  std::string path;
  std::optional<SeedContents> on_record;
};

}  // namespace

/// Returns what is continued: the directory itself, or the newest checkpoint of a run directory. A run with a
/// checkpoint of its own goes by its record, whatever became of the stage before. One that has begun and saved nothing
/// stays with the checkpoint that it began from, as long as that is there.
static auto ContinuedFrom(const std::string& path, const Recipe& recipe, const std::string& run_dir) -> Continued {
  namespace fs = std::filesystem;
  std::error_code unknown;
  const fs::path folder(path);
  const bool is_one = fs::exists(folder / ManifestName, unknown) || IsCheckpointName(folder.filename().string());
  const std::string newest = is_one ? "" : NewestBelow(path);
  const fs::path parent = is_one           ? folder.parent_path()
                          : newest.empty() ? folder / "checkpoints"
                                           : fs::path(newest).parent_path();
  const auto opened = OpenDirectory(PosixFs(), run_dir);
  auto text = opened ? ReadFileAt(*opened, SeedRecordName, MaxManifestBytes) : opened.error();
  auto begun = text ? SeedContentsFromRecord(*std::move(text)) : text.error();
  if (begun && !begun->manifest.published) {
    const std::string name = CheckpointName(begun->manifest.step);
    const std::string own = recipe.checkpoint.dir.is_set ? ResolvedPath(recipe, *recipe.checkpoint.dir) : run_dir;
    const bool is_meant = !is_one || folder.filename() == name;
    if (is_meant && !NewestBelow(own).empty()) {
      return {.path = (parent / name).string(), .on_record = *std::move(begun)};
    }
    if (is_meant && fs::exists(parent / name / ManifestName, unknown)) {
      return {.path = (parent / name).string(), .on_record = {}};
    }
  }
  // The last one is not passed over for an older one.
  return {.path = newest.empty() ? path : NewestBelow(path, true), .on_record = {}};
}

auto ReadSeed(const Recipe& recipe, const std::string& run_dir, Diagnostics& diags) -> std::optional<SeedCheckpoint> {
  const FirstStart& first = *recipe.start.first;
  const auto& from = first.from();
  if (!from.is_set) {
    switch (first.word) {
      case StartFrom::Scratch: return std::nullopt;
    }
  }
  const auto fail = [&](const std::string& why) {
    diags.Report(from.at, DiagnosticKind::SeedUnreadable, *from, why, first.seed.is_set ? "seed" : "checkpoint");
    return std::nullopt;
  };
  SeedCheckpoint seed;
  Continued continued{.path = SeedPathOf(recipe), .on_record = {}};
  if (first.continued.is_set) {
    continued = ContinuedFrom(continued.path, recipe, run_dir);
  }
  seed.path = std::move(continued.path);
  const auto directory = OpenDirectory(PosixFs(), seed.path);
  const bool is_there = directory && HoldsSeed(*directory);
  auto contents = continued.on_record ? ErrorOr<SeedContents>(*std::move(continued.on_record))
                  : is_there          ? ReadSeedContents(*directory)
                                      : ReadRecord(run_dir, seed.path);
  if (!contents) {
    const auto config = directory ? ReadFileAt(*directory, ConfigName, MaxManifestBytes) : directory.error();
    if (config && IsQuantized(*config)) {
      diags.Report(from.at, DiagnosticKind::SeedFewerBits, *from, contents.error().message);
      return std::nullopt;
    }
    return fail(contents.error().message);
  }
  if (const std::string fault = TypeFault(contents->manifest); !fault.empty()) {
    return fail(fault);
  }
  seed.digest = std::move(contents->digest);
  seed.manifest = std::move(contents->manifest);
  if (seed.manifest.published) {
    CheckPublished(seed.manifest, recipe, diags);
  }
  if (first.continued.is_set) {
    if (seed.manifest.published) {
      return fail(
          "it is a model of Hugging Face, which has no moments to go on with; write `seed` in the place of "
          "`continue`");
    }
    auto stage = StageOf(seed.manifest, [&](StagePart part) { return first.Keeps(part); });
    if (!stage) {
      return fail(stage.error().message);
    }
    seed.stage = *std::move(stage);
  }
  return seed;
}

/// Returns, for each name, true if a glob of the list matches it. Reports globs that match no name.
static auto MatchedBy(const Located<std::vector<std::string>>& globs, const std::vector<std::string_view>& names,
                      DiagnosticKind unused, Diagnostics& diags) -> std::vector<bool> {
  const auto patterns = Mapped<NamePattern>(*globs, [&](const std::string& glob) {
    return NamePattern{glob, PlaceInList(diags.sources(), globs.at, glob), 0};
  });
  // One rule has all the patterns: nothing is matched twice.
  const auto rules = MatchNames(patterns, names, {.duplicate = unused, .unused = unused, .noun = "name"}, diags);
  return Mapped<bool>(rules, [](const size_t rule) { return rule != NoRule; });
}

auto ChooseLoaded(const ParameterSpecs& specs, const LoadedParts& parts, const SeedCheckpoint& seed,
                  const Recipe& recipe, Diagnostics& diags) -> std::vector<bool> {
  const FirstStart& first = *recipe.start.first;
  const auto names = Mapped<std::string_view>(specs, &ParameterSpec::name);
  std::vector<bool> loaded = MatchedBy(first.missing, names, DiagnosticKind::SeedMissingGlob, diags);
  loaded.flip();
  // Adapters are loaded from a checkpoint that has some; beside another model each begins by its own rule.
  const bool has_adapters =
      std::ranges::any_of(seed.manifest.tensors, [](const auto& tensor) { return !AdaptedBy(tensor.first).empty(); });
  for (size_t s = 0; s < specs.size() && !has_adapters; ++s) {
    loaded[s] = loaded[s] && AdaptedBy(specs[s].name).empty();
  }
  std::vector<std::string> missing;
  std::vector<std::string> shapes;
  std::vector<std::string_view> not_loaded;
  for (size_t s = 0; s < specs.size(); ++s) {
    if (!loaded[s]) {
      continue;
    }
    const std::string name = LoadedBlockOf(parts.rules[s])->tensor;
    const Dims& shape = parts.shapes.find(name)->second;
    const auto tensor = seed.manifest.tensors.find(name);
    if (tensor == seed.manifest.tensors.end()) {
      not_loaded.push_back(names[s]);
      missing.push_back(name == specs[s].name ? name : fmt::format("{} for {}", name, specs[s].name));
    } else if (tensor->second.shape != shape) {
      not_loaded.push_back(names[s]);
      shapes.push_back(fmt::format("{} is {} there, {} here", name, ToText(tensor->second.shape), ToText(shape)));
    }
  }
  const auto report = [&](DiagnosticKind kind, const std::string& text) {
    diags.Build(first.from().at, kind, text).Help(HelpOnNotLoaded(not_loaded, names, seed.manifest, first)).Emit();
  };
  if (!missing.empty()) {
    report(DiagnosticKind::SeedParameterMissing, FirstOf(missing));
  }
  if (!shapes.empty()) {
    report(DiagnosticKind::SeedShape, FirstOf(shapes, "; "));
  }
  return loaded;
}

auto CheckLeftTensors(const SeedCheckpoint& seed, const Recipe& recipe, const TensorUses& uses, Diagnostics& diags)
    -> void {
  const FirstStart& first = *recipe.start.first;
  std::vector<std::string_view> names;
  for (const auto& [name, tensor] : seed.manifest.tensors) {
    names.push_back(name);
  }
  const std::vector<bool> unused = MatchedBy(first.unused, names, DiagnosticKind::SeedUnusedGlob, diags);
  std::vector<std::string> left;
  std::vector<std::string> used;
  for (size_t n = 0; n < names.size(); ++n) {
    const auto use = uses.find(names[n]);
    const auto& published = seed.manifest.published;
    if (use == uses.end() && !unused[n] && !(published && published->copies.contains(std::string(names[n])))) {
      left.emplace_back(names[n]);
    } else if (use != uses.end() && unused[n]) {
      used.push_back(fmt::format("{} ({})", names[n], use->second));
    }
  }
  if (!used.empty()) {
    diags.Report(first.unused.at, DiagnosticKind::SeedTensorUsed, FirstOf(used));
  }
  if (!left.empty()) {
    const bool has_adapters =
        std::ranges::any_of(left, [](const std::string& name) { return !AdaptedBy(name).empty(); });
    diags.Build(first.from().at, DiagnosticKind::SeedTensorLeft, FirstOf(left))
        .Help(fmt::format("{}to leave them, write into start.first: {}",
                          !has_adapters ? ""
                          : seed.adapter_digest.empty()
                              ? "`shardc export --merge` writes base and adapters as one model, to begin from; "
                              : "to train them, name their projections in adapter.match; ",
                          ListWith("unused", first.unused, {left.begin(), left.end()}, names)))
        .Emit();
  }
}

auto ContinueSeed(const SeedCheckpoint& seed, const Recipe& recipe, Plan& plan, Diagnostics& diags) -> void {
  if (!seed.stage) {
    return;
  }
  const FirstStart& first = *recipe.start.first;
  PutStage(seed.manifest, *seed.stage, plan);
  const auto fault = StageFault(seed.manifest, plan, [&](StagePart part) { return first.Keeps(part); });
  if (!fault.empty()) {
    diags.Report(first.continued.at, DiagnosticKind::ContinuedState, ToText(plan.seed), fault);
  }
}

auto SeedOf(const SeedCheckpoint& seed, const TensorUses& uses) -> Seed {
  Seed of_plan{.format = seed.manifest.published ? SeedFormat::HuggingFace : SeedFormat::Checkpoint,
               .path = seed.path,
               .run_id = seed.manifest.run_id,
               .step = seed.manifest.step,
               .manifest = seed.digest,
               .adapter = seed.adapter_digest,
               .adapter_path = seed.adapter_path,
               .tensors = {}};
  for (const auto& [name, use] : uses) {
    const ManifestTensor& tensor = seed.manifest.tensors.at(name);
    of_plan.tensors.push_back({.name = name, .shape = tensor.shape, .dtype = tensor.dtype});
  }
  return of_plan;
}

}  // namespace shardc
