#include "runtime/core/runner.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "compiler/base/stopwatch.h"
#include "compiler/ops/cpu/usable_threads.h"
#include "runtime/control/agree.h"
#include "runtime/control/agree_on_plan.h"
#include "runtime/control/agree_on_versions.h"
#include "runtime/core/check_state.h"
#include "runtime/core/compare_replicas.h"
#include "runtime/core/compute_threads.h"
#include "runtime/core/exceptions.h"
#include "runtime/core/generate.h"
#include "runtime/core/trained_on.h"
#include "runtime/core/tune_products.h"

namespace shardc {

RankRunner::RankRunner(RankContext* context)
    : context_(*context),
      rank_(context),
      checkpoints_(&rank_, RunCheckpoints::DirectoryOf(*context)),
      records_(context, checkpoints_.directory()),
      training_(&rank_, &checkpoints_, &records_) {}

auto RankRunner::Create(RankContext& context) -> ErrorOr<std::unique_ptr<RankRunner>> {
  const Stopwatch watch;
  std::unique_ptr<RankRunner> runner(new RankRunner(&context));
  RETURN_IF_ERROR(runner->Bind());
  runner->bind_time_ = watch.Elapsed();
  return runner;
}

auto RankRunner::Bind() -> Status {
  const Plan& plan = rank_.plan();
  SetComputeThreads(UsableThreadsOf(plan, NumComputeThreads(plan)).all);
  RETURN_IF_ERROR(AgreeWithOthers());
  Note(records_.ReadAlgorithms());
  // Before the guard fills memory.
  RETURN_IF_ERROR(Tune());
  RETURN_IF_ERROR(rank_.StartGuard());
  RETURN_IF_ERROR(rank_.OpenTokens());
  checkpoints_.MakeWriter();
  RETURN_IF_ERROR(rank_.ReadSchedules());
  Note(rank_.MakeGraphs());
  rank_.BindSections(records_.algorithms());
  if (!context_.options.tune.file.empty()) {
    RETURN_IF_ERROR(AgreeOnStatus(rank_.control(), records_.CheckTuned()));
  }
  Note(records_.RefusedAlgorithms());
  return Success{};
}

auto RankRunner::AgreeWithOthers() -> Status {
  RETURN_IF_ERROR(AgreeOnPlan(rank_.control(), rank_.plan()));
  if (records_.versions().empty()) {
    return Success{};
  }
  ASSIGN_OR_RETURN(const auto machines, AgreeOnVersions(rank_.control(), records_.versions()));
  if (!machines.empty()) {
    Note(fmt::format("warning: {}; the run continues, and its last bits depend on which rank is where", machines));
  }
  return Success{};
}

auto RankRunner::Tune() -> Status {
  if (!context_.options.tune.is_set()) {
    return Success{};
  }
  ASSIGN_OR_RETURN(auto tuned, TuneProducts(context_, rank_.binder(), records_.products()));
  records_.TakeProducts(std::move(tuned));
  return Success{};
}

auto RankRunner::Note(std::string_view line) const -> void {
  if (rank_.leads() && !line.empty()) {
    rank_.Say(fmt::format("{}\n", line));
  }
}

auto RankRunner::Train() -> ErrorOr<ExitCode> {
  training_.LimitTime();
  RETURN_IF_ERROR(Begin());
  return training_.Run(begun_);
}

auto RankRunner::SaveFirst() -> Status {
  ASSIGN_OR_RETURN(const auto step, Begin());
  FAIL_IF(begun_.start.kind == AttemptStart::Kind::Checkpoint, ExitCode::Usage,
          "{} has a checkpoint of the run {} at step {}; name another folder by -o", checkpoints_.directory(),
          rank_.plan().run.run_id, step);
  RETURN_IF_ERROR(rank_.RunSection(SectionKind::Save));
  Note(fmt::format("step 0: saved {}", checkpoints_.writer().last_path()));
  return Success{};
}

auto RankRunner::Answer(const std::function<Status()>& run) -> Status {
  std::unique_ptr<Progress> progress;
  if (rank_.leads() && context_.log != nullptr) {
    progress = std::make_unique<Progress>(rank_.plan().run.steps, rank_.plan().run.log_every, *context_.log);
  }
  rank_.execution().after_pass = [&](SectionKind section, int64_t done, int64_t count) -> Status {
    if (section != SectionKind::Eval || done == count) {
      return Success{};
    }
    const int64_t all = rank_.tokens().num_eval_samples();
    if (progress != nullptr) {
      progress->Evaluating(all * done / count, all);
    }
    return rank_.CheckStop(all * done / count, all, "sample");
  };
  const Status answered = run();
  rank_.execution().after_pass = nullptr;
  return answered;
}

auto RankRunner::Generate(const std::string& checkpoint) -> Status {
  RETURN_IF_ERROR(LoadParameters(checkpoint));
  return Answer([this] { return shardc::Generate(rank_); });
}

auto RankRunner::LoadParameters(const std::string& checkpoint) -> Status {
  RETURN_IF_ERROR(training_.Fire(TriggerKind::Load));
  RETURN_IF_ERROR(checkpoints_.Open(checkpoint, ReadPurpose::Parameters));
  RETURN_IF_ERROR(rank_.RunSection(SectionKind::Restore));
  ASSIGN_OR_RETURN(const auto left, checkpoints_.SumBase());
  checkpoints_.CloseFiles();
  RETURN_IF_ERROR(CheckLoadedState(rank_.binder(), std::array{StateRole::Parameter}, checkpoint));
  return CompareReplicas(rank_.binder(), std::array{StateRole::Parameter});
}

auto RankRunner::Evaluate(const std::string& checkpoint) -> ErrorOr<double> {
  FAIL_IF(rank_.plan().section(SectionKind::Eval).ops.empty(), ExitCode::Usage,
          "nothing is held out to evaluate on: data.eval_tokens is {}, and data.eval names no files",
          rank_.plan().data.eval_tokens);
  RETURN_IF_ERROR(LoadParameters(checkpoint));
  Note(TrainedOnText(checkpoints_.manifest().data, rank_.plan(), rank_.tokens()));
  RETURN_IF_ERROR(Answer([this] { return rank_.RunSection(SectionKind::Eval); }));
  ASSIGN_OR_RETURN(const auto loss, rank_.EvalLoss());
  if (!loss) {
    return Fail(ExitCode::RecipeRejected,
                "no position of the held-out samples has a target, so there is nothing to evaluate; {}",
                rank_.plan().data.has_eval_files() ? "name other files: --set 'data.eval=[\"FILE\"]'"
                                                   : "hold out others: --set data.eval_tokens=N");
  }
  return *loss;
}

/// Evaluates the checkpoint of the context; rank 0 prints its loss.
static auto Evaluate(RankRunner& runner, const RankContext& context) -> Status {
  ASSIGN_OR_RETURN(const auto loss, runner.Evaluate(context.options.eval_checkpoint));
  if (context.rank != 0) {
    return Success{};
  }
  const ScalarId step = context.plan->ScalarOf(ScalarRole::Step);
  const auto completed = static_cast<int64_t>(runner.scalars()[step]);
  const std::string result = context.options.json
                                 ? EvalLine(completed, loss) + "\n"
                                 : fmt::format("step {}: eval loss {} nats/token\n", completed, LossText(loss));
  if (std::fwrite(result.data(), 1, result.size(), stdout) != result.size() || std::fflush(stdout) != 0) {
    const int code = errno;
    return Fail(ExitCode::Environment, "cannot write the result to stdout: {}", std::strerror(code));
  }
  return Success{};
}

static auto RunBound(RankContext& context) -> ErrorOr<ExitCode> {
  ASSIGN_OR_RETURN(auto runner, RankRunner::Create(context));
  if (context.options.dry) {
    return ExitCode::Ok;
  }
  if (context.options.init) {
    const Status saved = runner->SaveFirst();
    return saved ? ErrorOr<ExitCode>(ExitCode::Ok) : saved.error();
  }
  if (context.options.eval_checkpoint.empty()) {
    return runner->Train();
  }
  const Status answered =
      context.options.generate ? runner->Generate(context.options.eval_checkpoint) : Evaluate(*runner, context);
  if (!answered && answered.error().code == ExitCode::Preempted) {
    // All ranks have agreed on it.
    runner->Note(answered.error().message);
    return ExitCode::Preempted;
  }
  return answered ? ErrorOr<ExitCode>(ExitCode::Ok) : answered.error();
}

auto RunRank(RankContext& context) -> ErrorOr<ExitCode> {
  // Those of ops have been caught by now, with the op; these are of what is done between them.
  return CatchExceptions([&] { return RunBound(context); });
}

}  // namespace shardc
