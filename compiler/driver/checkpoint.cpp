// shardc checkpoint: what is in a directory of checkpoints and in a checkpoint, whether its bytes are those that were
// saved, how far two are apart; and how checkpoints are removed.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <future>
#include <memory>

#include "compiler/base/mapped.h"
#include "compiler/base/printable.h"
#include "compiler/base/stopwatch.h"
#include "compiler/base/text/joined.h"
#include "compiler/base/text/json_text.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/units.h"
#include "compiler/checkpoint/compare_checkpoints.h"
#include "compiler/checkpoint/cover.h"
#include "compiler/checkpoint/find_checkpoints.h"
#include "compiler/checkpoint/find_damage.h"
#include "compiler/checkpoint/lease.h"
#include "compiler/checkpoint/pieces.h"
#include "compiler/data/scan_bar.h"
#include "compiler/diag/diagnostics.h"
#include "compiler/driver/checkpoint_path.h"
#include "compiler/driver/checkpoint_text.h"
#include "compiler/driver/command.h"
#include "compiler/driver/output.h"

namespace shardc {

namespace {

struct CheckpointOptions {
  std::string action;
  std::vector<std::string> paths;
  std::string format = "text";
  bool yes = false;

  auto as_json() const -> bool { return format == "json"; }
};

/// A checkpoint that was given, with its directory open.
struct GivenCheckpoint {
  std::string path;
  Manifest manifest;
  Descriptor directory;
};

/// A line on a terminal that shows how much of some bytes, or of other units, is done.
class ProgressLine {
 public:
  ProgressLine(std::string what, int64_t total) : what_(std::move(what)), total_(total) {}

  /// Shows the line again if it is a while since it was shown.
  auto Show(int64_t done) -> void {
    constexpr Seconds Pause{0.1};
    constexpr int64_t Width = 30;
    const Seconds now = watch_.Elapsed();
    if (total_ <= 0 || now < next_) {
      return;
    }
    next_ = now + Pause;
    const double share = static_cast<double>(done) / static_cast<double>(total_);
    const std::string filled(static_cast<size_t>(share * Width), '#');
    const std::string left = share > 0 ? fmt::format("{:.0f} s left", now.value / share - now.value) : "";
    bar_.Show(fmt::format("{} [{:<{}}] {:.0f} %  {}", what_, filled, Width, 100 * share, left));
  }

