#include "compiler/passes/seed.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "compiler/base/files.h"
#include "compiler/check/expression_place.h"
#include "compiler/checkpoint/cover.h"
#include "compiler/passes/match_names.h"
#include "compiler/plan/text.h"
#include "compiler/recipe/resolved_path.h"

namespace shardc {

/// A file's text; nothing where there is no such file.
static auto ReadManifestFile(const std::filesystem::path& path) -> std::optional<std::string> {
  constexpr auto MaxBytes = static_cast<size_t>(MaxManifestBytes);
  std::error_code unknown;
  if (!std::filesystem::is_regular_file(path, unknown)) {
    return std::nullopt;
  }
  auto text = ReadFile(path.string(), MaxBytes + 1);
  return text && !text->empty() && text->size() <= MaxBytes ? std::optional(*std::move(text)) : std::nullopt;
}

/// Parameters are in one of these.
static auto TypeFault(const Manifest& manifest) -> std::string {
  for (const auto& [name, tensor] : manifest.tensors) {
    if (tensor.dtype != DType::F32 && tensor.dtype != DType::BF16) {
      return fmt::format("its tensor {} is {}; parameters are f32 or bf16", name, ToText(tensor.dtype));
    }
  }
  return {};
}

auto SeedPathOf(const Recipe& recipe) -> std::string {
  const FirstStart& first = *recipe.start.first;
  if (!first.seed.is_set) {
    return "";
  }
  const std::filesystem::path path = ResolvedPath(recipe, *first.seed);
  // "a/step-00000001/" names what "a/step-00000001" does.
  return (path.has_filename() ? path : path.parent_path()).string();
}

auto ReadSeed(const Recipe& recipe, const std::string& run_dir, Diagnostics& diags) -> std::optional<SeedCheckpoint> {
  const FirstStart& first = *recipe.start.first;
  if (!first.seed.is_set) {
    switch (first.word) {
      case StartFrom::Scratch: return std::nullopt;
    }
  }
  const auto fail = [&](const std::string& why) {
    diags.Build(first.seed.at, DiagnosticKind::SeedUnreadable, *first.seed, why).Emit();
    return std::nullopt;
  };
  SeedCheckpoint seed;
  seed.path = SeedPathOf(recipe);
  const std::filesystem::path directory = seed.path;
  auto text = ReadManifestFile(directory / ManifestName);
  const bool is_there = text.has_value();
  if (!is_there) {
    text = ReadManifestFile(std::filesystem::path(run_dir) / SeedRecordName);
  }
  if (!text) {
    return fail("it has no manifest.json");
  }
  auto manifest = ManifestFromText(*text);
  if (!manifest) {
    return fail((is_there ? "its manifest: " : "its manifest as the run put it on record: ") +
                manifest.error().message);
  }
  if (!is_there && directory.filename() != CheckpointName(manifest->step)) {
    return fail(fmt::format("it has no manifest.json, and the run began from another one, {} of run {}",
                            CheckpointName(manifest->step), manifest->run_id));
  }
  if (const Status covered = CheckCover(*manifest); !covered.ok()) {
    return fail(covered.error().message);
  }
  if (const std::string fault = TypeFault(*manifest); !fault.empty()) {
    return fail(fault);
  }
  seed.digest = DigestInManifest(*text);
  seed.manifest = *std::move(manifest);
  return seed;
}

/// "a, b, c, 7 more".
static auto Listed(std::vector<std::string> items, std::string_view separator = ", ") -> std::string {
  constexpr size_t MostListed = 3;
  if (items.size() > MostListed) {
    const size_t more = items.size() - MostListed;
    items.resize(MostListed);
    items.push_back(fmt::format("{} more", more));
  }
  return fmt::format("{}", fmt::join(items, separator));
}

/// Whether a glob of the list matches each name; reports globs that match none.
static auto MatchedBy(const Located<std::vector<std::string>>& globs, const std::vector<std::string_view>& names,
                      DiagnosticKind unused, Diagnostics& diags) -> std::vector<bool> {
  std::vector<NamePattern> patterns;
  for (const std::string& glob : *globs) {
    patterns.push_back({glob, PlaceInList(diags.sources(), globs.at, glob), 0});
  }
  // One rule has all the patterns: nothing is matched twice.
  const auto rules = MatchNames(patterns, names, {.duplicate = unused, .unused = unused, .noun = "name"}, diags);
  std::vector<bool> matched;
  for (const size_t rule : rules) {
    matched.push_back(rule != NoRule);
  }
  return matched;
}

auto ChooseLoaded(const ParameterSpecs& specs, const SeedCheckpoint& seed, const Recipe& recipe, Diagnostics& diags)
    -> std::vector<bool> {
  const FirstStart& first = *recipe.start.first;
  std::vector<std::string_view> names;
  for (const ParameterSpec& spec : specs) {
    names.push_back(spec.name);
  }
  std::vector<bool> loaded = MatchedBy(first.missing, names, DiagnosticKind::SeedMissingGlob, diags);
  loaded.flip();
  std::vector<std::string> missing;
  std::vector<std::string> shapes;
  for (size_t s = 0; s < specs.size(); ++s) {
    if (!loaded[s]) {
      continue;
    }
    const auto tensor = seed.manifest.tensors.find(specs[s].name);
    if (tensor == seed.manifest.tensors.end()) {
      missing.push_back(specs[s].name);
    } else if (tensor->second.shape != specs[s].shape) {
      shapes.push_back(
          fmt::format("{} is {} there, {} here", specs[s].name, ToText(tensor->second.shape), ToText(specs[s].shape)));
    }
  }
  if (!missing.empty()) {
    diags.Build(first.seed.at, DiagnosticKind::SeedParameterMissing, Listed(missing)).Emit();
  }
  if (!shapes.empty()) {
    diags.Build(first.seed.at, DiagnosticKind::SeedShape, Listed(shapes, "; ")).Emit();
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
    if (use == uses.end() && !unused[n]) {
      left.emplace_back(names[n]);
    } else if (use != uses.end() && unused[n]) {
      used.push_back(fmt::format("{} ({})", names[n], use->second));
    }
  }
  if (!used.empty()) {
    diags.Build(first.unused.at, DiagnosticKind::SeedTensorUsed, Listed(used)).Emit();
  }
  if (!left.empty()) {
    diags.Build(first.seed.at, DiagnosticKind::SeedTensorLeft, Listed(left)).Emit();
  }
}

auto SeedOf(const SeedCheckpoint& seed, const TensorUses& uses) -> Seed {
  Seed of_plan{.path = seed.path,
               .run_id = seed.manifest.run_id,
               .step = seed.manifest.step,
               .manifest = seed.digest,
               .tensors = {}};
  for (const auto& [name, use] : uses) {
    const ManifestTensor& tensor = seed.manifest.tensors.at(name);
    of_plan.tensors.push_back({.name = name, .shape = tensor.shape, .dtype = tensor.dtype});
  }
  return of_plan;
}

}  // namespace shardc
