#include "runtime/metrics/metrics_writer.h"

#include <algorithm>
#include <string_view>

#include "compiler/base/files.h"
#include "compiler/base/json_reader.h"
#include "compiler/base/text/json_text.h"
#include "compiler/base/text/split.h"

namespace shardc {

namespace {

/// Adds further members to a line.
auto AddTerms(JsonObject& line, const std::vector<HeadLoss>& terms) -> void {
  for (const HeadLoss& term : terms) {
    line.Number(term.name, term.value);
  }
}

/// The step of a line; none where it is no object with one.
auto StepOf(std::string_view line) -> std::optional<int64_t> {
  const auto parsed = ParseJson(line, ExitCode::Environment);
  if (!parsed || !parsed->is_object()) {
    return std::nullopt;
  }
  const auto step = parsed->find("step");
  if (step == parsed->end() || !step->is_number_integer()) {
    return std::nullopt;
  }
  return step->get<int64_t>();
}

/// Calls visit(line) for each line of a file, its line end left out, in memory that does not grow with the file. What
/// is longer than any line of ours comes in pieces. Errors: of reading, or of a visit.
template <class Visit>
auto ForEachLineOf(const Descriptor& file, int64_t bytes, Visit&& visit) -> Status {
  constexpr int64_t ChunkBytes = int64_t{1} << 20;
  std::string text;
  for (int64_t at = 0; at < bytes; at += ChunkBytes) {
    const int64_t size = std::min(ChunkBytes, bytes - at);
    const size_t before = text.size();
    text.resize(before + static_cast<size_t>(size));
    RETURN_IF_ERROR(ReadAll(file, text.data() + before, size, at));
    const size_t last_end = text.rfind('\n');
    const bool is_last = at + size == bytes;
    const size_t whole = is_last || last_end == std::string::npos ? text.size() : last_end + 1;
    for (const std::string_view line : SplitLines(std::string_view(text).substr(0, whole))) {
      RETURN_IF_ERROR(visit(line));
    }
    text.erase(0, whole);
  }
  return Success{};
}

/// Gathers lines, so that a long file is not written line by line.
class LineBuffer {
 public:
  auto Add(AtomicFile& file, std::string_view line) -> Status {
    constexpr size_t MostBytes = size_t{1} << 20;
    text_.append(line).push_back('\n');
    num_bytes_ += static_cast<int64_t>(line.size()) + 1;
    return text_.size() < MostBytes ? Status(Success{}) : Flush(file);
  }
  auto Flush(AtomicFile& file) -> Status {
    const Status appended = file.Append(text_);
    text_.clear();
    return appended;
  }
  auto num_bytes() const -> int64_t { return num_bytes_; }

 private:
  std::string text_;
  int64_t num_bytes_ = 0;
};

/// Moves the lines of later steps, and those that are no object with a step, to the folder `dropped`.
auto CutBack(const Descriptor& run_dir, int64_t restored_step, const Descriptor& dropped) -> Status {
  ASSIGN_OR_RETURN(const auto status, StatusAt(run_dir, MetricsName));
  if (status.kind == EntryKind::Missing) {
    return Success{};
  }
  const auto file = OpenFileAt(run_dir, MetricsName);
  ASSIGN_OR_RETURN(const auto bytes, file ? FileBytes(*file) : file.error());
  ASSIGN_OR_RETURN(auto kept, AtomicFile::CreateAt(run_dir, MetricsName));
  std::optional<AtomicFile> taken_out;
  LineBuffer kept_lines;
  LineBuffer taken_out_lines;
  RETURN_IF_ERROR(ForEachLineOf(*file, bytes, [&](std::string_view line) -> Status {
    if (const auto step = StepOf(line); step && *step <= restored_step) {
      return kept_lines.Add(kept, line);
    }
    if (line.empty()) {
      return Success{};
    }
    if (!taken_out) {
      ASSIGN_OR_RETURN(auto created, AtomicFile::CreateAt(dropped, DroppedMetricsName));
      taken_out.emplace(std::move(created));
    }
    return taken_out_lines.Add(*taken_out, line);
  }));
  if (taken_out) {
    RETURN_IF_ERROR(taken_out_lines.Flush(*taken_out));
    RETURN_IF_ERROR(taken_out->Commit());
  }
  RETURN_IF_ERROR(kept_lines.Flush(kept));
  // A file that has another name besides is not appended to: that one may be anybody's.
  return kept_lines.num_bytes() == bytes && status.num_links <= 1 ? Status(Success{}) : kept.Commit();
}

}  // namespace

auto EvalLine(int64_t step, double eval_loss, const std::vector<HeadLoss>& terms, const std::optional<LineTime>& time)
    -> std::string {
  JsonObject line;
  line.Integer("step", step).Number("eval_loss", eval_loss);
  if (time) {
    line.Text("time", time->utc).Number("elapsed_s", time->elapsed_s);
  }
  AddTerms(line, terms);
  return line.text();
}

auto MetricsWriter::Open(const Descriptor& run_dir, int64_t restored_step, const Descriptor& dropped)
    -> ErrorOr<std::unique_ptr<MetricsWriter>> {
  RETURN_IF_ERROR(CutBack(run_dir, restored_step, dropped));
  ASSIGN_OR_RETURN(auto file, OpenForAppendAt(run_dir, MetricsName));
  ASSIGN_OR_RETURN(const auto status, StatusOf(file));
  return std::unique_ptr<MetricsWriter>(new MetricsWriter(&run_dir, std::move(file), status));
}

auto MetricsWriter::Write(const StepMetrics& metrics) -> Status {
  JsonObject line;
  line.Integer("step", metrics.step)
      .Number("loss", metrics.loss)
      .Number("grad_norm", metrics.grad_norm)
      .Number("lr", metrics.lr)
      .Number("step_ms", metrics.step_ms)
      .Number("tokens_per_s", metrics.tokens_per_s)
      .Integer("tokens", metrics.tokens);
  if (metrics.targets) {
    line.Integer("targets", *metrics.targets);
  }
  line.Text("time", metrics.time.utc)
      .Number("elapsed_s", metrics.time.elapsed_s)
      .Integer("resident_bytes", metrics.resident_bytes)
      .Integer("arena_bytes", metrics.arena_bytes);
  if (metrics.mfu) {
    line.Number("mfu", *metrics.mfu);
  }
  if (metrics.hfu) {
    line.Number("hfu", *metrics.hfu);
  }
  if (!metrics.skipped.empty()) {
    line.Text("skipped", metrics.skipped);
  }
  AddTerms(line, metrics.terms);
  return Append(line.text());
}

auto MetricsWriter::WriteEval(int64_t step, double eval_loss, const std::vector<HeadLoss>& terms,
                              const std::optional<LineTime>& time) -> Status {
  return Append(EvalLine(step, eval_loss, terms, time));
}

auto MetricsWriter::Append(const std::string& line) -> Status {
  ASSIGN_OR_RETURN(const auto there, StatusAt(run_dir_, MetricsName));
  FAIL_IF(!there.IsSameAs(status_), ExitCode::Environment,
          "{} was {} during the run, so that its lines would be lost; put it back and start again", file_.path(),
          there.kind == EntryKind::Missing ? "removed" : "replaced");
  return AppendAll(file_, line + "\n");
}

}  // namespace shardc
