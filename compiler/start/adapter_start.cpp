#include "compiler/start/adapter_start.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

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

struct GivenAdapter {
  LowRank sizes;
  /// Its A, which is that of the fused module if the projections of one share it.
  std::string down;
};

/// The adapters of a seed, by the names of their projections.
struct GivenAdapters {
  std::map<std::string, GivenAdapter> of;
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

/// Returns the adapters of a checkpoint, as the recipe of its run has them.
static auto GivenBy(const Manifest& checkpoint) -> GivenAdapters {
  const AdapterSizes sizes = ResolveAdapters(ReadKeys(checkpoint.recipe).keys);
  GivenAdapters given{.of = {}, .rank = sizes.rank, .alpha = sizes.alpha, .scales_by_root = sizes.scales_by_root};
  for (const auto& [name, tensor] : checkpoint.tensors) {
    const std::string weight = name.ends_with(UpSuffix) ? AdaptedBy(name) : "";
    if (const auto adapter = weight.empty() ? std::nullopt : AdapterOf(sizes, weight)) {
      given.of[weight] = {*adapter, DownOf(sizes, weight)};
    }
  }
  return given;
}

/// Returns the adapters of modules as peft has them: one of a fused module is that of each of its projections.
static auto GivenBy(const Manifest& adapter, const PeftConfig& config, const std::vector<FusedModule>& fused,
                    const std::vector<std::string_view>& projections) -> GivenAdapters {
  GivenAdapters given{.of = {}, .rank = config.rank, .alpha = config.alpha, .scales_by_root = config.scales_by_root};
  for (const auto& [tensor, shape] : adapter.tensors) {
    const std::string name = ParameterOfPeft(tensor);
    if (!name.ends_with(DownSuffix)) {
      continue;
    }
    const std::string weight = AdaptedBy(name);
    const auto sizes = config.AdapterOf(weight.substr(0, weight.rfind('.')));
    std::vector<std::string> of{projections.begin(), projections.end()};
    std::erase_if(of, [&](const std::string& projection) { return FusedWeight(fused, projection) != weight; });
    for (const std::string& projection : of.empty() ? std::vector{weight} : of) {
      if (sizes) {
        given.of.insert_or_assign(projection, GivenAdapter{*sizes, name});
      }
    }
  }
  return given;
}

/// Returns true if the A of an adapter is that of a fused module.
static auto IsShared(std::string_view projection, std::string_view down) -> bool {
  return down != AdapterParameter(projection, DownSuffix);
}

/// Returns "model.layers.0.self_attn.qkv_proj" for "model.layers.0.self_attn.qkv_proj.lora_A.weight".
static auto ModuleWith(std::string_view down) -> std::string {
  return std::string(down.substr(0, down.size() - DownSuffix.size()));
}

/// Returns the keys of [adapter] that make these adapters and no other: "rank = 4, alpha = 8, override = [...]".
static auto KeysFor(const GivenAdapters& given, const std::vector<std::string_view>& projections,
                    const AdapterSection& here) -> std::string {
  std::map<std::pair<int64_t, double>, std::vector<std::string_view>> others;
  std::vector<std::string_view> all;
  std::set<std::string> fused;
  for (const auto& [name, adapter] : given.of) {
    all.push_back(name);
    if (adapter.sizes.rank != given.rank || adapter.sizes.alpha != given.alpha) {
      others[{adapter.sizes.rank, adapter.sizes.alpha}].push_back(name);
    }
    if (IsShared(name, adapter.down)) {
      const std::string module = ModuleWith(adapter.down);
      fused.insert(module.substr(module.rfind('.') + 1));
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
  const bool names_fused = !fused.empty() || (here.fused.is_set && !here.fused->empty());
  return fmt::format("rank = {}, alpha = {}{}{}{}{}", given.rank, WriteToml(given.alpha),
                     given.scales_by_root  ? ", scaling = \"rslora\""
                     : here.scaling.is_set ? ", scaling = \"standard\""
                                           : "",
                     names_fused ? ", fused = " + WriteToml(std::vector(fused.begin(), fused.end())) : "",
                     is_default ? "" : ", match = " + WriteToml(GlobsOf(all, projections)),
                     tables.empty() ? "" : fmt::format(", override = [{}]", fmt::join(tables, ", ")));
}

/// Returns "the A of model.layers.0.self_attn.qkv_proj", or "an A of its own".
static auto OwnerOf(std::string_view projection, std::string_view down) -> std::string {
  return IsShared(projection, down) ? "the A of " + ModuleWith(down) : "an A of its own";
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
    const std::string down = DownOf(here, name);
    const auto begins_fresh = [&](const std::string& parameter) {
      return std::ranges::any_of(missing, [&](const std::string& glob) { return GlobMatches(glob, parameter); });
    };
    if (!own || (begins_fresh(down) && begins_fresh(AdapterParameter(name, UpSuffix)))) {
      continue;
    }
    if (own->rank != there.sizes.rank || own->scale != there.sizes.scale) {
      differences.push_back(fmt::format("{} has rank {} and scale {} there, rank {} and scale {} here", name,
                                        there.sizes.rank, there.sizes.scale, own->rank, own->scale));
    } else if (down != there.down) {
      differences.push_back(
          fmt::format("{} has {} there, {} here", name, OwnerOf(name, there.down), OwnerOf(name, down)));
    }
  }
  constexpr std::string_view BeginAnew =
      "; to begin with new ones, write into start.first: "
      R"(missing = ["*.lora_A.weight", "*.lora_B.weight"], unused = ["*.lora_A.weight", "*.lora_B.weight"])";
  const bool has_own = recipe.start.first->seed.is_set && !recipe.start.first->adapter.is_set;
  if (!differences.empty()) {
    diags.Build(at, DiagnosticKind::SeedAdapter, Listed(differences, 3, "; ", "; "))
        .Help(fmt::format("to begin with the seed's, write into [adapter]: {}{}",
                          KeysFor(given, projections, recipe.adapter), has_own ? BeginAnew : ""))
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
    if (std::ranges::find(projections, name) == projections.end() &&
        std::ranges::none_of(unused, [&](const std::string& glob) { return GlobMatches(glob, adapter.down); })) {
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
  GivenAdapters given =
      GivenBy(contents.manifest, config,
              seed.manifest.published ? FusedModulesOf(seed.manifest.run_id) : FusedModules(), projections);
  const auto others = OtherModules(given, projections, *recipe.start.first->unused);
  FAIL_IF(!others.empty(), ExitCode::Checkpoint,
          "it is of {}, and the model has no such projection; merge it into its base by peft (merge_and_unload() and "
          "save_pretrained()), and begin from that model without `adapter`",
          Listed(others, 3));
  return given;
}

auto AddAdapter(const Recipe& recipe, const std::string& run_dir, SeedCheckpoint& seed, Diagnostics& diags) -> void {
  const FirstStart& first = *recipe.start.first;
  const ModelSizes sizes = ResolveModel(recipe);
  const ParameterSpecs specs = ParametersOf(ModelFamilyOf(*FromText<Family>(sizes.family)), sizes);
  const std::vector<std::string_view> projections = ProjectionsOf(specs);
  if (!first.adapter.is_set) {
    CompareAdapters(recipe, GivenBy(seed.manifest), projections, first.from().at, diags);
    return;
  }
  const auto given = TakeAdapter(recipe, run_dir, projections, seed);
  if (!given) {
    diags.Report(first.adapter.at, DiagnosticKind::SeedUnreadable, *first.adapter, given.error().message, "adapter");
  } else if (!recipe.adapter.kind.is_set) {
    diags.Build(first.adapter.at, DiagnosticKind::StartFirst, "has `adapter`, and the recipe has no [adapter]")
        .Help(fmt::format("to train this adapter, write into [adapter]: kind = \"lora\", {}",
                          KeysFor(*given, projections, recipe.adapter)))
        .Emit();
  } else {
    CompareAdapters(recipe, *given, projections, first.adapter.at, diags);
  }
}

}  // namespace shardc
