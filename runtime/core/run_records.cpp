#include "runtime/core/run_records.h"

#include <algorithm>
#include <filesystem>

#include "compiler/base/absolute_path.h"
#include "compiler/base/files.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/checkpoint/peft_adapter.h"
#include "compiler/plan/attempts.h"
#include "runtime/comm/nccl/nccl_api.h"
#include "runtime/device/family.h"
#include "runtime/record/save_record.h"

namespace shardc {

RunRecords::RunRecords(const RankContext* context, std::string checkpoint_dir)
    : context_(*context),
      checkpoint_dir_(std::move(checkpoint_dir)),
      versions_(VersionsOf(FactsOf(context->plan->device).family)) {
  if (context->plan->run.comm == Comm::NcclRing) {
    // It adds, in an order of its own. Where it only moves bytes, no bits depend on it.
    const auto version = PartsOf(FactsOf(context->plan->device).family).nccl().Version();
    versions_["nccl"] = version ? *version : version.error().message;
  }
  for (const char* name : {"card", "cublaslt"}) {
    if (const auto found = versions_.find(name); found != versions_.end()) {
      products_.chosen_for.insert(*found);
    }
  }
}

auto RunRecords::machine() const -> const MachineRow* {
  const auto card = versions_.find("card");
  return card == versions_.end() ? nullptr : MachineOfCard(card->second);
}

auto RunRecords::CompareWithSaves(const std::optional<CheckpointInfo>& found) const -> ErrorOr<std::string> {
  const std::string& run_id = context_.plan->run.run_id;
  if (context_.directory == nullptr) {
    return std::string();
  }
  ASSIGN_OR_RETURN(const auto saves, SavesOf(context_.directory->folder(), run_id));
  const std::optional<SavedStep>& last = saves.last;
  const std::string record = context_.directory->path() + "/" + SaveRecordName;
  if (!found && !last && saves.num_unreadable > 0) {
    return Fail(
        ExitCode::Checkpoint,
        "there is no checkpoint of run {} in {}, and {} of the lines of {} do not read, so that nobody can tell "
        "whether one was saved; to continue the run, set `checkpoint.dir` to where its checkpoints are; to begin "
        "from scratch, move that file away",
        run_id, AbsolutePath(checkpoint_dir_), saves.num_unreadable, record);
  }
  if (!found && !last) {
    return std::string();
  }
  if (!found) {
    const std::string dir = AbsolutePath(checkpoint_dir_);
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

auto RunRecords::WithDigest() const -> std::map<std::string, std::string> {
  auto versions = versions_;
  if (!products_.algorithms.empty()) {
    versions[ProductRecordName] = DigestOf(TextOf({products_.chosen_for, products_.algorithms, {}}));
  }
  return versions;
}

auto RunRecords::CompareVersions() const -> std::string {
  if (context_.directory == nullptr || versions_.empty()) {
    return "";
  }
  const Descriptor& folder = context_.directory->folder();
  const auto saves = SavesOf(folder, context_.plan->run.run_id);
  if (!saves || !saves->last) {
    return "";
  }
  const auto before = VersionsOfAttempt(folder, saves->last->attempt);
  auto now = WithDigest();
  if (!before.contains(ProductRecordName)) {
    // That launch kept no digest.
    now.erase(ProductRecordName);
  }
  const std::string differences = before.empty() ? "" : VersionsDiffer(before, now);
  return differences.empty()
             ? ""
             : fmt::format(
                   "warning: not as in attempt {}, which saved the last checkpoint: {}; the run continues, and "
                   "its losses may have other last bits than they would have had",
                   AttemptName(saves->last->attempt), differences);
}

auto RunRecords::ReadAlgorithms() -> std::string {
  if (context_.directory == nullptr || products_.chosen_for.empty()) {
    return "";
  }
  const Descriptor& folder = context_.directory->folder();
  const auto record = ReadProductRecord(folder);
  const auto chosen_again = [&](const std::string& why) {
    return fmt::format("warning: the library chooses the algorithms of products again: {}", why);
  };
  if (!record) {
    return chosen_again(record.error().message);
  }
  if (!*record) {
    return "";
  }
  if (const std::string differences = VersionsDiffer((*record)->chosen_for, products_.chosen_for);
      !differences.empty()) {
    return chosen_again(
        fmt::format("those in {}/{} are not for this machine: {}", folder.path(), ProductRecordName, differences));
  }
  recorded_ = **record;
  TakeProducts(recorded_);
  return "";
}

auto RunRecords::TakeProducts(ProductRecord products) -> void {
  products_ = std::move(products);
  taken_ = products_.algorithms;
}

auto RunRecords::CheckTuned() const -> Status {
  const auto others = std::ranges::count_if(products_.algorithms, [&](const auto& used) {
    const auto taken = taken_.find(used.first);
    return taken == taken_.end() || taken->second != used.second;
  });
  return others == 0
             ? Status(Success{})
             : Fail(ExitCode::Environment,
                    "--tune={}: it lacks algorithms for {} of the products of this plan, or the library refuses "
                    "them; `--tune` without a file measures",
                    context_.options.tune.file, others);
}

auto RunRecords::RefusedAlgorithms() const -> std::string {
  const auto is_refused = [&](const auto& recorded) {
    const auto found = products_.algorithms.find(recorded.first);
    return found == products_.algorithms.end() || found->second != recorded.second;
  };
  const auto refused = std::ranges::count_if(taken_, is_refused);
  return refused == 0 ? ""
                      : fmt::format(
                            "warning: the library refuses {} of the {} algorithms of products in {}, and chooses "
                            "others",
                            refused, taken_.size(), ProductRecordName);
}

auto RunRecords::Begin(const BegunRun& begun) -> Status {
  CHECK(context_.directory != nullptr && context_.attempt != nullptr, "a run without a record");
  const Attempt& attempt = *context_.attempt;
  RETURN_IF_ERROR(context_.directory->CheckThere());
  RETURN_IF_ERROR(attempt.RecordStart(begun.start, WithDigest()));
  if (!products_.algorithms.empty()) {
    RETURN_IF_ERROR(PutProductRecord(attempt.folder(), products_));
    if (products_ != recorded_) {
      RETURN_IF_ERROR(PutProductRecord(context_.directory->folder(), products_));
    }
  }
  if (begun.drawn) {
    RETURN_IF_ERROR(PutFileAt(attempt.folder(), std::string(InitRecordName), ToText(*begun.drawn)));
  }
  if (!begun.seed.seed.empty()) {
    RETURN_IF_ERROR(PutFileAt(context_.directory->folder(), SeedRecordName, begun.seed.seed));
  }
  if (!begun.seed.adapter.empty()) {
    RETURN_IF_ERROR(PutFileAt(context_.directory->folder(), AdapterRecordName, begun.seed.adapter));
  }
  ASSIGN_OR_RETURN(metrics_, MetricsWriter::Open(context_.directory->folder(), begun.step, attempt.folder()));
  return Success{};
}

auto RunRecords::PutMemory(const DeviceUse& use) const -> Status {
  RETURN_IF_ERROR(context_.directory->CheckThere());
  std::map<std::string, int64_t> bytes{{"arenas", use.arenas.value},
                                       {"taken", use.driver.taken.value},
                                       {"total", use.driver.total.value},
                                       {"outside_arenas", use.outside().value}};
  if (use.planned_outside) {
    bytes["planned_outside_arenas"] = use.planned_outside->value;
  }
  return context_.attempt->RecordMemory(bytes);
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
                         {.step = step, .path = AbsolutePath(path), .attempt = context_.attempt->number()});
}

}  // namespace shardc
