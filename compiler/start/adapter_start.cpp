#include "compiler/start/adapter_start.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "compiler/base/files.h"
#include "compiler/base/glob.h"
#include "compiler/base/mapped.h"
#include "compiler/base/text/joined.h"
#include "compiler/checkpoint/merged_adapter.h"
#include "compiler/checkpoint/peft_adapter.h"
#include "compiler/checkpoint/what_lies_there.h"
#include "compiler/keys/adapters.h"
#include "compiler/keys/toml_value.h"
#include "compiler/recipe/resolved.h"
#include "compiler/recipe/resolved_path.h"
#include "compiler/start/match_names.h"

namespace shardc {

namespace {

/// The adapters of a seed, by the names of their projections.
struct GivenAdapters {
  std::map<std::string, LowRank> of;
  /// Rank and alpha of most of them, as [adapter] has them for all.
  int64_t rank = 0;
  double alpha = 0;
  bool scales_by_root = false;
};

}  // namespace

auto AdapterPathOf(const Recipe& recipe) -> std::string {
  const FirstStart& first = *recipe.start.first;
  return first.adapter.is_set ? ResolvedPath(recipe, *first.adapter) : "";
}

/// Reads the adapter in a directory, or what a run that began with it put on record.
static auto ReadAdapter(const std::string& path, const std::string& run_dir) -> ErrorOr<SeedContents> {
  if (const auto directory = OpenDirectory(PosixFs(), path); directory) {
    return ReadPeftAdapter(*directory);
  }
  std::error_code unknown;
  const std::string none = std::filesystem::exists(path, unknown) ? "it is a file; name the folder that it is in"
                                                                  : "there is no such folder" + NearestNote(path);
  const auto run = OpenDirectory(PosixFs(), run_dir);
  const auto status = run ? StatusAt(*run, AdapterRecordName) : run.error();
  FAIL_IF(!status || status->kind == EntryKind::Missing, ExitCode::Checkpoint, "{}", none);
  ASSIGN_OR_RETURN(auto text, ReadFileAt(*run, AdapterRecordName, MaxManifestBytes));
  ASSIGN_OR_RETURN(auto contents, SeedContentsFromRecord(std::move(text)));
  FAIL_IF(!contents.manifest.published, ExitCode::Checkpoint, "{}", none);
  const std::string& name = contents.manifest.published->directory;
  FAIL_IF(std::filesystem::path(path).filename() != name, ExitCode::Checkpoint,
          "{}, and the run began with another one, {}", none, name);
  return contents;
}

/// Returns the adapters of which a manifest has tensors, as `adapter_of` knows them by the names of their projections.
static auto GivenBy(const Manifest& manifest, const auto& adapter_of) -> std::map<std::string, LowRank> {
  std::map<std::string, LowRank> given;
  for (const auto& [name, tensor] : manifest.tensors) {
    if (name.ends_with(DownSuffix)) {
      const std::string weight = AdaptedBy(name);
      if (const auto adapter = adapter_of(weight)) {
        given[weight] = *adapter;
      }
    }
  }
  return given;
}

/// Returns the keys of [adapter] that make these adapters and no other: "rank = 4, alpha = 8, override = [...]".
static auto KeysFor(const GivenAdapters& given, const std::vector<std::string_view>& projections) -> std::string {
  std::map<std::pair<int64_t, double>, std::vector<std::string_view>> others;
  std::vector<std::string_view> all;
  for (const auto& [name, adapter] : given.of) {
    all.push_back(name);
    if (adapter.rank != given.rank || adapter.alpha != given.alpha) {
      others[{adapter.rank, adapter.alpha}].push_back(name);
    }
  }
  std::vector<std::string> tables;
  for (const auto& [adapter, names] : others) {
    for (const std::string& glob : GlobsOf(names, all)) {
      tables.push_back(fmt::format("{{ match = {}, rank = {}, alpha = {} }}", WriteToml(glob), adapter.first,
                                   WriteToml(adapter.second)));
    }
  }
  const bool is_default = std::ranges::all_of(projections, [&](std::string_view name) {
    return GlobMatches("*_proj.weight", name) == given.of.contains(std::string(name));
  });
  return fmt::format("rank = {}, alpha = {}{}{}{}", given.rank, WriteToml(given.alpha),
                     given.scales_by_root ? ", scaling = \"rslora\"" : "",
                     is_default ? "" : ", match = " + WriteToml(GlobsOf(all, projections)),
                     tables.empty() ? "" : fmt::format(", override = [{}]", fmt::join(tables, ", ")));
}

/// Compares the seed's adapters with those that the recipe makes; projections that have one in both.
static auto CompareAdapters(const Recipe& recipe, const GivenAdapters& given,
                            const std::vector<std::string_view>& projections, const SourceRange& at, Diagnostics& diags)
    -> void {
  const AdapterSizes here = ResolveAdapters(KeysOf(recipe));
  const std::vector<std::string>& missing = *recipe.start.first->missing;
  std::vector<std::string> differences;
  for (const auto& [name, there] : given.of) {
    const auto own = AdapterOf(here, name);
    const auto begins_fresh = [&](std::string_view suffix) {
      const std::string parameter = AdapterParameter(name, suffix);
      return std::ranges::any_of(missing, [&](const std::string& glob) { return GlobMatches(glob, parameter); });
    };
    if (own && !(begins_fresh(DownSuffix) && begins_fresh(UpSuffix)) &&
        (own->rank != there.rank || own->scale != there.scale)) {
      differences.push_back(fmt::format("{} has rank {} and scale {} there, rank {} and scale {} here", name,
                                        there.rank, there.scale, own->rank, own->scale));
    }
  }
  if (!differences.empty()) {
    diags.Build(at, DiagnosticKind::SeedAdapter, Listed(differences, 3, "; ", "; "))
        .Help(fmt::format("to begin with the seed's, write into [adapter]: {}", KeysFor(given, projections)))
        .Emit();
  }
}

/// Returns the names of the model's projections.
static auto ProjectionsOf(const ParameterSpecs& specs) -> std::vector<std::string_view> {
  std::vector<std::string_view> names;
  for (const ParameterSpec& spec : specs) {
    if (!spec.projection.empty() && AdaptedBy(spec.name).empty() && spec.shape.size() == 2) {
      names.push_back(spec.name);
    }
  }
  return names;
}

/// Returns the modules whose names no projection has here, and which no glob of `unused` leaves.
static auto OtherModules(const GivenAdapters& given, const std::vector<std::string_view>& projections,
                         const std::vector<std::string>& unused) -> std::vector<std::string> {
  std::vector<std::string> others;
  for (const auto& [name, adapter] : given.of) {
    const std::string down = AdapterParameter(name, DownSuffix);
    if (std::ranges::find(projections, name) == projections.end() &&
        std::ranges::none_of(unused, [&](const std::string& glob) { return GlobMatches(glob, down); })) {
      others.push_back(name.substr(0, name.rfind('.')));
    }
  }
  return others;
}

/// Adds the tensors of the adapter that start.first names to the seed, and returns what its configuration gives.
static auto TakeAdapter(const Recipe& recipe, const std::string& run_dir,
                        const std::vector<std::string_view>& projections, SeedCheckpoint& seed)
    -> ErrorOr<GivenAdapters> {
  FAIL_IF(HasAdapters(seed.manifest), ExitCode::Checkpoint,
          "the seed has adapters of its own; leave `adapter` out, or begin from a model without them");
  seed.adapter_path = AdapterPathOf(recipe);
  ASSIGN_OR_RETURN(const auto contents, ReadAdapter(seed.adapter_path, run_dir));
  ASSIGN_OR_RETURN(const auto config, PeftConfigOf(contents.manifest));
  seed.adapter_digest = contents.digest;
  for (const auto& [name, tensor] : contents.manifest.tensors) {
    seed.manifest.tensors[ParameterOfPeft(name)] = tensor;
  }
  const auto adapter_of = [&](const std::string& weight) {
    return config.AdapterOf(weight.substr(0, weight.rfind('.')));
  };
  GivenAdapters given{.of = GivenBy(seed.manifest, adapter_of),
                      .rank = config.rank,
                      .alpha = config.alpha,
                      .scales_by_root = config.scales_by_root};
  const auto others = OtherModules(given, projections, *recipe.start.first->unused);
  if (!others.empty()) {
    const bool is_fused =
        seed.manifest.tensors.contains(others.front() + ".weight") && !MadeRowsOf(seed.manifest).empty();
    return Fail(ExitCode::Checkpoint,
                "it is of {}, and the model has no such projection{}; merge it into its base by peft "
                "(merge_and_unload() and save_pretrained()), and begin from that model without `adapter`",
                Listed(others, 3), is_fused ? " (the base's fused ones are loaded as separate ones)" : "");
  }
  return given;
}

auto AddAdapter(const Recipe& recipe, const std::string& run_dir, SeedCheckpoint& seed, Diagnostics& diags) -> void {
  const FirstStart& first = *recipe.start.first;
  const ModelSizes sizes = ResolveModel(recipe);
  const ParameterSpecs specs = ParametersOf(ModelFamilyOf(*FromText<Family>(sizes.family)), sizes);
  const std::vector<std::string_view> projections = ProjectionsOf(specs);
  if (!first.adapter.is_set) {
    const AdapterSizes there = ResolveAdapters(ReadKeys(seed.manifest.recipe).keys);
    const auto adapter_of = [&](const std::string& weight) { return AdapterOf(there, weight); };
    CompareAdapters(recipe,
                    {.of = GivenBy(seed.manifest, adapter_of),
                     .rank = there.rank,
                     .alpha = there.alpha,
                     .scales_by_root = there.scales_by_root},
                    projections, first.from().at, diags);
    return;
  }
  const auto given = TakeAdapter(recipe, run_dir, projections, seed);
  if (!given) {
    diags.Report(first.adapter.at, DiagnosticKind::SeedUnreadable, *first.adapter, given.error().message, "adapter");
  } else if (!recipe.adapter.kind.is_set) {
    diags.Build(first.adapter.at, DiagnosticKind::StartFirst, "has `adapter`, and the recipe has no [adapter]")
        .Help(fmt::format("to train this adapter, write into [adapter]: kind = \"lora\", {}",
                          KeysFor(*given, projections)))
        .Emit();
  } else {
    CompareAdapters(recipe, *given, projections, first.adapter.at, diags);
  }
}

}  // namespace shardc
