#include "runtime/checkpoint/find_newest.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>

#include "runtime/checkpoint/read_manifest.h"
#include "runtime/control/agree.h"

namespace shardc {

/// The folder of the checkpoints; none where it does not exist.
static auto OpenIfThere(Fs& fs, const std::string& dir) -> ErrorOr<std::optional<Descriptor>> {
  const int descriptor = fs.Open(AT_FDCWD, dir.c_str(), O_RDONLY | O_DIRECTORY, 0);
  if (descriptor >= 0) {
    return std::optional(Descriptor(fs, descriptor, dir));
  }
  const int code = errno;
  if (code == ENOENT) {
    return std::optional<Descriptor>();
  }
  return Fail(ExitCode::Checkpoint, "cannot open directory {}: {}", dir, std::strerror(code));
}

auto FindNewest(const std::string& dir, const std::string& run_id, Fs& fs) -> ErrorOr<std::optional<CheckpointInfo>> {
  ASSIGN_OR_RETURN(auto opened, OpenIfThere(fs, dir));
  if (!opened) {
    return std::optional<CheckpointInfo>();
  }
  const Descriptor parent = std::move(*opened);
  ASSIGN_OR_RETURN(auto names, ListDirectory(parent));

  std::optional<CheckpointInfo> newest;
  std::optional<CheckpointInfo> before;
  std::vector<std::string> skipped;
  for (const std::string& name : names) {
    if (!IsCheckpointName(name)) {
      continue;
    }
    // By its path: a checkpoint may be a link to a directory elsewhere, as it may where it is named.
    auto directory = OpenDirectory(fs, dir + "/" + name);
    auto manifest = directory ? ReadManifest(*directory) : directory.error();
    if (!manifest) {
      skipped.push_back(fmt::format("{}: {}", name, manifest.error().message));
    } else if (manifest->run_id != run_id) {
      skipped.push_back(fmt::format("{}: it belongs to run {}", name, manifest->run_id));
    } else if (CheckpointName(manifest->step) != name) {
      skipped.push_back(fmt::format("{}: its manifest is of step {}", name, manifest->step));
    } else {
      CheckpointInfo found{.path = dir + "/" + name, .step = manifest->step, .run_id = manifest->run_id};
      if (!newest || found.step > newest->step) {
        std::swap(newest, before);
        newest = std::move(found);
      } else if (!before || found.step > before->step) {
        before = std::move(found);
      }
    }
  }
  FAIL_IF(!newest && !skipped.empty(), ExitCode::Checkpoint,
          "{} holds no whole checkpoint of run {}, but: {}; to begin from scratch, move them away, or set "
          "`checkpoint.dir` to "
          "another folder",
          dir, run_id, fmt::join(skipped, "; "));
  if (newest) {
    newest->skipped = std::move(skipped);
    newest->before = before ? before->path : "";
  }
  return newest;
}

auto ChooseNewest(const std::string& dir, const std::string& run_id, RankControl& control, Fs& fs)
    -> ErrorOr<std::optional<CheckpointInfo>> {
  struct Choice {
    int64_t found = 0;
    int64_t step = 0;
  };
  Choice choice;
  std::optional<CheckpointInfo> newest;
  Status looked = Success{};
  if (control.rank() == 0) {
    auto found = FindNewest(dir, run_id, fs);
    if (!found) {
      looked = found.error();
    } else {
      newest = std::move(*found);
    }
    if (newest) {
      choice.found = 1;
      choice.step = newest->step;
    }
  }
  RETURN_IF_ERROR(FollowRankZero(control, looked));
  RETURN_IF_ERROR(control.Broadcast(AxisSet::All(), reinterpret_cast<std::byte*>(&choice), sizeof(choice)));
  if (control.rank() != 0 && choice.found != 0) {
    newest = CheckpointInfo{.path = dir + "/" + CheckpointName(choice.step), .step = choice.step, .run_id = run_id};
  }
  return newest;
}

}  // namespace shardc
