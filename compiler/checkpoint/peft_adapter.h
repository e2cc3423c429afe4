// An adapter as the package peft saves it: adapter_config.json and adapter_model.safetensors. As of a model of Hugging
// Face, a manifest is made of its header, with tensors in the names that they have there; no tensor is read.
#pragma once

#include <string>
#include <string_view>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/checkpoint/peft_config.h"
#include "compiler/checkpoint/seed_contents.h"

namespace shardc {

constexpr const char* PeftWeightsName = "adapter_model.safetensors";
/// In a run directory: the manifest of the adapter that the run began from.
constexpr const char* AdapterRecordName = "seed_adapter.json";

/// Returns "model.layers.0.self_attn.q_proj.lora_A.weight" for
/// "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight", also if there is ".default" before ".weight";
/// empty for other tensors.
auto ParameterOfPeft(std::string_view tensor) -> std::string;

/// Reads the adapter in a directory: its configuration is understood, and its tensors are A and B of the modules and
/// ranks that the configuration gives. Errors: ExitCode::Checkpoint, with key, file or tensor and remedy.
auto ReadPeftAdapter(const Descriptor& directory) -> ErrorOr<SeedContents>;

/// Returns the configuration in the manifest of an adapter. Requires: ReadPeftAdapter or a record of it gave it.
auto PeftConfigOf(const Manifest& adapter) -> ErrorOr<PeftConfig>;

}  // namespace shardc
