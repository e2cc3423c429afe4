// The adapters of a checkpoint as peft reads them: adapter_config.json and adapter_model.safetensors.
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "compiler/checkpoint/manifest.h"

namespace shardc {

struct AdapterExport {
  int64_t num_tensors = 0;
  int64_t bytes = 0;
};

/// Writes the adapters to a directory that appears whole or not at all. Names, shapes, types and keys are those of peft
/// 0.21; of projections that share an A they are one module. Memory: 64 MiB and the largest tensor. Errors: Usage, also
/// where other parameters were trained beside them, which the format has no place for, and where the base of the run
/// has other modules; Checkpoint, Environment.
auto ExportAdapter(const std::string& checkpoint, const Manifest& manifest, const std::string& output)
    -> ErrorOr<AdapterExport>;

}  // namespace shardc
