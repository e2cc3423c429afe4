#include "runtime/launch/shared_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "compiler/base/units.h"

namespace shardc {

auto MakeSharedFile(int64_t bytes) -> ErrorOr<Descriptor> {
  const int file = memfd_create("shardc", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, bytes) != 0) {
    const int error = errno;
    close(file);
    return Fail(ExitCode::DoesNotFit, "cannot make {} of memory that the ranks of this host share: {}",
                FormatMemory(Bytes{bytes}), std::strerror(error));
  }
  return Descriptor(PosixFs(), file, "shared memory");
}

auto NameOfSharedFile(const Descriptor& file) -> std::string {
  return fmt::format("/proc/{}/fd/{}", getpid(), file.get());
}

auto OpenSharedFile(const std::string& name) -> ErrorOr<Descriptor> {
  const int file = open(name.c_str(), O_RDWR | O_CLOEXEC);
  FAIL_IF(file < 0, ExitCode::Environment,
          "cannot open {}, the memory that the first process of this host shares: {}; the processes of one host "
          "need one user and one view of /proc (one container)",
          name, std::strerror(errno));
  return Descriptor(PosixFs(), file, "shared memory");
}

}  // namespace shardc
