#include "runtime/checkpoint/leftovers.h"

#include "compiler/checkpoint/manifest.h"

namespace shardc {

auto FreeNameAt(const Descriptor& parent, const std::string& name) -> ErrorOr<std::string> {
  for (int number = 1;; ++number) {
    std::string free = fmt::format("{}-{}", name, number);
    ASSIGN_OR_RETURN(const auto status, StatusAt(parent, free));
    if (status.kind == EntryKind::Missing) {
      return free;
    }
  }
}

static auto HoldsDirectories(const Descriptor& parent, const std::string& name) -> ErrorOr<bool> {
  const auto directory = OpenDirectoryAt(parent, name);
  ASSIGN_OR_RETURN(const auto names, directory ? ListDirectory(*directory) : directory.error());
  for (const std::string& entry : names) {
    ASSIGN_OR_RETURN(const auto status, StatusAt(*directory, entry));
    if (status.kind == EntryKind::Directory) {
      return true;
    }
  }
  return false;
}

auto ClearTemporary(const Descriptor& parent, const std::string& name) -> ErrorOr<std::string> {
  ASSIGN_OR_RETURN(const auto status, StatusAt(parent, name));
  const std::string path = parent.path() + "/" + name;
  switch (status.kind) {
    case EntryKind::Missing: return std::string();
    case EntryKind::File:
    case EntryKind::Other:
      RETURN_IF_ERROR(RemoveAt(parent, name));
      return fmt::format("{} bore the name of a save under way and was no directory; it was removed", path);
    case EntryKind::Directory: break;
  }
  ASSIGN_OR_RETURN(const auto is_strange, HoldsDirectories(parent, name));
  if (!is_strange) {
    RETURN_IF_ERROR(RemoveDirectoryAt(parent, name));
    return std::string();
  }
  ASSIGN_OR_RETURN(const auto aside, FreeNameAt(parent, name + ".stray"));
  RETURN_IF_ERROR(RenameAt(parent, name, aside));
  return fmt::format(
      "{} bore the name of a save under way and holds directories, which no save makes; it was moved to {}", path,
      aside);
}

auto RemoveAbandoned(const std::string& dir, const std::string& run_id, Fs& fs) -> std::vector<std::string> {
  const auto parent = OpenDirectory(fs, dir);
  const auto names = parent ? ListDirectory(*parent) : parent.error();
  if (!names) {
    return {names.error().message};
  }
  std::vector<std::string> warnings;
  for (const std::string& name : *names) {
    if (!IsTemporaryName(name, run_id)) {
      continue;
    }
    const auto cleared = ClearTemporary(*parent, name);
    if (!cleared) {
      warnings.push_back(fmt::format("what a save left was not removed: {}", cleared.error().message));
    } else if (!cleared->empty()) {
      warnings.push_back(*cleared);
    }
  }
  return warnings;
}

}  // namespace shardc
