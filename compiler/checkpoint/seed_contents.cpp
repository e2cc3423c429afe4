#include "compiler/checkpoint/seed_contents.h"

#include <filesystem>

#include "compiler/base/files.h"
#include "compiler/checkpoint/cover.h"
#include "compiler/checkpoint/published_config.h"
#include "compiler/checkpoint/published_model.h"

namespace shardc {

auto HoldsSeed(const Descriptor& directory) -> bool {
  return HasEntry(directory, ManifestName) || HasEntry(directory, ConfigName);
}

auto ReadSeedContents(const Descriptor& directory) -> ErrorOr<SeedContents> {
  if (!HasEntry(directory, ManifestName) && HasEntry(directory, ConfigName)) {
    ASSIGN_OR_RETURN(auto manifest, ReadPublishedModel(directory));
    std::string text = ToText(manifest);
    std::string digest = DigestInManifest(text);
    return SeedContents{std::move(manifest), std::move(text), std::move(digest)};
  }
  auto text = ReadFileAt(directory, ManifestName, MaxManifestBytes);
  FAIL_IF(!text, ExitCode::Checkpoint, "{}", text.error().message);
  auto contents = SeedContentsFromRecord(*std::move(text));
  return contents ? contents
                  : Fail(ExitCode::Checkpoint, "{}/{}: {}", directory.path(), ManifestName, contents.error().message);
}

auto RunDirOfCheckpoint(const std::string& checkpoint) -> std::string {
  if (checkpoint.empty()) {
    return "";
  }
  std::error_code unknown;
  const auto folder = std::filesystem::weakly_canonical(checkpoint, unknown).parent_path().parent_path();
  return !unknown && std::filesystem::exists(folder / SeedRecordName, unknown) ? folder.string() : "";
}

auto SeedOfCheckpoint(const std::string& checkpoint) -> std::optional<Manifest> {
  const std::string run_dir = RunDirOfCheckpoint(checkpoint);
  auto record = run_dir.empty() ? Fail(ExitCode::Checkpoint, "no record")
                                : ReadFile(run_dir + "/" + SeedRecordName, MaxManifestBytes);
  auto seed = record ? SeedContentsFromRecord(*std::move(record)) : record.error();
  return seed ? std::optional(std::move(seed->manifest)) : std::nullopt;
}

auto SeedContentsFromRecord(std::string text) -> ErrorOr<SeedContents> {
  ASSIGN_OR_RETURN(auto manifest, ManifestFromText(text));
  RETURN_IF_ERROR(CheckCover(manifest));
  SeedContents contents{std::move(manifest), std::move(text), ""};
  contents.digest = DigestInManifest(contents.text);
  if (contents.manifest.published) {
    // A start's notes of its reading are no part of the seed.
    Manifest unread = contents.manifest;
    unread.published->digest_read.clear();
    contents.digest = DigestInManifest(ToText(unread));
  }
  return contents;
}

}  // namespace shardc
