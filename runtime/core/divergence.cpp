#include "runtime/core/divergence.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/core/find_nonfinite.h"

namespace shardc {

auto Divergence::Number(ScalarRole scalar) const -> double {
  return binder_.host_scalars()[binder_.plan().ScalarOf(scalar)];
}

auto Divergence::NumberOrZero(ScalarRole scalar) const -> double {
  return binder_.plan().FindScalar(scalar).valid() ? Number(scalar) : 0;
}

auto Divergence::Skipped() const -> std::string_view {
  return Number(ScalarRole::NonFinite) != 0 ? "nonfinite" : NumberOrZero(ScalarRole::Spike) != 0 ? "spike" : "";
}

auto Divergence::OfSpike(bool ends_run) const -> std::string {
  const LossSpread& spread = binder_.host_scalars().losses().judged_by();
  const double loss = Number(ScalarRole::Loss);
  const std::string how_far = spread.deviation > 0 ? fmt::format("{:.1f} standard deviations", spread.Sigmas(loss))
                                                   : fmt::format("{:.4f}", loss - spread.mean);
  const std::string what = fmt::format(
      "step {}: the loss {:.4f} is a spike: it lies {} above {:.4f}, the mean of the {} losses before it; no update "
      "was made",
      static_cast<int64_t>(Number(ScalarRole::Step)), loss, how_far, spread.mean, spread.count);
  return ends_run
             ? what +
                   "\n  the run saves and ends, as `train.on_spike` asks; run again to continue after this step, or "
                   "lower `optimizer.lr` first" +
                   LevelRemedies()
             : what;
}

auto Divergence::LevelRemedies() const -> std::string {
  // Twice what the farthest loss needs, because the next one may lie farther. The key takes no more than 1e6.
  const double sigma = std::ceil(2 * farthest_);
  return fmt::format(
      "\n  if the loss has a new level, run again {}; if an update broke the model, lower `optimizer.lr` and move the "
      "checkpoints with that update away",
      sigma <= 1e6 ? fmt::format("with `train.spike_sigma = {:.0f}`", sigma)
                   : "without `train.on_spike` until the next save");
}

auto Divergence::ResumesFrom(const std::string& checkpoint, const std::string& before) -> void {
  resumed_from_ = checkpoint;
  before_it_ = before;
}

auto Divergence::Remedies(bool is_state, const std::string& newest) const -> std::string {
  const bool skips = std::ranges::none_of(binder_.plan().halts, [&](const Halt& halt) {
    return halt.scalar == binder_.plan().ScalarOf(ScalarRole::NonFinite);
  });
  if (!resumed_from_.empty()) {
    // Neither the rate nor a limit of the norm has a part in it.
    return fmt::format(
        "  no step since the start from {} was finite: its state is finite and of no use, unless the recipe or the "
        "data "
        "changed since\n"
        "  undo such changes, or move that checkpoint away; then run again, which {}",
        resumed_from_,
        before_it_.empty() ? "begins from scratch" : fmt::format("continues from the one before it, {}", before_it_));
  }
  // What an update has made is not mended by leaving out the next.
  const std::string skip = is_state || skips ? "" : ", or leave such updates out: `train.on_nonfinite = \"skip\"`";
  return fmt::format(
      "  learning rate {} in this step; newest good checkpoint of this run: {}\n"
      "  lower `optimizer.lr`, set a small `optimizer.clip_norm`{}; then run again, which {}",
      Number(ScalarRole::Lr), newest.empty() ? "none yet" : newest, skip,
      newest.empty() ? "begins from scratch" : "continues from that checkpoint");
}

auto Divergence::EndsByCount() const -> bool {
  const Plan& plan = binder_.plan();
  return std::ranges::none_of(plan.halts, [&](const Halt& halt) {
    const ScalarRole role = plan.scalars[halt.scalar].role;
    return (role == ScalarRole::NonFinite || role == ScalarRole::Spike) &&
           binder_.host_scalars()[halt.scalar] > static_cast<double>(halt.above);
  });
}

auto Divergence::AfterStep(bool ends_run, const std::string& newest) -> ErrorOr<std::string> {
  const auto step = static_cast<int64_t>(Number(ScalarRole::Step));
  const std::string_view before = std::exchange(last_, Skipped());
  if (last_.empty()) {
    resumed_from_.clear();
    const int64_t skipped = std::exchange(in_a_row_, 0);
    farthest_ = 0;
    return skipped == 0 || !std::exchange(is_told_, false)
               ? std::string()
               : fmt::format("step {}: {}{} update{} left out before it", step,
                             before == "spike"
                                 ? fmt::format("the loss {:.4f} is within the limit again; ", Number(ScalarRole::Loss))
                                 : "finite again; ",
                             skipped, skipped == 1 ? " was" : "s were");
  }
  ++in_a_row_;
  if (last_ == "spike") {
    farthest_ = std::max(farthest_, binder_.host_scalars().losses().judged_by().Sigmas(Number(ScalarRole::Loss)));
  }
  if (ends_run && EndsByCount()) {
    return fmt::format(
        "step {}: {} updates left out one after another, more than `train.max_skipped` allows: the run {}", step,
        in_a_row_, last_ == "spike" ? "saves and ends" + LevelRemedies() : "ends\n" + Remedies(false, newest));
  }
  if (before == last_ && !ends_run) {
    return std::string();
  }
  is_told_ = ends_run || told_ < MostTold;
  if (!is_told_) {
    return std::string();
  }
  ++told_;
  const std::string_view no_more = told_ == MostTold ? "\n  (later ones are not told)" : "";
  if (last_ == "spike") {
    return OfSpike(ends_run) + std::string(no_more);
  }
  ASSIGN_OR_RETURN(const auto cause, FindNonFiniteCause(binder_, execution_, step - 1));
  return fmt::format("step {}: {}; no update was made\n{}{}", step, cause.text, Remedies(cause.is_state, newest),
                     no_more);
}

auto Divergence::OfSave(const Error& error, const std::string& newest) const -> Error {
  return error.code == ExitCode::Diverged ? Error{error.code, error.message + "\n" + Remedies(true, newest)} : error;
}

}  // namespace shardc
