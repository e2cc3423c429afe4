// A file that holds one input at a time, for readers that take files. One a process, in memory where there is /dev/shm.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "compiler/base/check.h"

namespace shardc {

/// Its path. The file is left to the folder of temporary files, which a crash would leave it to anyway.
inline auto ScratchFileOf(const uint8_t* data, size_t size) -> const std::string& {
  static const std::string path =
      (std::filesystem::is_directory("/dev/shm") ? std::string("/dev/shm") : std::string("/tmp")) + "/shardc-fuzz-" +
      std::to_string(getpid());
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  CHECK(file >= 0 && write(file, data, size) == static_cast<ssize_t>(size), "{}", path);
  close(file);
  return path;
}

}  // namespace shardc
