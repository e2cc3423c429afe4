#include "runtime/metrics/metrics_writer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>

#include "compiler/base/files.h"

namespace shardc {

namespace {

/// Shortest text that reads back to the same double.
auto Number(double value) -> std::string { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

/// Further fields of an object. Names of heads need no escapes.
auto Fields(const std::vector<LossTerm>& terms) -> std::string {
  std::string text;
  for (const LossTerm& term : terms) {
    text += fmt::format(R"(,"{}":{})", term.name, Number(term.value));
  }
  return text;
}

/// The step of a line; none where it is no object with one.
auto StepOf(std::string_view line) -> std::optional<int64_t> {
  const auto parsed = nlohmann::json::parse(line, nullptr, false);
  if (!parsed.is_object()) {
    return std::nullopt;
  }
  const auto step = parsed.find("step");
  if (step == parsed.end() || !step->is_number_integer()) {
    return std::nullopt;
  }
  return step->get<int64_t>();
}

/// Calls visit(line) for each, its line end left out.
template <class Visit>
auto ForEachLine(std::string_view text, Visit&& visit) -> void {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    visit(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

/// The file as it is to be appended to.
auto CutBack(const Descriptor& run_dir, int64_t restored_step, const Descriptor& dropped) -> Status {
  // As large as a disk has room for.
  constexpr int64_t MaxBytes = int64_t{1} << 40;
  const auto status = StatusAt(run_dir, MetricsName);
  if (!status) {
    return status.error();
  }
  if (status->kind == EntryKind::Missing) {
    return Success{};
  }
  const auto text = ReadFileAt(run_dir, MetricsName, MaxBytes);
  if (!text) {
    return text.error();
  }
  std::string kept;
  std::string taken_out;
  ForEachLine(*text, [&](std::string_view line) {
    const auto step = StepOf(line);
    std::string& to = step && *step <= restored_step ? kept : taken_out;
    to.append(line).push_back('\n');
  });
  // An empty line holds nothing to keep.
  if (taken_out.find_first_not_of('\n') != std::string::npos) {
    RETURN_IF_ERROR(PutFileAt(dropped, DroppedMetricsName, taken_out));
  }
  return kept == *text && status->num_links <= 1 ? Status(Success{}) : PutFileAt(run_dir, MetricsName, kept);
}

}  // namespace

auto MetricsWriter::Open(const Descriptor& run_dir, int64_t restored_step, const Descriptor& dropped)
    -> ErrorOr<std::unique_ptr<MetricsWriter>> {
  RETURN_IF_ERROR(CutBack(run_dir, restored_step, dropped));
  auto file = OpenForAppendAt(run_dir, MetricsName);
  if (!file) {
    return file.error();
  }
  return std::unique_ptr<MetricsWriter>(new MetricsWriter(*std::move(file)));
}

auto MetricsWriter::Write(const StepMetrics& metrics) -> Status {
  return Append(fmt::format(R"({{"step":{},"loss":{},"grad_norm":{},"lr":{},"step_ms":{},"tokens_per_s":{}{}}})",
                            metrics.step, Number(metrics.loss), Number(metrics.grad_norm), Number(metrics.lr),
                            Number(metrics.step_ms), Number(metrics.tokens_per_s), Fields(metrics.terms)));
}

auto MetricsWriter::WriteEval(int64_t step, double eval_loss, const std::vector<LossTerm>& terms) -> Status {
  return Append(fmt::format(R"({{"step":{},"eval_loss":{}{}}})", step, Number(eval_loss), Fields(terms)));
}

auto MetricsWriter::Append(const std::string& line) -> Status { return AppendAll(file_, line + "\n"); }

auto LastStepInMetrics(const Descriptor& run_dir) -> std::optional<int64_t> {
  constexpr int64_t TailBytes = int64_t{1} << 16;
  const auto file = OpenFileAt(run_dir, MetricsName);
  const auto bytes = file ? FileBytes(*file) : file.error();
  if (!bytes) {
    return std::nullopt;
  }
  std::string tail(static_cast<size_t>(std::min(TailBytes, *bytes)), '\0');
  if (!ReadAll(*file, tail.data(), static_cast<int64_t>(tail.size()), *bytes - static_cast<int64_t>(tail.size()))) {
    return std::nullopt;
  }
  std::optional<int64_t> last;
  ForEachLine(tail, [&](std::string_view line) {
    if (const auto step = StepOf(line)) {
      last = step;
    }
  });
  return last;
}

}  // namespace shardc
