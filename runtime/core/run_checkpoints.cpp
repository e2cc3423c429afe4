#include "runtime/core/run_checkpoints.h"

#include "compiler/plan/text.h"
#include "runtime/checkpoint/own_checkpoints.h"
#include "runtime/control/agree.h"

namespace shardc {

auto RunCheckpoints::DirectoryOf(const RankContext& context) -> std::string {
  const std::string& own = context.plan->run.checkpoint_dir;
  return own.empty() ? context.options.run_dir + "/checkpoints" : own;
}

RunCheckpoints::RunCheckpoints(BoundRank* rank, std::string directory)
    : rank_(*rank), directory_(std::move(directory)) {}

auto RunCheckpoints::MakeWriter() -> void {
  const TokenReader& tokens = rank_.tokens();
  writer_ =
      std::make_unique<CheckpointWriter>(CheckpointWriterOptions{.plan = &rank_.plan(),
                                                                 .control = &rank_.control(),
                                                                 .plan_hash = PlanHash(rank_.plan()),
                                                                 .checkpoint_dir = directory_,
                                                                 .data_fingerprint = tokens.Fingerprint(),
                                                                 .source_fingerprints = tokens.SourceFingerprints(),
                                                                 .data_digests = rank_.context().data_digests});
  rank_.services().writer = writer_.get();
}

auto RunCheckpoints::Own() -> Status {
  const std::string& run_id = rank_.plan().run.run_id;
  LeaseOptions options;
  options.note = [this, run_id](const std::string& text) { rank_.Say(fmt::format("run {}: {}\n", run_id, text)); };
  options.while_waiting = [this]() -> Status {
    return rank_.control().StopIsRequested()
               ? Status(Fail(ExitCode::Preempted, "stopped while it waited for {}", directory_))
               : Status(Success{});
  };
  ASSIGN_OR_RETURN(auto owner, OwnCheckpoints(directory_, run_id, rank_.control(), std::move(options)));
  for (const std::string& warning : owner.warnings) {
    rank_.Say(fmt::format("warning: {}\n", warning));
  }
  lease_ = std::move(owner.lease);
  writer_->UseLease(lease_.get());
  // Better now than at the first save.
  return FollowRankZero(rank_.control(), rank_.leads() ? writer_->CheckManifestSize() : Status(Success{}));
}

auto RunCheckpoints::Choose() const -> ErrorOr<std::optional<CheckpointInfo>> {
  return ChooseNewest(directory_, rank_.plan().run.run_id, rank_.control());
}

auto RunCheckpoints::OptionsOf(const std::string& path, ReadPurpose purpose) const -> CheckpointReaderOptions {
  return {.path = path,
          .plan = &rank_.plan(),
          .data_fingerprint = rank_.tokens().Fingerprint(),
          .source_fingerprints = rank_.tokens().SourceFingerprints(),
          .data_digests = rank_.context().data_digests,
          .purpose = purpose,
          .control = &rank_.control()};
}

auto RunCheckpoints::OpenSeed() -> ErrorOr<std::unique_ptr<CheckpointReader>> {
  return CheckpointReader::Open(OptionsOf(rank_.plan().seed.path, ReadPurpose::Seed));
}

auto RunCheckpoints::Open(const std::string& path, ReadPurpose purpose) -> Status {
  ASSIGN_OR_RETURN(reader_, CheckpointReader::Open(OptionsOf(path, purpose)));
  restored_from_ = path;
  rank_.services().reader = reader_.get();
  rank_.BindSection(SectionKind::Restore);
  return Success{};
}

auto RunCheckpoints::SumBase() -> ErrorOr<LeftToBase> {
  auto left = reader_->SumBase();
  return left ? std::move(left) : Fail(left.error().code, "checkpoint {}: {}", restored_from_, left.error().message);
}

auto RunCheckpoints::newest() const -> const std::string& {
  return writer_->last_path().empty() ? restored_from_ : writer_->last_path();
}

}  // namespace shardc
