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
#include "compiler/base/files.h"
#include "compiler/base/fs.h"
#include "compiler/base/timeout.h"
#include "compiler/cluster/guard.h"

namespace shardc {

static auto ProgramFor(DeviceFamily family) -> std::string_view {
  switch (family) {
    case DeviceFamily::Cpu: return "shardc-run";
    case DeviceFamily::Cuda: return "shardc-run-cuda";
  }
  CHECK(false, "a device of no family");
}

auto BecomeRuntime(const std::vector<std::string>& arguments, Device device) -> Error {
  // LibTorch would not load, and end the program in words of its own.
  if (const Status there = CheckWorkingDirectory(); !there) {
    return there.error();
  }
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) {
    return Fail(ExitCode::Environment, "cannot tell where shardc lies: /proc/self/exe: {}", error.message());
  }
  const DeviceFamily family = FactsOf(device).family;
  const std::string program = (self.parent_path() / ProgramFor(family)).string();
  std::vector<std::string> texts{program};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  if (StartGuard(std::getenv, DefaultTimeout)) {
    texts.emplace_back("--is-guarded");
  }
  std::vector<char*> argv;
  for (std::string& text : texts) {
    argv.push_back(text.data());
  }
  argv.push_back(nullptr);
  std::fflush(nullptr);
  execv(program.c_str(), argv.data());
  const std::string why = std::strerror(errno);
  if (family != DeviceFamily::Cpu && errno == ENOENT) {
    return Fail(ExitCode::Environment,
                "the plan is for {}, and this build has no {}, which `tools/dev build --cuda` makes beside shardc",
                ToText(device), ProgramFor(family));
  }
  return Fail(ExitCode::Environment, "cannot start {}: {}; shardc and {} lie in one folder", program, why,
              ProgramFor(family));
}

auto TextInMemory(std::string_view text) -> ErrorOr<std::string> {
  // Stays open over exec: no MFD_CLOEXEC.
  const int fd = memfd_create("shardc", 0);
  if (fd < 0) {
    return Fail(ExitCode::Environment, "cannot make a file in memory: {}", std::strerror(errno));
  }
  Descriptor file(PosixFs(), fd, "a file in memory");
  RETURN_IF_ERROR(AppendAll(file, text));
  return fmt::format("/proc/self/fd/{}", file.Release());
}

auto PathForRuntime(const std::string& path, std::string_view text) -> ErrorOr<std::string> {
  std::error_code unknown;
  return std::filesystem::is_regular_file(path, unknown) ? ErrorOr<std::string>(path) : TextInMemory(text);
}

}  // namespace shardc
