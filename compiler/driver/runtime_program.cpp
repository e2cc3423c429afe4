// exec of the program beside this one.

#include "compiler/driver/runtime_program.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "compiler/base/check.h"
#include "compiler/base/child_output.h"
#include "compiler/base/files.h"
#include "compiler/base/fs.h"
#include "compiler/base/mapped.h"
#include "compiler/base/timeout.h"

namespace shardc {

static auto ProgramFor(DeviceFamily family) -> std::string_view {
  switch (family) {
    case DeviceFamily::Cpu: return "shardc-run";
    case DeviceFamily::Cuda: return "shardc-run-cuda";
  }
  CHECK(false, "a device of no family");
}

/// Returns the text that the loader prints about the libraries of a program that it does not start, often empty.
static auto LibrariesText(const std::string& program) -> std::string {
  const auto output = ReadChild([&](int pipe) {
    dup2(pipe, STDOUT_FILENO);
    setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
    execl(program.c_str(), program.c_str(), nullptr);
    return 1;
  });
  return output ? output->text : "";
}

/// Errors: Environment, with the libraries that the loader does not find. It ends a program without them before that
/// can say what to do.
static auto CheckLibraries(const std::string& program) -> Status {
  const std::string text = LibrariesText(program);
  std::string missing;
  for (size_t at = 0; (at = text.find(" => not found", at)) != std::string::npos; ++at) {
    const size_t begin = text.rfind('\t', at) + 1;
    missing += (missing.empty() ? "" : ", ") + text.substr(begin, at - begin);
  }
  return missing.empty() ? Status(Success{})
                         : Fail(ExitCode::Environment,
                                "{} needs libraries that are not found: {}; install CUDA 13 with cuDNN 9, or set "
                                "LD_LIBRARY_PATH to where PyTorch has them (docs/gpu.md)",
                                std::filesystem::path(program).filename().string(), missing);
}

auto BecomeRuntime(const std::vector<std::string>& arguments, Device device) -> Error {
  // LibTorch would not load, and end the program in words of its own.
  if (const Status there = CheckWorkingDirectory(); !there) {
    return there.error();
  }
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  FAIL_IF(error, ExitCode::Environment, "cannot tell where shardc lies: /proc/self/exe: {}", error.message());
  const DeviceFamily family = FactsOf(device).family;
  const std::string program = (self.parent_path() / ProgramFor(family)).string();
  if (family != DeviceFamily::Cpu) {
    if (const Status found = CheckLibraries(program); !found) {
      return found.error();
    }
  }
  std::vector<std::string> texts{program};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  auto argv = Mapped<char*>(texts, [](std::string& text) { return text.data(); });
  argv.push_back(nullptr);
  std::fflush(nullptr);
  execv(program.c_str(), argv.data());
  const int why = errno;
  FAIL_IF(family != DeviceFamily::Cpu && why == ENOENT, ExitCode::Environment,
          "the plan is for {}, and this build has no {}, which `tools/dev build --cuda` makes beside shardc",
          ToText(device), ProgramFor(family));
  return Fail(ExitCode::Environment, "cannot start {}: {}; shardc and {} lie in one folder", program,
              std::strerror(why), ProgramFor(family));
}

auto TextInMemory(std::string_view text) -> ErrorOr<std::string> {
  // Stays open over exec: no MFD_CLOEXEC.
  const int fd = memfd_create("shardc", 0);
  FAIL_IF(fd < 0, ExitCode::Environment, "cannot make a file in memory: {}", std::strerror(errno));
  Descriptor file(PosixFs(), fd, "a file in memory");
  RETURN_IF_ERROR(AppendAll(file, text));
  return fmt::format("/proc/self/fd/{}", file.Release());
}

auto PathForRuntime(const std::string& path, std::string_view text) -> ErrorOr<std::string> {
  std::error_code unknown;
  return std::filesystem::is_regular_file(path, unknown) ? ErrorOr<std::string>(path) : TextInMemory(text);
}

}  // namespace shardc