 private:
  std::string what_;
  int64_t total_;
  ScanBar bar_{stderr};
  Stopwatch watch_;
  Seconds next_;
};

}  // namespace

/// Opens a checkpoint, or the newest one of a run or a directory of checkpoints.
static auto GivenCheckpointAt(const std::string& path) -> ErrorOr<GivenCheckpoint> {
  GivenCheckpoint given{.path = CheckpointAt(path), .manifest = {}, .directory = {}};
  ASSIGN_OR_RETURN(given.manifest, ManifestAt(given.path));
  ASSIGN_OR_RETURN(given.directory, OpenDirectory(PosixFs(), given.path));
  return given;
}

static auto ListCheckpoints(const CheckpointOptions& options) -> Status {
  FoundCheckpoints found;
  for (const std::string& path : options.paths) {
    ASSIGN_OR_RETURN(auto more, FindCheckpoints(path));
    found.directory = std::move(more.directory);
    std::ranges::move(more.all, std::back_inserter(found.all));
  }
  const int64_t now_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  return WriteResult(options.as_json() ? ListAsJson(found.all, now_ns) : ListAsText(found.all, now_ns));
}

static auto ShowCheckpoint(const CheckpointOptions& options) -> Status {
  ASSIGN_OR_RETURN(const auto given, GivenCheckpointAt(options.paths.front()));
  return WriteResult(options.as_json() ? ShowAsJson(given.path, given.manifest)
                                       : ShowAsText(given.path, given.manifest));
}

static auto VerifyCheckpoint(const CheckpointOptions& options) -> Status {
  constexpr int NumThreads = 2;
  ASSIGN_OR_RETURN(const auto given, GivenCheckpointAt(options.paths.front()));
  FAIL_IF(given.manifest.published.has_value(), ExitCode::Checkpoint,
          "{} describes a model of Hugging Face, whose files are not beside it", given.path);
  RETURN_IF_ERROR(CheckCover(given.manifest));
  const int64_t total = BytesOfFiles(given.manifest) + BytesInBase(given.manifest);
  std::atomic<int64_t> bytes_read = 0;
  auto finding = std::async(std::launch::async, [&] {
    std::vector<Damage> found = FindDamage(given.directory, given.manifest, NumThreads, bytes_read);
    std::ranges::move(FindDamageOfBase(given.directory, given.manifest, bytes_read), std::back_inserter(found));
    return found;
  });
  {
    ProgressLine line(fmt::format("verify {}", FormatMemory(Bytes{total})), total);
    while (finding.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
      line.Show(bytes_read);
    }
  }
  const std::vector<Damage> damage = finding.get();
  RETURN_IF_ERROR(WriteResult(options.as_json() ? DamageAsJson(given.path, given.manifest, damage)
                                                : DamageAsText(given.path, given.manifest, damage)));
  FAIL_IF(!damage.empty() && given.manifest.base && damage.front().file == given.manifest.base->path,
          ExitCode::Checkpoint, "the base of {} is not as it was; put it back there: {}", given.path,
          given.manifest.base->path);
  FAIL_IF(!damage.empty(), ExitCode::Checkpoint,
          "{} is damaged; an earlier checkpoint may be whole: shardc checkpoint list {}", given.path,
          std::filesystem::path(given.path).has_parent_path() ? std::filesystem::path(given.path).parent_path().string()
                                                              : ".");
  return Success{};
}

static auto CompareTwo(const CheckpointOptions& options) -> ErrorOr<ExitCode> {
  ASSIGN_OR_RETURN(const auto a, GivenCheckpointAt(options.paths[0]));
  ASSIGN_OR_RETURN(const auto b, GivenCheckpointAt(options.paths[1]));
  RETURN_IF_ERROR(CheckCover(a.manifest));
  RETURN_IF_ERROR(CheckCover(b.manifest));
  int64_t total = 0;
  for (const auto& [name, tensor] : a.manifest.tensors) {
    total += NumElements(tensor.shape) * static_cast<int64_t>(RolesOf(a.manifest, tensor).size());
  }
  int64_t done = 0;
  ErrorOr<CheckpointComparison> compared = CheckpointComparison{};
  {
    ProgressLine line("compare", total);
    compared = CompareCheckpoints({&a.directory, &a.manifest}, {&b.directory, &b.manifest}, [&](int64_t more) {
      done += more;
      line.Show(done);
    });
  }
  if (!compared) {
    return compared.error();
  }
  const ComparedCheckpoints named{{a.path, &a.manifest}, {b.path, &b.manifest}};
  RETURN_IF_ERROR(
      WriteResult(options.as_json() ? ComparisonAsJson(named, *compared) : ComparisonAsText(named, *compared)));
  return IsSame(*compared) ? ExitCode::Ok : ExitCode::Differs;
}

/// Checks that a directory holds what saves write alone. Errors: it cannot be listed, or holds another file.
static auto CheckRemovable(const Descriptor& parent, const FoundCheckpoint& own) -> Status {
  const auto refused = [&](const std::string& why) {
    return Fail(ExitCode::Checkpoint, "{} is not removed: {}; nothing was removed", own.path, why);
  };
  const auto directory = OpenDirectoryAt(parent, own.name);
  const auto names = directory ? ListDirectory(*directory) : directory.error();
  if (!names) {
    return refused(names.error().message);
  }
  for (const std::string& name : *names) {
    const bool is_of_rank = name.starts_with("rank-") && (name.ends_with(".safetensors") || name.ends_with(".blocks"));
    const auto status = StatusAt(*directory, name);
    const bool is_ours = own.manifest && own.manifest->files.contains(name);
    if (!status || status->kind != EntryKind::File || !(is_of_rank || is_ours || name.starts_with(ManifestName))) {
      return refused(fmt::format("it holds {}, which no save wrote; move that away", PrintableLine(name)));
    }
  }
  return Success{};
}

/// Removes a checkpoint. First its name goes, at once; then its files: never is half a checkpoint found under a good
/// name.
static auto RemoveOne(const Descriptor& parent, const FoundCheckpoint& own, const std::string& tag) -> Status {
  std::string name = own.name;
  if (IsCheckpointName(own.name)) {
    name = fmt::format("{}.tmp-removed~{}", own.name, tag);
    RETURN_IF_ERROR(RenameAt(parent, own.name, name));
  }
  return RemoveDirectoryAt(parent, name);
}

/// Removes checkpoints of one directory, as its owner: no launch saves into it or reads it meanwhile.
static auto RemoveAll(const FoundCheckpoints& found) -> Status {
  LeaseOptions lease_options;
  lease_options.what = "checkpoint directory";
  lease_options.note = [](const std::string& text) { std::fprintf(stderr, "note: %s\n", PrintableLine(text).c_str()); };
  ASSIGN_OR_RETURN(const auto lease, Lease::Acquire(found.directory, "removed", std::move(lease_options)));
  ASSIGN_OR_RETURN(const auto parent, OpenDirectory(PosixFs(), found.directory));
  constexpr size_t TagDigits = 8;
  for (const FoundCheckpoint& own : found.all) {
    RETURN_IF_ERROR(CheckRemovable(parent, own));
  }
  for (const FoundCheckpoint& own : found.all) {
    RETURN_IF_ERROR(lease->Check());
    RETURN_IF_ERROR(RemoveOne(parent, own, lease->token().substr(0, TagDigits)));
  }
  return Success{};
}

static auto RemoveCheckpoints(const CheckpointOptions& options) -> Status {
  std::vector<FoundCheckpoints> all;
  std::vector<std::string> lines;
  int64_t bytes = 0;
  for (const std::string& path : options.paths) {
    ASSIGN_OR_RETURN(auto found, FindCheckpoints(path));
    for (const FoundCheckpoint& own : found.all) {
      FAIL_IF(
          own.is_users, ExitCode::Usage,
          "{} is not removed: no save gives such a name, so that it is a copy or a link of yours; nothing was removed",
          path);
      lines.push_back(fmt::format("{}  {}", PrintableLine(own.path), FormatMemory(Bytes{own.bytes})));
      bytes += own.bytes;
    }
    all.push_back(std::move(found));
  }
  const std::string sum = fmt::format("{}, {}", Counted(std::ssize(lines), "checkpoint"), FormatMemory(Bytes{bytes}));
  if (!options.yes) {
    RETURN_IF_ERROR(WriteResult(fmt::format("would remove:\n  {}\n", fmt::join(lines, "\n  "))));
    return Fail(ExitCode::Usage, "nothing was removed; to remove {}, add --yes", sum);
  }
  for (const FoundCheckpoints& found : all) {
    RETURN_IF_ERROR(RemoveAll(found));
  }
  return WriteResult(fmt::format("removed {}:\n  {}\n", sum, fmt::join(lines, "\n  ")));
}

static auto RunAction(const CheckpointOptions& options) -> ErrorOr<ExitCode> {
  struct ActionRow {
    std::string_view name;
    size_t least;
    size_t most;
    auto(*act)(const CheckpointOptions& options) -> Status;
  };
  constexpr size_t Any = SIZE_MAX;
  static constexpr ActionRow Rows[] = {{"list", 1, Any, ListCheckpoints},
                                       {"show", 1, 1, ShowCheckpoint},
                                       {"verify", 1, 1, VerifyCheckpoint},
                                       {"diff", 2, 2, nullptr},
                                       {"remove", 1, Any, RemoveCheckpoints}};
  const auto* const row = std::ranges::find(Rows, options.action, &ActionRow::name);
  if (row == std::end(Rows)) {
    const auto names = Mapped<std::string_view>(Rows, &ActionRow::name);
    const std::string closest = ClosestWord(options.action, names);
    return Fail(ExitCode::Usage, "`{}` is none of {}{}", options.action, fmt::join(names, ", "),
                closest.empty() ? "" : fmt::format("; did you mean `{}`?", closest));
  }
  FAIL_IF(options.paths.size() < row->least || options.paths.size() > row->most, ExitCode::Usage,
          "`{}` takes {}, and {} given", row->name, row->least == 1 ? "one RUN_OR_DIR" : "two: RUN_OR_DIR RUN_OR_DIR",
          options.paths.size() == 1 ? "one is" : fmt::format("{} are", options.paths.size()));
  FAIL_IF(options.yes && row->name != "remove", ExitCode::Usage, "--yes is for remove alone");
  FAIL_IF(options.as_json() && row->name == "remove", ExitCode::Usage, "remove has no --format json");
  if (row->act == nullptr) {
    return CompareTwo(options);
  }
  RETURN_IF_ERROR(row->act(options));
  return ExitCode::Ok;
}

auto DeclareCheckpoint(CommandOptions& options) -> Action {
  const auto values = std::make_shared<CheckpointOptions>();
  options.Positional("list|show|verify|diff|remove", values->action, "what to do");
  options.Positionals("RUN_OR_DIR", values->paths,
                      "a checkpoint; or a run directory, or a directory of checkpoints, of which `show`, `verify` and "
                      "`diff` take the newest, `list` and `remove` all");
  options.Choice("--format", values->format, {"text", "json"}, "format of the result");
  options.Flag("--yes", values->yes, "remove what `remove` says; without it nothing is removed");
  return [values] {
    const auto done = RunAction(*values);
    return done ? *done : ReportError(done.error());
  };
}

}  // namespace shardc
