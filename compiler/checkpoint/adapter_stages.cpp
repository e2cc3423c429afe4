#include "compiler/checkpoint/adapter_stages.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "compiler/base/files.h"
#include "compiler/base/json_reader.h"
#include "compiler/checkpoint/merged_adapter.h"
#include "compiler/checkpoint/seed_contents.h"
#include "compiler/keys/plan_keys.h"
#include "compiler/plan/attempts.h"

namespace shardc {

namespace fs = std::filesystem;

/// Returns what a run put on record of its start; an error if nothing is there.
static auto RecordIn(const std::string& run_dir) -> ErrorOr<SeedContents> {
  FAIL_IF(run_dir.empty(), ExitCode::Checkpoint, "no record");
  ASSIGN_OR_RETURN(auto text, ReadFile(run_dir + "/" + SeedRecordName, MaxManifestBytes));
  return SeedContentsFromRecord(std::move(text));
}

/// Returns the folder of the recipe that a run was launched with last; empty if it is not on record.
static auto RecipeFolderOf(const std::string& run_dir) -> fs::path {
  const auto directory = OpenDirectory(PosixFs(), run_dir);
  const auto numbers = directory ? ListAttempts(*directory) : directory.error();
  if (!numbers || numbers->empty()) {
    return {};
  }
  const fs::path attempt = fs::path(run_dir) / AttemptsName / AttemptName(numbers->back());
  const auto text = ReadFile((attempt / AttemptFileName).string(), MaxAttemptBytes);
  const auto json = text ? ParseJson(*text, ExitCode::Checkpoint) : text.error();
  if (!json) {
    return {};
  }
  const auto asked = JsonReader(*json, ExitCode::Checkpoint).Object("asked");
  const auto recipe = asked && asked->Has("recipe") ? asked->String("recipe") : ErrorOr<std::string>("");
  return recipe ? fs::path(*recipe).parent_path() : fs::path();
}

/// Returns what start.first names in the recipe of a checkpoint; empty if it names nothing.
static auto StartOf(const Manifest& manifest) -> std::string {
  const auto first = ReadKeys(manifest.recipe).keys.start.first;
  return first ? first->seed.value_or(first->continued.value_or("")) : "";
}

/// Returns the directory of the run that a run began from: `start` names it, or a checkpoint in it.
static auto RunBefore(const std::string& run_dir, const std::string& start) -> std::string {
  std::error_code unknown;
  const fs::path path = RecipeFolderOf(run_dir) / start;
  return fs::exists(path / AttemptsName, unknown) ? path.string() : RunDirOfCheckpoint(path.string());
}

auto AdapterStagesOf(const std::string& checkpoint, const Manifest& manifest) -> AdapterStages {
  AdapterStages stages;
  std::string run_dir = RunDirOfCheckpoint(checkpoint);
  for (Manifest stage = manifest; HasAdapters(stage);) {
    const auto also = ReadKeys(stage.recipe).keys.adapter.train_also.value_or(std::vector<std::string>());
    std::ranges::copy_if(also, std::back_inserter(stages.train_also), [&](const std::string& glob) {
      return std::ranges::find(stages.train_also, glob) == stages.train_also.end();
    });
    if (stage.seed.digest.empty()) {
      break;
    }
    auto before = RecordIn(run_dir);
    if (!before || before->digest != stage.seed.digest) {
      // A base has no adapters.
      if (stage.base && stage.base->digest == stage.seed.digest) {
        stages.base = stage.base->path;
      } else {
        stages.lost = stage.run_id;
      }
      break;
    }
    const std::string start = StartOf(stage);
    if (before->manifest.published) {
      stages.base = start;
      stages.architecture = before->manifest.run_id;
      break;
    }
    run_dir = RunBefore(run_dir, start);
    stage = std::move(before->manifest);
  }
  return stages;
}

}  // namespace shardc
