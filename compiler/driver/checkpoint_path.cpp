#include "compiler/driver/checkpoint_path.h"

#include <algorithm>
#include <filesystem>

#include "compiler/base/files.h"

namespace shardc {

/// Returns the newest checkpoint in a directory that is a run's or has its checkpoints; an empty text if it is neither.
static auto NewestBelow(const std::string& path) -> std::string {
  std::error_code unknown;
  const std::filesystem::path folder(path);
  std::string newest;
  for (const auto& parent : {folder, folder / "checkpoints"}) {
    for (const auto& entry : std::filesystem::directory_iterator(parent, unknown)) {
      const std::string name = entry.path().filename().string();
      // Numbers have leading zeros. Folders with other names are being written, were replaced or are damaged.
      if (IsCheckpointName(name) && std::filesystem::exists(entry.path() / ManifestName, unknown)) {
        newest = std::max(newest, entry.path().string());
      }
    }
  }
  return newest;
}

auto ManifestAt(const std::string& checkpoint) -> ErrorOr<Manifest> {
  const auto refused = [&](const Error& error) {
    return Fail(ExitCode::Checkpoint, "--checkpoint {} is no checkpoint: {}: {}", checkpoint, ManifestName,
                error.message);
  };
  const auto path = std::filesystem::path(checkpoint) / ManifestName;
  const auto text = ReadFile(path.string(), MaxManifestBytes);
  if (!text) {
    std::error_code unknown;
    const auto type = std::filesystem::status(path, unknown).type();
    const bool is_another =
        type == std::filesystem::file_type::not_found || type == std::filesystem::file_type::directory;
    return is_another ? refused(text.error())
                      : Fail(ExitCode::Environment, "{} cannot be read: {}", path.string(), text.error().message);
  }
  auto manifest = ManifestFromText(*text);
  return manifest ? std::move(manifest) : refused(manifest.error());
}

auto CheckpointAt(const std::string& path) -> std::string {
  std::error_code unknown;
  const bool is_one = std::filesystem::exists(std::filesystem::path(path) / ManifestName, unknown);
  const std::string newest = is_one ? "" : NewestBelow(path);
  return newest.empty() ? path : newest;
}

auto CheckpointOrNewest(const std::string& given, const Plan& plan) -> ErrorOr<std::string> {
  if (!given.empty()) {
    return given;
  }
  const std::string& folder = plan.run.checkpoint_dir.empty() ? plan.run.run_dir : plan.run.checkpoint_dir;
  std::string newest = NewestBelow(folder);
  FAIL_IF(newest.empty(), ExitCode::Checkpoint,
          "run {} has no checkpoint in {} yet; train it first, or name one by --checkpoint", plan.run.run_id, folder);
  return newest;
}

}  // namespace shardc
