#include "compiler/checkpoint/peft_adapter.h"

#include <filesystem>

#include "compiler/checkpoint/digest.h"
#include "compiler/checkpoint/published_config.h"
#include "compiler/checkpoint/published_model.h"

namespace shardc {

static constexpr std::string_view PeftPrefix = "base_model.model.";
static constexpr std::string_view WeightEnd = ".weight";

auto ParameterOfPeft(std::string_view tensor) -> std::string {
  constexpr std::string_view Default = ".default";
  if (!tensor.starts_with(PeftPrefix) || !tensor.ends_with(WeightEnd)) {
    return {};
  }
  tensor.remove_prefix(PeftPrefix.size());
  tensor.remove_suffix(WeightEnd.size());
  if (tensor.ends_with(Default)) {
    tensor.remove_suffix(Default.size());
  }
  const std::string parameter = std::string(tensor) + std::string(WeightEnd);
  return AdaptedBy(parameter).empty() ? std::string() : parameter;
}

/// Returns the reason why a tensor is not read.
static auto WhyNotRead(std::string_view tensor) -> std::string {
  const auto has = [&](std::string_view part) { return tensor.find(part) != std::string_view::npos; };
  if (!tensor.starts_with(PeftPrefix)) {
    return fmt::format(
        "its name does not begin with {}, and peft does not load it either; save the adapter by peft's "
        "save_pretrained",
        PeftPrefix);
  }
  if (has(".lora_embedding_")) {
    return "it is of an adapter of an embedding, which is not offered";
  }
  if (has(".lora_magnitude_vector")) {
    return "it is of DoRA, which is not offered";
  }
  if (has(".experts.")) {
    return "it is of an adapter of experts, which is not offered";
  }
  if (!has(".lora_")) {
    return "it is a tensor of the base; save the adapter by save_pretrained(save_embedding_layers=False), or merge it "
           "into its base by peft (merge_and_unload()) and begin from that model";
  }
  return "expected only `lora_A.weight` and `lora_B.weight` of modules";
}

/// Returns the reason why a directory has no adapter that is read.
static auto NoAdapter(const Descriptor& directory) -> Error {
  if (HasEntry(directory, PeftConfigName)) {
    return HasEntry(directory, "adapter_model.bin")
               ? Fail(ExitCode::Checkpoint,
                      "its weights are in adapter_model.bin, which is a program of Python and is not read; open it in "
                      "peft and save it by `save_pretrained`, which writes {}",
                      PeftWeightsName)
               : Fail(ExitCode::Checkpoint, "it has {} without {}; get the rest of the adapter", PeftConfigName,
                      PeftWeightsName);
  }
  if (HasEntry(directory, ManifestName)) {
    return Fail(ExitCode::Checkpoint,
                "it is a checkpoint of a run; name it by `seed` alone if it has adapters, or make a folder of them by "
                "`shardc export --adapter`");
  }
  return Fail(ExitCode::Checkpoint,
              "it has no {}; name the folder that peft's save_pretrained or `shardc export --adapter` wrote{}",
              PeftConfigName, HasEntry(directory, ConfigName) ? ", and the model by `seed`" : "");
}

/// Checks that the tensors are those of the modules that the configuration names, in both matrices and of its rank.
static auto CheckTensors(const PeftConfig& config, const Manifest& manifest) -> Status {
  std::map<std::string, const ManifestTensor*> parameters;
  for (const auto& [name, tensor] : manifest.tensors) {
    const std::string parameter = ParameterOfPeft(name);
    FAIL_IF(parameter.empty() || parameter.find(".experts.") != std::string::npos, ExitCode::Checkpoint,
            "tensor {} in {}: {}", name, PeftWeightsName, WhyNotRead(name));
    FAIL_IF(!parameters.emplace(parameter, &tensor).second, ExitCode::Checkpoint,
            "{} has {} twice, with and without `default`; save the adapter again", PeftWeightsName, parameter);
  }
  FAIL_IF(parameters.empty(), ExitCode::Checkpoint, "{} has no tensor; save the adapter again", PeftWeightsName);
  for (const auto& [name, tensor] : parameters) {
    const std::string weight = AdaptedBy(name);
    const std::string module = weight.substr(0, weight.size() - WeightEnd.size());
    const auto adapter = config.AdapterOf(module);
    FAIL_IF(!adapter, ExitCode::Checkpoint,
            "{} gives {} no adapter, and {} has {}; correct `target_modules`, or get both files again", PeftConfigName,
            module, PeftWeightsName, name);
    const bool is_down = name.ends_with(DownSuffix);
    const std::string other = AdapterParameter(weight, is_down ? UpSuffix : DownSuffix);
    FAIL_IF(!parameters.contains(other), ExitCode::Checkpoint, "{} has {} without {}; save the adapter again",
            PeftWeightsName, name, other);
    FAIL_IF(tensor->shape.size() != 2, ExitCode::Checkpoint, "{} in {} is {}; expected a matrix", name, PeftWeightsName,
            ToText(tensor->shape));
    FAIL_IF(tensor->shape[is_down ? 0 : 1] != adapter->rank, ExitCode::Checkpoint,
            "{} gives {} rank {}, and {} in {} is {}; correct `r` or `rank_pattern`, or get both files again",
            PeftConfigName, module, adapter->rank, name, PeftWeightsName, ToText(tensor->shape));
  }
  return Success{};
}

auto ReadPeftAdapter(const Descriptor& directory) -> ErrorOr<SeedContents> {
  if (!HasEntry(directory, PeftConfigName) || !HasEntry(directory, PeftWeightsName)) {
    return NoAdapter(directory);
  }
  ASSIGN_OR_RETURN(const auto text, ReadModelText(directory, PeftConfigName));
  ASSIGN_OR_RETURN(const auto config, ReadPeftConfig(text));
  Manifest manifest;
  manifest.version = Manifest::ListsPieces;
  manifest.run_id = "LORA";
  manifest.plan_hash = DigestText(0, 0);
  manifest.state["step"] = 0;
  manifest.published = PublishedModel{.config = config.read};
  RETURN_IF_ERROR(AddWeights(directory, PeftWeightsName, manifest));
  RETURN_IF_ERROR(CheckTensors(config, manifest));
  std::string record = ToText(manifest);
  std::string digest = DigestInManifest(record);
  return SeedContents{std::move(manifest), std::move(record), std::move(digest)};
}

auto PeftConfigOf(const Manifest& adapter) -> ErrorOr<PeftConfig> {
  return ReadPeftConfig(PeftConfigText(adapter.published->config));
}

}  // namespace shardc
