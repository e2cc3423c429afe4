// One launch that trains, on record: a folder attempts/NNNN of the run directory, which no later launch touches.
//
//   recipe.toml    the recipe as it was asked for; not of a launch from a plan file
//   resolved.toml  every key of it with its value, defaults and `--set` texts put in
//   plan.shardc    the plan that runs
//   attempt.json   who, where, when, with what, what it began from, how it ended
//   log.txt        what launcher and ranks say on stderr
//
// The launcher makes it before it forks, so that all ranks write to one log, and puts the end on record when the last
// rank has ended: it knows the exit code and the first error even where rank 0 was killed. An attempt without an end is
// one whose launcher was killed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/plan/attempts.h"
#include "compiler/plan/plan.h"
#include "runtime/metrics/run_log.h"

namespace shardc {

/// What a launch was asked to do.
struct AttemptRequest {
  /// Of the recipe, or of the plan where it was started from one; as given.
  std::string path;
  /// The recipe's text; none where it was started from a plan.
  std::optional<std::string> recipe;
  std::string torch_version;
};

/// What the state of a launch began from.
struct AttemptStart {
  enum class Kind : uint8_t { Scratch, Seed, Checkpoint };

  Kind kind = Kind::Scratch;
  /// Of a seed or checkpoint.
  std::string path;
  /// Completed steps of what was read: of the seed's run, or of this one.
  int64_t step = 0;
  /// Of a seed: its run, and the digest of its manifest.
  std::string run_id;
  std::string digest;
  /// The steps of all stages up to it, of a run that continues a checkpoint.
  int64_t steps_before = 0;
};

class Attempt {
 public:
  /// Makes the next attempt of an open run directory, with all but what it began from and its end.
  /// Errors: ExitCode::Environment: a name is a link or no folder, or the disk is full.
  static auto Begin(const Descriptor& run_dir, const Plan& plan, const AttemptRequest& request) -> ErrorOr<Attempt>;

  auto number() const -> int64_t { return number_; }
  auto folder() const -> const Descriptor& { return folder_; }
  auto log() const -> const RunLog& { return log_; }
  /// attempt.json, as it was when the attempt began.
  auto text() const -> const std::string& { return text_; }

  /// Records what rank 0 knows once it begins. `versions`: those of the GPU's card, driver and libraries, by name;
  /// empty on CPUs.
  auto RecordStart(const AttemptStart& start, const std::map<std::string, std::string>& versions) const -> Status;
  /// Records the memory of rank 0's GPU after the first step: numbers of bytes, by name.
  auto RecordMemory(const std::map<std::string, int64_t>& bytes) const -> Status;
  /// By the launcher, when no rank runs any more. `last_step`: completed steps, where the run had begun. Where `error`
  /// is empty, the first error in the log is meant.
  auto RecordEnd(int exit_code, const std::string& error, std::optional<int64_t> last_step) const -> Status;

 private:
  Attempt(int64_t number, Descriptor folder, Descriptor log, std::string text)
      : number_(number), folder_(std::move(folder)), log_(std::move(log)), text_(std::move(text)) {}
  auto FirstErrorInLog() const -> std::string;

  int64_t number_ = 0;
  Descriptor folder_;
  RunLog log_;
  std::string text_;
};

/// Returns the versions that an attempt recorded; empty if there is no such attempt, or it recorded none.
auto VersionsOfAttempt(const Descriptor& run_dir, int64_t number) -> std::map<std::string, std::string>;

/// The log of an attempt that another process has begun, where this one sees it: of the ranks of another host, whose
/// file is log.hostN.txt, or of the same one. `text`: of the attempt that is meant. Errors: the attempt is not there,
/// or it is another one of that number.
auto JoinAttempt(const Descriptor& run_dir, int64_t number, const std::string& text, std::optional<int64_t> host)
    -> ErrorOr<RunLog>;

}  // namespace shardc
