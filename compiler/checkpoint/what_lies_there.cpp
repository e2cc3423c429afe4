#include "compiler/checkpoint/what_lies_there.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "compiler/checkpoint/manifest.h"
#include "compiler/checkpoint/published_config.h"
#include "compiler/diag/diagnostics.h"
#include "compiler/plan/attempts.h"

namespace shardc {

auto NewestBelow(const std::string& path) -> std::string {
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

/// Returns the path beside this one whose name is nearest to its own; an empty text if none is alike.
static auto NearestPath(const std::filesystem::path& path) -> std::string {
  std::error_code unknown;
  std::vector<std::string> names;
  const auto parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  for (const auto& entry : std::filesystem::directory_iterator(parent, unknown)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  const std::string nearest = ClosestWord(path.filename().string(), {names.begin(), names.end()});
  return nearest.empty() ? "" : (path.parent_path() / nearest).string();
}

auto WhatLiesAt(const std::string& text) -> std::string {
  std::error_code unknown;
  const std::filesystem::path given(text);
  const std::filesystem::path path = given.has_filename() ? given : given.parent_path();
  const auto has = [&](const char* name) { return std::filesystem::exists(path / name, unknown); };
  if (!std::filesystem::exists(path, unknown)) {
    const std::string nearest = NearestPath(path);
    return nearest.empty() ? std::string("there is no such folder")
                           : fmt::format("there is no such folder; the nearest name is {}", nearest);
  }
  if (!std::filesystem::is_directory(path, unknown)) {
    return fmt::format("it is a file; name the folder that has it, {}",
                       path.has_parent_path() ? path.parent_path().string() : ".");
  }
  if (const std::string newest = NewestBelow(path.string()); !newest.empty()) {
    return fmt::format("it has checkpoints of a run; name one of them, such as {}", newest);
  }
  if (has(AttemptsName)) {
    return "it is the directory of a run that has saved no checkpoint in it";
  }
  if (has(".metadata")) {
    return "it is a distributed checkpoint of PyTorch (.metadata), which is not read; write it as a model of Hugging "
           "Face first (safetensors and config.json), in torchtitan by scripts/checkpoint_conversion/convert_to_hf.py";
  }
  if (has(ConfigName)) {
    return fmt::format("it is a model of Hugging Face; start a run from it: --set 'start.first={{ seed = \"{}\" }}'",
                       text);
  }
  return fmt::format("it has neither {} nor {}", ManifestName, ConfigName);
}

}  // namespace shardc
