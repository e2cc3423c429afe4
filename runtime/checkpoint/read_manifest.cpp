#include "runtime/checkpoint/read_manifest.h"

namespace shardc {

auto ReadManifestText(const Descriptor& directory) -> ErrorOr<std::string> {
  auto file = OpenFileAt(directory, ManifestName);
  auto bytes = file ? FileBytes(*file) : file.error();
  if (!bytes) {
    return Fail(ExitCode::Checkpoint, "{}", bytes.error().message);
  }
  if (*bytes > MaxManifestBytes) {
    return Fail(ExitCode::Checkpoint, "{} has {} bytes; at most {} are read", file->path(), *bytes, MaxManifestBytes);
  }
  std::string text(static_cast<size_t>(*bytes), '\0');
  RETURN_IF_ERROR(ReadAll(*file, text.data(), *bytes, 0));
  return text;
}

auto ManifestOf(const Descriptor& directory, std::string_view text) -> ErrorOr<Manifest> {
  auto manifest = ManifestFromText(text);
  if (!manifest) {
    return Fail(ExitCode::Checkpoint, "{}/{}: {}", directory.path(), ManifestName, manifest.error().message);
  }
  return manifest;
}

auto ReadManifest(const Descriptor& directory) -> ErrorOr<Manifest> {
  const auto text = ReadManifestText(directory);
  return text ? ManifestOf(directory, *text) : text.error();
}

}  // namespace shardc
