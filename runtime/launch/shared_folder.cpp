#include "runtime/launch/shared_folder.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "compiler/base/files.h"
#include "compiler/base/fs.h"
#include "compiler/base/stopwatch.h"
#include "runtime/record/run_directory.h"

namespace shardc {

auto LongestVisible(const Meeting& meeting, Seconds longest) -> Seconds {
  return Seconds{std::min(longest.value, meeting.timeout().value / 2)};
}

/// Returns the name of a host's probe. `launch`: a number that no other launch has, since two may probe one folder at
/// once.
static auto ProbeName(const std::string& launch, int64_t host) -> std::string {
  return fmt::format("probe.{}.host{}", launch, host);
}

static auto WriteProbe(const Meeting& meeting, const SharedFolder& folder, const std::string& launch) -> Status {
  const std::string name = ProbeName(launch, meeting.place().host());
  const auto write = [&]() -> Status {
    ASSIGN_OR_RETURN(const auto directory, RunDirectory::Open(folder.path));
    // As a temporary file that is synced and renamed.
    RETURN_IF_ERROR(PutFileAt(directory.folder(), name, launch));
    ASSIGN_OR_RETURN(const auto read, ReadFileAt(directory.folder(), name, 4096));
    return read == launch ? Status(Success{}) : Fail(ExitCode::Environment, "it reads another text than it wrote");
  };
  const Status written = write();
  return written ? written
                 : Fail(written.error().code, "{} cannot write a file {}/{}: {}", meeting.host_name(), folder.path,
                        name, written.error().message);
}

/// Waits until this process sees what the first host has written.
static auto AwaitProbe(const SharedFolder& folder, const std::string& launch) -> ErrorOr<Seconds> {
  const std::string name = ProbeName(launch, 0);
  const Stopwatch watch;
  std::string why;
  do {
    const auto directory = RunDirectory::Open(folder.path);
    const auto read = directory ? ReadFileAt(directory->folder(), name, 4096) : ErrorOr<std::string>(directory.error());
    if (read && *read == launch) {
      return watch.Elapsed();
    }
    why = read ? "it holds another text" : read.error().message;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (watch.Elapsed() < folder.longest_visible);
  return Fail(
      ExitCode::Environment,
      "the file {}/{} that process 0 has written does not show within {:g} s: {}; the {} has to be one that all "
      "processes share",
      folder.path, name, folder.longest_visible.value, why, folder.what);
}

auto ProbeSharedFolder(Meeting& meeting, const SharedFolder& folder, std::optional<Seconds>& seen) -> Status {
  const bool writes = meeting.is_first_of_host();
  const std::string key = "probe/" + folder.what;
  ASSIGN_OR_RETURN(const auto texts,
                   meeting.Gather(key, meeting.is_first() ? fmt::format("{:08x}", std::random_device()()) : ""));
  const std::string& launch = texts.front();
  Status all = meeting.Agree(key + "/written", writes ? WriteProbe(meeting, folder, launch) : Status(Success{}));
  if (all) {
    // Processes of one host may see different file systems at one path.
    const auto time = AwaitProbe(folder, launch);
    seen = time ? std::optional(*time) : std::nullopt;
    all = meeting.Agree(key + "/seen", time ? Status(Success{}) : time.error());
  }
  if (writes) {
    unlink(fmt::format("{}/{}", folder.path, ProbeName(launch, meeting.place().host())).c_str());
  }
  return all;
}

}  // namespace shardc
