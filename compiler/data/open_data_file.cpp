#include "compiler/data/open_data_file.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace shardc {

auto IsMissing(const std::string& path) -> bool {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  return status.type() == std::filesystem::file_type::not_found;
}

/// Returns the name to write for a path that leads nowhere, or where it was looked for.
static auto FolderNote(const std::string& path, const FilePurpose& purpose) -> std::string {
  // Megatron-LM names a dataset without its ending.
  const std::string with_ending = path + ".bin";
  if (!IsMissing(with_ending)) {
    return fmt::format("; write {} in `{}`, which is there", std::filesystem::path(with_ending).filename().string(),
                       purpose.key);
  }
  if (std::filesystem::path(path).is_absolute()) {
    return fmt::format("; `{}` is relative to the recipe's folder", purpose.key);
  }
  std::error_code unknown;
  const std::string whole = std::filesystem::absolute(path, unknown).lexically_normal().string();
  return unknown ? "; the current folder cannot be read" : fmt::format("; looked for at {}", whole);
}

auto OpenDataFile(const std::string& path, const FilePurpose& purpose) -> ErrorOr<Descriptor> {
  // O_NONBLOCK: a FIFO opens at once, and is refused below.
  const int number = PosixFs().Open(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK, 0);
  if (number < 0) {
    const int code = errno;
    return Fail(ExitCode::RecipeRejected, "{} file {}: {}{}", purpose.noun, path, std::strerror(code),
                code == ENOENT || code == ENOTDIR ? FolderNote(path, purpose) : "");
  }
  Descriptor descriptor(PosixFs(), number, path);
  const auto status = StatusOf(descriptor);
  FAIL_IF(!status, ExitCode::RecipeRejected, "{} file: {}", purpose.noun, status.error().message);
  FAIL_IF(status->kind != EntryKind::File, ExitCode::RecipeRejected, "{} file {} is {}, not a regular file",
          purpose.noun, path, status->kind == EntryKind::Directory ? "a folder" : "a device or pipe");
  return descriptor;
}

auto OfSource(const std::string& name) -> std::string { return name.empty() ? "" : fmt::format("source {}: ", name); }

}  // namespace shardc
