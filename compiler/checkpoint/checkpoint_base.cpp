#include "compiler/checkpoint/checkpoint_base.h"

#include <algorithm>

#include "compiler/checkpoint/what_lies_there.h"

namespace shardc {

/// Opens a directory that may hold the base. Errors: it holds no seed, or another one.
static auto OpenAt(const std::string& path, const std::string& digest, Fs& fs) -> ErrorOr<OpenBase> {
  auto directory = OpenDirectory(fs, path);
  FAIL_IF(!directory || !HoldsSeed(*directory), ExitCode::Checkpoint, "its base is gone: {}: {}", path,
          WhatLiesAt(path));
  auto contents = ReadSeedContents(*directory);
  FAIL_IF(!contents, ExitCode::Checkpoint, "its base cannot be read: {}", contents.error().message);
  FAIL_IF(contents->digest != digest, ExitCode::Checkpoint,
          "its base is another model now: the digest of {} is {}, and the run began from {}", path, contents->digest,
          digest);
  return OpenBase{.path = path, .directory = *std::move(directory), .manifest = std::move(contents->manifest)};
}

/// Checks that the base has each tensor that the manifest leaves to it.
static auto CheckTensors(const Manifest& manifest, const OpenBase& base) -> Status {
  for (const auto& [name, tensor] : manifest.tensors) {
    if (!tensor.in_base) {
      continue;
    }
    const auto found = base.manifest.tensors.find(tensor.in_base->tensor);
    FAIL_IF(found == base.manifest.tensors.end() || found->second.in_base, ExitCode::Checkpoint,
            "its base {} has no {} for {}", base.path, tensor.in_base->tensor, name);
    const Dims& there = found->second.shape;
    const Dims& own = tensor.shape;
    const bool fits = !own.empty() && NumElements(own) > 0 && there.size() == own.size() &&
                      std::equal(own.begin() + 1, own.end(), there.begin() + 1, there.end()) &&
                      tensor.in_base->row <= there[0] && own[0] <= there[0] - tensor.in_base->row;
    FAIL_IF(!fits || !IsTypeOfSeed(found->second.dtype) ||
                (tensor.dtype != found->second.dtype && tensor.dtype != DType::F32),
            ExitCode::Checkpoint, "its base {} has {} {}{}, which does not hold {} {}{} from row {} on", base.path,
            tensor.in_base->tensor, ToText(found->second.dtype), ToText(there), name, ToText(tensor.dtype), ToText(own),
            tensor.in_base->row);
  }
  return Success{};
}

auto OpenBaseOf(const Manifest& manifest, const std::string& other, Fs& fs) -> ErrorOr<OpenBase> {
  const auto& [path, digest] = *manifest.base;
  auto base = other.empty() || other == path ? Fail(ExitCode::Checkpoint, "") : OpenAt(other, digest, fs);
  if (!base) {
    base = OpenAt(path, digest, fs);
  }
  FAIL_IF(
      !base, ExitCode::Checkpoint,
      "{}; put the model back there, or leave a link where it was: `ln -s DIR {}`; of a run, `start.first` may name "
      "the directory where it is now",
      base.error().message, path);
  RETURN_IF_ERROR(CheckTensors(manifest, *base));
  return base;
}

auto InBase(const TensorInBase& in_base, const Dims& shape, BoxInterval elements) -> BoxInterval {
  const int64_t width = elements.is_whole_rows() ? NumElements(shape) / shape[0] : elements.columns.size();
  const int64_t begin = in_base.row * width;
  elements.elements = {elements.elements.begin + begin, elements.elements.end + begin};
  return elements;
}

auto BaseHasChanged(const std::string& base, const std::string& tensor) -> Error {
  return Fail(ExitCode::Checkpoint,
              "its base has changed: {} in {} has other numbers than those that the run began from; put the files back "
              "as they were",
              tensor, base);
}

}  // namespace shardc
