#include "compiler/driver/checkpoint_path.h"

#include <filesystem>

#include "compiler/base/files.h"
#include "compiler/checkpoint/what_lies_there.h"

namespace shardc {

auto ManifestAt(const std::string& checkpoint) -> ErrorOr<Manifest> {
  const auto refused = [&](const std::string& why) {
    return Fail(ExitCode::Checkpoint, "{} is no checkpoint: {}", checkpoint, why);
  };
  const auto path = std::filesystem::path(checkpoint) / ManifestName;
  const auto text = ReadFile(path.string(), MaxManifestBytes);
  if (!text) {
    std::error_code unknown;
    switch (std::filesystem::status(path, unknown).type()) {
      case std::filesystem::file_type::not_found: return refused(WhatLiesAt(checkpoint));
      case std::filesystem::file_type::directory:
        return refused(fmt::format("{}: {}", ManifestName, text.error().message));
      default: return Fail(ExitCode::Environment, "{} cannot be read: {}", path.string(), text.error().message);
    }
  }
  auto manifest = ManifestFromText(*text);
  return manifest ? std::move(manifest) : refused(fmt::format("{}: {}", ManifestName, manifest.error().message));
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
