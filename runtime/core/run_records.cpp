#include "runtime/core/run_records.h"

#include <filesystem>

#include "compiler/base/files.h"
#include "compiler/checkpoint/manifest.h"
#include "runtime/record/save_record.h"

namespace shardc {

static auto Absolute(const std::string& path) -> std::string {
  std::error_code unknown;
  const auto absolute = std::filesystem::absolute(path, unknown);
  return unknown ? path : absolute.lexically_normal().string();
}

RunRecords::RunRecords(const RankContext* context, std::string checkpoint_dir)
    : context_(*context), checkpoint_dir_(std::move(checkpoint_dir)) {}

auto RunRecords::CompareWithSaves(const std::optional<CheckpointInfo>& found) const -> ErrorOr<std::string> {
  const std::string& run_id = context_.plan->run.run_id;
  if (context_.directory == nullptr) {
    return std::string();
  }
  const auto saves = SavesOf(context_.directory->folder(), run_id);
  if (!saves) {
    return saves.error();
  }
  const std::optional<SavedStep>& last = saves->last;
  const std::string record = context_.directory->path() + "/" + SaveRecordName;
  if (!found && !last && saves->num_unreadable > 0) {
    return Fail(
        ExitCode::Checkpoint,
        "there is no checkpoint of run {} in {}, and {} of the lines of {} do not read, so that nobody can tell "
        "whether one was saved; to continue the run, set `checkpoint.dir` to where its checkpoints are; to begin "
        "from scratch, move that file away",
        run_id, Absolute(checkpoint_dir_), saves->num_unreadable, record);
  }
  if (!found && !last) {
    return std::string();
  }
  if (!found) {
    const std::string dir = Absolute(checkpoint_dir_);
    const std::string there = std::filesystem::path(last->path).parent_path().string();
    return Fail(
        ExitCode::Checkpoint,
        "there is no checkpoint of run {} in {}, though step {} of it was saved to {} ({}); to continue the run, "
        "{}set `checkpoint.dir` to {}; to begin from scratch, set another `start.run_id`",
        run_id, dir, last->step, last->path, record, there == dir ? "put it back, or " : "",
        there == dir ? "the folder where it lies now" : fmt::format("{}, or where it lies now", there));
  }
  if (last && found->step < last->step) {
    return fmt::format(
        "warning: step {} of run {} is on record in {}, and the newest checkpoint that was found is of step {}: the "
        "run continues from that one",
        last->step, run_id, last->path, found->step);
  }
  return std::string();
}

auto RunRecords::Begin(const AttemptStart& start, const std::optional<InitRecord>& drawn,
                       const std::string& seed_manifest, int64_t begun) -> Status {
  CHECK(context_.directory != nullptr && context_.attempt != nullptr, "a run without a record");
  const Attempt& attempt = *context_.attempt;
  RETURN_IF_ERROR(context_.directory->CheckThere());
  RETURN_IF_ERROR(attempt.RecordStart(start));
  if (drawn) {
    RETURN_IF_ERROR(PutFileAt(attempt.folder(), std::string(InitRecordName), ToText(*drawn)));
  }
  if (!seed_manifest.empty()) {
    RETURN_IF_ERROR(PutFileAt(context_.directory->folder(), SeedRecordName, seed_manifest));
  }
  auto metrics = MetricsWriter::Open(context_.directory->folder(), begun, attempt.folder());
  if (!metrics) {
    return metrics.error();
  }
  metrics_ = *std::move(metrics);
  return Success{};
}

auto RunRecords::WriteStep(const StepMetrics& metrics) -> Status {
  RETURN_IF_ERROR(context_.directory->CheckThere());
  return metrics_->Write(metrics);
}

auto RunRecords::WriteEval(int64_t step, double eval_loss, const std::vector<HeadLoss>& terms, const LineTime& time)
    -> Status {
  RETURN_IF_ERROR(context_.directory->CheckThere());
  return metrics_->WriteEval(step, eval_loss, terms, time);
}

auto RunRecords::CheckOwned() const -> Status {
  RETURN_IF_ERROR(context_.directory->CheckThere());
  return context_.lease == nullptr ? Status(Success{}) : context_.lease->Check();
}

auto RunRecords::PutSave(int64_t step, const std::string& path) const -> Status {
  RETURN_IF_ERROR(context_.directory->CheckThere());
  return PutSaveOnRecord(context_.directory->folder(), context_.plan->run.run_id,
                         {.step = step, .path = Absolute(path), .attempt = context_.attempt->number()});
}

}  // namespace shardc
