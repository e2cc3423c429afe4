// Judges by names alone: no file is opened.
#include "compiler/checkpoint/what_lies_there.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <vector>

#include "compiler/base/text/joined.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/checkpoint/published_config.h"
#include "compiler/diag/diagnostics.h"
#include "compiler/plan/attempts.h"

namespace shardc {

namespace fs = std::filesystem;

static constexpr const char* OfAdapter =
    "it is an adapter, which is no whole model; to train it on, name its model by `seed` in start.first and its folder "
    "by `adapter`, or merge both (merge_and_unload() and save_pretrained() of the package peft) and name the folder of "
    "that";
static constexpr const char* OfGguf =
    "it is GGUF, which is not read; take the model as transformers saves it, in safetensors, and name its folder";
static constexpr const char* OfTorch =
    "it is a distributed checkpoint of PyTorch (.metadata), which is not read; write a recipe of its model, and make "
    "a checkpoint for that by tools/import_checkpoint.py (docs/coming_from_torchtitan.md)";
static constexpr const char* AdapterConfigName = "adapter_config.json";

static auto Has(const fs::path& folder, const char* name) -> bool {
  std::error_code unknown;
  return fs::exists(folder / name, unknown);
}

/// Returns the paths in a folder for which a judge says true, in the order of their names.
template <class Judge>
static auto EntriesIn(const fs::path& folder, const Judge& judge) -> std::vector<std::string> {
  std::vector<std::string> entries;
  std::error_code unknown;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, unknown)) {
    const fs::path path = folder / entry.path().filename();
    if (judge(path)) {
      entries.push_back(path.string());
    }
  }
  std::ranges::sort(entries);
  return entries;
}

static auto HasEnding(const fs::path& folder, std::string_view ending) -> bool {
  return !EntriesIn(folder, [&](const fs::path& path) { return path.extension() == ending; }).empty();
}

static auto IsRun(const fs::path& path) -> bool { return Has(path, AttemptsName); }

auto NewestBelow(const std::string& path, bool or_broken) -> std::string {
  std::string newest;
  for (const fs::path& folder : {fs::path(path), fs::path(path) / "checkpoints"}) {
    // Numbers have leading zeros. Folders with other names are being written, were replaced or are damaged.
    const auto checkpoints = EntriesIn(folder, [&](const fs::path& own) {
      return IsCheckpointName(own.filename().string()) && (or_broken || Has(own, ManifestName));
    });
    newest = checkpoints.empty() ? newest : std::max(newest, checkpoints.back());
  }
  return newest;
}

auto RunOfAttempt(const std::string& path) -> std::string {
  std::error_code unknown;
  const fs::path attempts = fs::absolute(path, unknown).parent_path().parent_path();
  if (attempts.filename() != AttemptsName) {
    return "";
  }
  const fs::path run = fs::path(path).parent_path().parent_path().parent_path();
  return run.empty() ? attempts.parent_path() : run;
}

auto NearestNote(const std::string& text) -> std::string {
  const fs::path given(text);
  const fs::path path = given.has_filename() ? given : given.parent_path();
  const fs::path folder = path.parent_path();
  std::vector<std::string> names = EntriesIn(folder, [](const fs::path&) { return true; });
  std::ranges::transform(names, names.begin(), [](const std::string& own) { return fs::path(own).filename(); });
  if (const std::string nearest = ClosestWord(path.filename().string(), {names.begin(), names.end()});
      !nearest.empty()) {
    return fmt::format("; the nearest name is {}", (folder / nearest).string());
  }
  const std::vector<std::string> runs = EntriesIn(folder, IsRun);
  constexpr size_t Most = 5;
  return runs.empty() ? ""
                      : fmt::format("; the run{} there {} {}", runs.size() == 1 ? "" : "s",
                                    runs.size() == 1 ? "is" : "are", Listed(runs, Most));
}

/// Returns true for "some-org/Some-Model-1B", if it is in no folder that there is.
static auto IsNameOfHub(const std::string& path) -> bool {
  std::error_code unknown;
  return std::ranges::count(path, '/') == 1 && !path.starts_with('.') && !path.starts_with('/') &&
         !path.ends_with('/') && !fs::exists(fs::path(path).parent_path(), unknown) &&
         std::ranges::all_of(path, [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '/' || c == '-' || c == '_' || c == '.';
         });
}

static auto WhatLiesAtFile(const fs::path& file) -> std::string {
  std::error_code unknown;
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (!fs::is_regular_file(file, unknown)) {
    return fmt::format("it is a {}; name a folder", fs::is_fifo(file, unknown) ? "FIFO" : "device or socket");
  }
  if (file.extension() == ".gguf") {
    return OfGguf;
  }
  if (Has(folder, AdapterConfigName)) {
    return OfAdapter;
  }
  if (Has(folder, ConfigName) && (HasEnding(folder, ".safetensors") || HasEnding(folder, ".bin"))) {
    return fmt::format("it is a file of a model; name its folder, {}", folder.string());
  }
  if (Has(folder, ManifestName)) {
    return fmt::format("it is a file of a checkpoint; name its folder, {}", folder.string());
  }
  if (const std::string run = RunOfAttempt(file.string()); !run.empty()) {
    return fmt::format("it is of the record of a launch; name its run, {}", run);
  }
  return file.extension() == ".safetensors"
             ? "it is a file without the config.json of its model; put both into a folder, and name that"
             : "it is a file; name a folder: a checkpoint, the directory of a run, or a model of Hugging Face";
}

auto WhatLiesAt(const std::string& text) -> std::string {
  std::error_code unknown;
  const fs::path given(text);
  const fs::path path = given.has_filename() ? given : given.parent_path();
  if (!fs::exists(path, unknown)) {
    const std::string nearest = NearestNote(text);
    return "there is no such folder" +
           (!nearest.empty() || !IsNameOfHub(text)
                ? nearest
                : fmt::format("; if it is a name of the hub, `hf download {0} --local-dir {1}` makes the folder {1}",
                              text, path.filename().string()));
  }
  if (!fs::is_directory(path, unknown)) {
    return WhatLiesAtFile(path);
  }
  if (const std::string newest = NewestBelow(path.string()); !newest.empty()) {
    return fmt::format("it has checkpoints of a run; name one of them, such as {}", newest);
  }
  if (IsRun(path)) {
    return "it is the directory of a run that has saved no checkpoint in it; train it on, with checkpoint.every in its "
           "recipe";
  }
  if (const auto runs = EntriesIn(path, IsRun); !runs.empty()) {
    return fmt::format("it has runs; name one of them, such as {}", runs.back());
  }
  if (Has(path, ".metadata")) {
    return OfTorch;
  }
  if (Has(path, AdapterConfigName)) {
    return OfAdapter;
  }
  if (HasEnding(path, ".gguf")) {
    return OfGguf;
  }
  if (Has(path, ConfigName)) {
    return fmt::format("it is a model of Hugging Face; start a run from it: --set 'start.first={{ seed = \"{}\" }}'",
                       text);
  }
  if (const std::string run = RunOfAttempt(path / AttemptFileName); !run.empty()) {
    return fmt::format("it is the record of a launch; name its run, {}", run);
  }
  return fmt::format("it has neither {} nor {}; name a checkpoint, the directory of a run, or a model of Hugging Face",
                     ManifestName, ConfigName);
}

}  // namespace shardc
