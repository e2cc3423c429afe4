#include "runtime/core/divergence.h"

#include <algorithm>

#include "runtime/core/find_nonfinite.h"

namespace shardc {

auto Divergence::Number(ScalarRole scalar) const -> double {
  return binder_.host_scalars()[binder_.plan().ScalarOf(scalar)];
}

auto Divergence::Remedies(bool is_state, const std::string& newest) const -> std::string {
  const bool skips = std::ranges::none_of(binder_.plan().halts, [&](const Halt& halt) {
    return halt.scalar == binder_.plan().ScalarOf(ScalarRole::NonFinite);
  });
  // What an update has made is not mended by leaving out the next.
  const std::string skip = is_state || skips ? "" : ", or leave such updates out: `train.on_nonfinite = \"skip\"`";
  return fmt::format(
      "  learning rate {} in this step; newest good checkpoint of this run: {}\n"
      "  lower `optimizer.lr`, set a small `optimizer.clip_norm`{}; then run again, which {}",
      Number(ScalarRole::Lr), newest.empty() ? "none yet" : newest, skip,
      newest.empty() ? "begins from scratch" : "continues from that checkpoint");
}

auto Divergence::AfterStep(bool ends_run, const std::string& newest) -> ErrorOr<std::string> {
  const auto step = static_cast<int64_t>(Number(ScalarRole::Step));
  if (Number(ScalarRole::NonFinite) == 0) {
    const int64_t skipped = std::exchange(in_a_row_, 0);
    return skipped == 0 || !std::exchange(is_told_, false)
               ? std::string()
               : fmt::format("step {}: finite again, {} update{} left out", step, skipped, skipped == 1 ? "" : "s");
  }
  ++in_a_row_;
  if (in_a_row_ > 1) {
    return ends_run ? fmt::format(
                          "step {}: {} updates left out one after another, more than `train.max_skipped` "
                          "allows: the run ends\n{}",
                          step, in_a_row_, Remedies(false, newest))
                    : std::string();
  }
  is_told_ = ends_run || told_ < MostTold;
  if (!is_told_) {
    return std::string();
  }
  ++told_;
  const auto cause = FindNonFiniteCause(binder_, execution_, step - 1);
  if (!cause) {
    return cause.error();
  }
  return fmt::format("step {}: {}; no update was made\n{}{}", step, cause->text, Remedies(cause->is_state, newest),
                     told_ == MostTold ? "\n  (later ones are not told)" : "");
}

auto Divergence::OfSave(const Error& error, const std::string& newest) const -> Error {
  return error.code == ExitCode::Diverged ? Error{error.code, error.message + "\n" + Remedies(true, newest)} : error;
}

}  // namespace shardc
