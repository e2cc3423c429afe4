#include "runtime/checkpoint/read_manifest.h"

#include "compiler/base/files.h"

namespace shardc {

auto ReadManifestText(const Descriptor& directory) -> ErrorOr<std::string> {
  auto text = ReadFileAt(directory, ManifestName, MaxManifestBytes);
  FAIL_IF(!text, ExitCode::Checkpoint, "{}", text.error().message);
  return text;
}

auto ManifestOf(const Descriptor& directory, std::string_view text) -> ErrorOr<Manifest> {
  auto manifest = ManifestFromText(text);
  FAIL_IF(!manifest, ExitCode::Checkpoint, "{}/{}: {}", directory.path(), ManifestName, manifest.error().message);
  return manifest;
}

auto ReadManifest(const Descriptor& directory) -> ErrorOr<Manifest> {
  const auto text = ReadManifestText(directory);
  return text ? ManifestOf(directory, *text) : text.error();
}

}  // namespace shardc
