#include "compiler/checkpoint/export_adapter.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "compiler/base/files.h"
#include "compiler/base/mapped.h"
#include "compiler/checkpoint/adapter_stages.h"
#include "compiler/checkpoint/checkpoint_file.h"
#include "compiler/checkpoint/cover.h"
#include "compiler/checkpoint/merged_adapter.h"
#include "compiler/checkpoint/new_directory.h"
#include "compiler/checkpoint/safetensors.h"
#include "compiler/checkpoint/seed_contents.h"
#include "compiler/checkpoint/stored_tensor.h"
#include "compiler/keys/adapters.h"
#include "compiler/keys/toml_value.h"

namespace shardc {

namespace {

/// A module of the base that has an adapter: a projection, or a fused module whose projections share an A.
struct Module {
  /// "model.layers.0.self_attn.q_proj".
  std::string name;
  LowRank adapter;
  std::string down;
  /// The B of each projection, in the order of the module's outputs.
  std::vector<std::string> ups;
};

}  // namespace

/// Returns the name of the module that has a projection, as peft has it.
static auto ModuleOf(const AdapterSizes& sizes, const std::string& weight) -> std::string {
  const std::string fused = FusedWeight(sizes.fused, weight);
  const std::string& whole = fused.empty() ? weight : fused;
  return whole.substr(0, whole.rfind('.'));
}

/// Returns the modules that have an adapter, in the order of their names.
static auto ModulesOf(const Manifest& manifest, const AdapterSizes& sizes) -> std::vector<Module> {
  std::map<std::string, Module> by_name;
  for (const auto& [name, tensor] : manifest.tensors) {
    if (!name.ends_with(UpSuffix)) {
      continue;
    }
    const std::string weight = AdaptedBy(name);
    Module& module = by_name[ModuleOf(sizes, weight)];
    module.adapter = *AdapterOf(sizes, weight);
    module.down = DownOf(sizes, weight);
    module.ups.push_back(name);
  }
  std::vector<Module> modules;
  for (auto& [name, module] : by_name) {
    module.name = name;
    std::ranges::sort(module.ups, {}, [&](const std::string& up) { return PlaceInModule(sizes.fused, AdaptedBy(up)); });
    modules.push_back(std::move(module));
  }
  return modules;
}

/// Returns the last parts of the modules' names, where all modules of the model that end so have an adapter; else their
/// whole names.
static auto TargetsOf(const std::vector<Module>& modules, const Manifest& manifest, const AdapterSizes& sizes)
    -> std::set<std::string> {
  const auto last = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
  std::map<std::string, std::set<std::string>> of_model;
  for (const auto& [name, tensor] : manifest.tensors) {
    constexpr std::string_view Weight = ".weight";
    if (AdaptedBy(name).empty() && name.ends_with(Weight)) {
      const std::string module = ModuleOf(sizes, name);
      of_model[last(module)].insert(module);
    }
  }
  std::map<std::string, size_t> adapted;
  for (const Module& module : modules) {
    ++adapted[last(module.name)];
  }
  std::set<std::string> targets;
  for (const Module& module : modules) {
    const std::string end = last(module.name);
    targets.insert(adapted.at(end) == of_model[end].size() ? end : module.name);
  }
  return targets;
}

/// Returns a number as peft writes it: a whole one without a point.
static auto AsNumber(double number) -> nlohmann::ordered_json {
  return number == std::floor(number) ? nlohmann::ordered_json(static_cast<int64_t>(number))
                                      : nlohmann::ordered_json(number);
}

static auto ConfigOf(const std::vector<Module>& modules, const Manifest& manifest, const AdapterSizes& sizes,
                     const std::string& base) -> std::string {
  nlohmann::ordered_json config;
  config["peft_type"] = "LORA";
  config["task_type"] = "CAUSAL_LM";
  config["base_model_name_or_path"] = base.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(base);
  config["r"] = sizes.rank;
  config["lora_alpha"] = AsNumber(sizes.alpha);
  config["lora_dropout"] = 0.0;
  config["use_rslora"] = sizes.scales_by_root;
  config["bias"] = "none";
  config["fan_in_fan_out"] = false;
  config["init_lora_weights"] = true;
  config["inference_mode"] = true;
  config["target_modules"] = TargetsOf(modules, manifest, sizes);
  config["rank_pattern"] = nlohmann::ordered_json::object();
  config["alpha_pattern"] = nlohmann::ordered_json::object();
  for (const Module& module : modules) {
    if (module.adapter.rank != sizes.rank) {
      config["rank_pattern"][module.name] = module.adapter.rank;
    }
    if (module.adapter.alpha != sizes.alpha) {
      config["alpha_pattern"][module.name] = AsNumber(module.adapter.alpha);
    }
  }
  return config.dump(2) + "\n";
}

/// Checks that a base of this class has the modules.
static auto CheckModules(const std::vector<Module>& modules, const AdapterSizes& sizes, const std::string& architecture)
    -> Status {
  const std::vector<FusedModule> of_base = FusedModulesOf(architecture);
  for (const Module& module : modules) {
    const std::string weight = AdaptedBy(module.ups.front());
    FAIL_IF(
        FusedWeight(of_base, weight) != FusedWeight(sizes.fused, weight), ExitCode::Usage,
        "the base of the run is a {}, which has no {} for peft to adapt; write a whole model by --merge, or train {}",
        architecture, module.name,
        of_base.empty() ? "without adapter.fused"
                        : "with adapter.fused = " + WriteToml(Mapped<std::string>(of_base, &FusedModule::name)));
  }
  return Success{};
}

/// Copies tensors of f32 to a file, a block at a time; B of a fused module is those of its projections, one after
/// another.
static auto WriteTensors(const Descriptor& checkpoint, const Manifest& manifest, const std::vector<Module>& modules,
                         const Descriptor& directory) -> ErrorOr<AdapterExport> {
  AdapterExport result;
  std::vector<SafetensorsTensor> tensors;
  std::vector<std::string> names;
  const auto add = [&](const std::string& name, const std::vector<std::string>& parts) {
    Dims shape = manifest.tensors.at(parts.front()).shape;
    shape[0] = 0;
    for (const std::string& part : parts) {
      shape[0] += manifest.tensors.at(part).shape[0];
    }
    const int64_t bytes = NumElements(shape) * SizeOf(DType::F32);
    tensors.push_back({"base_model.model." + name,
                       std::string(SafetensorsTypeOf(DType::F32)),
                       shape,
                       {result.bytes, result.bytes + bytes}});
    names.insert(names.end(), parts.begin(), parts.end());
    result.bytes += bytes;
  };
  for (const Module& module : modules) {
    add(module.name + std::string(DownSuffix), {module.down});
    add(module.name + std::string(UpSuffix), module.ups);
  }
  result.num_tensors = std::ssize(tensors);
  ASSIGN_OR_RETURN(const auto header, SafetensorsHeaderText(tensors, {{"format", "pt"}}));
  ASSIGN_OR_RETURN(auto file, AtomicFile::CreateAt(directory, "adapter_model.safetensors"));
  RETURN_IF_ERROR(file.Append(header));
  CheckpointFiles files(&checkpoint, &manifest);
  constexpr int64_t BlockElements = int64_t{1} << 18;
  std::vector<std::byte> block;
  for (const std::string& name : names) {
    StoredTensor tensor(&files, manifest, name);
    FAIL_IF(tensor.dtype() != DType::F32, ExitCode::Checkpoint, "{} is {}, and adapters are kept in f32", name,
            ToText(tensor.dtype()));
    for (int64_t begin = 0; begin < tensor.num_elements(); begin += BlockElements) {
      const int64_t end = std::min(begin + BlockElements, tensor.num_elements());
      block.resize(static_cast<size_t>((end - begin) * SizeOf(DType::F32)));
      RETURN_IF_ERROR(tensor.Read(begin, end, block.data()));
      RETURN_IF_ERROR(file.Append({reinterpret_cast<const char*>(block.data()), block.size()}));
    }
  }
  RETURN_IF_ERROR(file.Commit());
  return result;
}

auto ExportAdapter(const std::string& checkpoint, const Manifest& manifest, const std::string& output)
    -> ErrorOr<AdapterExport> {
  FAIL_IF(!HasAdapters(manifest), ExitCode::Usage, "{} has no adapters; leave out --adapter", checkpoint);
  const PlanKeys keys = ReadKeys(manifest.recipe).keys;
  const AdapterStages stages = AdapterStagesOf(checkpoint, manifest);
  FAIL_IF(
      !stages.train_also.empty(), ExitCode::Usage,
      "parameters were trained beside the adapters (adapter.train_also = {}), which an adapter of peft has no place "
      "for here; write a whole model by --merge",
      WriteToml(stages.train_also));
  FAIL_IF(
      !stages.lost.empty(), ExitCode::Usage,
      "the run before {} has no record where it was, which would say whether more than adapters was trained; put its "
      "directory back, or write a whole model by --merge",
      stages.lost);
  auto directory = OpenDirectory(PosixFs(), checkpoint);
  if (!directory) {
    return Error{ExitCode::Checkpoint, directory.error().message};
  }
  RETURN_IF_ERROR(CheckCover(manifest));
  RETURN_IF_ERROR(CheckAdapters(manifest));
  for (const auto& [name, file] : manifest.files) {
    RETURN_IF_ERROR(CheckCheckpointFile(*directory, manifest, name));
  }
  const AdapterSizes sizes = ResolveAdapters(keys);
  const std::vector<Module> modules = ModulesOf(manifest, sizes);
  if (!stages.architecture.empty()) {
    RETURN_IF_ERROR(CheckModules(modules, sizes, stages.architecture));
  }
  ASSIGN_OR_RETURN(auto made, NewDirectory::Make(output));
  ASSIGN_OR_RETURN(auto config, AtomicFile::CreateAt(made.directory(), "adapter_config.json"));
  RETURN_IF_ERROR(config.Append(ConfigOf(modules, manifest, sizes, stages.base)));
  RETURN_IF_ERROR(config.Commit());
  auto result = WriteTensors(*directory, manifest, modules, made.directory());
  if (result) {
    RETURN_IF_ERROR(made.Commit());
  }
  return result;
}

}  // namespace shardc
