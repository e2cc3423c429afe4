#include "compiler/checkpoint/find_checkpoints.h"

#include <filesystem>
#include <map>

#include "compiler/base/files.h"
#include "compiler/base/fs.h"
#include "compiler/checkpoint/what_lies_there.h"

namespace shardc {

/// Returns the state that a name says; nothing for a name that no save makes.
static auto StateByName(const std::string& name) -> std::optional<CheckpointState> {
  if (IsCheckpointName(name)) {
    return CheckpointState::Whole;
  }
  const size_t dot = name.find('.');
  if (dot == std::string::npos || !IsCheckpointName(name.substr(0, dot))) {
    return std::nullopt;
  }
  const std::string_view ending = std::string_view(name).substr(dot);
  if (ending.starts_with(".tmp-")) {
    return CheckpointState::Temporary;
  }
  // Others are the user's own.
  const auto is_aside = [&](std::string_view word) {
    const auto number = ending.starts_with(word) ? ending.substr(word.size()) : "";
    return !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return is_aside(".replaced-") || is_aside(".damaged-") ? std::optional(CheckpointState::Aside) : std::nullopt;
}

/// Compares the files of an open checkpoint with their sizes in its manifest.
static auto CheckSizes(const Descriptor& directory, const Manifest& manifest) -> Status {
  for (const auto& [name, expected] : manifest.files) {
    ASSIGN_OR_RETURN(const auto status, StatusAt(directory, name));
    FAIL_IF(status.kind != EntryKind::File, ExitCode::Checkpoint, "{} is missing", name);
    FAIL_IF(status.bytes != expected.bytes, ExitCode::Checkpoint, "{} has {} bytes, the manifest says {}", name,
            status.bytes, expected.bytes);
  }
  return Success{};
}

/// Reads the manifest of an open checkpoint, and compares it with the name and the files.
static auto Examine(const Descriptor& directory, FoundCheckpoint& found) -> Status {
  ASSIGN_OR_RETURN(const auto text, ReadFileAt(directory, ManifestName, MaxManifestBytes));
  auto manifest = ManifestFromText(text);
  FAIL_IF(!manifest, ExitCode::Checkpoint, "{}: {}", ManifestName, manifest.error().message);
  found.manifest = *std::move(manifest);
  FAIL_IF(IsCheckpointName(found.name) && CheckpointName(found.manifest->step) != found.name, ExitCode::Checkpoint,
          "its manifest is of step {}", found.manifest->step);
  return CheckSizes(directory, *found.manifest);
}

static auto ExamineAt(const Descriptor& parent, const std::string& name, CheckpointState state) -> FoundCheckpoint {
  FoundCheckpoint found{.name = name, .path = parent.path() + "/" + name, .state = state};
  if (const auto status = StatusAt(parent, name); status) {
    found.written_ns = status->written_ns;
  }
  const auto directory = OpenDirectory(PosixFs(), found.path);
  const auto names = directory ? ListDirectory(*directory) : directory.error();
  for (const std::string& file : names ? *names : std::vector<std::string>()) {
    if (const auto status = StatusAt(*directory, file); status && status->kind == EntryKind::File) {
      found.bytes += status->bytes;
      found.written_ns = file == ManifestName ? status->written_ns : found.written_ns;
    }
  }
  const Status examined = names ? Examine(*directory, found) : Status(names.error());
  if (!examined && state == CheckpointState::Whole) {
    found.state = CheckpointState::Damaged;
    found.why = examined.error().message;
  }
  return found;
}

auto FindCheckpoints(const std::string& path) -> ErrorOr<FoundCheckpoints> {
  namespace fs = std::filesystem;
  std::error_code unknown;
  fs::path folder = fs::path(path).has_filename() ? fs::path(path) : fs::path(path).parent_path();
  std::string only = StateByName(folder.filename().string()) ? folder.filename().string() : "";
  bool is_link = false;
  if (only.empty() && fs::exists(folder / ManifestName, unknown)) {
    is_link = fs::is_symlink(folder, unknown);
    folder = fs::canonical(folder, unknown);
    only = folder.filename().string();
  }
  if (!only.empty()) {
    folder = folder.has_parent_path() ? folder.parent_path() : ".";
  } else if (fs::is_directory(folder / "checkpoints", unknown)) {
    folder /= "checkpoints";
  }
  const auto refused = [&] { return Fail(ExitCode::Checkpoint, "{} has no checkpoint: {}", path, WhatLiesAt(path)); };
  const auto parent = OpenDirectory(PosixFs(), folder.string());
  const auto names = parent ? ListDirectory(*parent) : parent.error();
  if (!names) {
    return refused();
  }
  FoundCheckpoints found{.directory = folder.string(), .all = {}};
  std::map<std::string, int64_t> newest;
  for (const std::string& name : *names) {
    const auto state = StateByName(name);
    if (only.empty() ? state.has_value() : name == only) {
      const FoundCheckpoint& own =
          found.all.emplace_back(ExamineAt(*parent, name, state.value_or(CheckpointState::Whole)));
      found.all.back().is_users = is_link || !state.has_value();
      if (own.state == CheckpointState::Whole) {
        int64_t& step = newest.emplace(own.manifest->run_id, -1).first->second;
        step = std::max(step, own.manifest->step);
      }
    }
  }
  if (found.all.empty()) {
    return refused();
  }
  for (FoundCheckpoint& own : found.all) {
    own.is_newest =
        only.empty() && own.state == CheckpointState::Whole && newest.at(own.manifest->run_id) == own.manifest->step;
  }
  return found;
}

}  // namespace shardc
