#include "runtime/core/trace.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "compiler/base/files.h"
#include "compiler/base/text/json_text.h"
#include "compiler/plan/op_place.h"
#include "compiler/plan/text.h"

namespace shardc {

namespace {

auto LaneName(int64_t rank, int64_t lane, std::string_view name, int64_t sort_index) -> std::string {
  return fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})", rank, lane,
                     JsonString(name)) +
         ",\n" +
         fmt::format(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", rank,
                     lane, sort_index) +
         ",\n";
}

}  // namespace

Trace::Trace(const Plan* plan, RankControl* control, RankDevice* device, const TraceRequest& request)
    : plan_(*plan), control_(*control), clock_(device->clock()), request_(request) {}

auto Trace::Now() const -> int64_t {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count() - base_ns_;
}

auto Trace::Add(const Event& event) -> void {
  if (events_.size() >= request_.most_events) {
    is_cut_ = true;
    return;
  }
  events_.push_back(event);
}

auto Trace::Wrap(SectionKind section, size_t op_index, Kernel kernel) -> Kernel {
  const Stream stream = plan_.section(section).ops[op_index].stream;
  return [this, section, op_index, stream, kernel = std::move(kernel)](const Moment& moment) -> Status {
    if (!is_tracing_) {
      return kernel(moment);
    }
    Event event{.begin_ns = last_ns_,
                .step = step_,
                .repeat = moment.repeat,
                .lane = static_cast<int64_t>(stream),
                .op_index = static_cast<int64_t>(op_index),
                .section = section};
    if (clock_ == nullptr) {
      RETURN_IF_ERROR(kernel(moment));
    } else {
      RETURN_IF_ERROR(clock_->Leave(stream));
      RETURN_IF_ERROR(kernel(moment));
      RETURN_IF_ERROR(clock_->Leave(stream));
      enqueued_.push_back(event);
      event.lane = EnqueueLane;
    }
    event.end_ns = last_ns_ = Now();
    Add(event);
    return Success{};
  };
}

auto Trace::BeginStep(int64_t step) -> Status {
  is_tracing_ = request_.steps.Has(step) && !is_written_;
  if (!is_tracing_) {
    return Success{};
  }
  if (base_ns_ < 0) {
    base_ns_ = 0;
    ASSIGN_OR_RETURN(const auto begins, control_.GatherValues(AxisSet::All(), Now()));
    // The ranks of one machine have one clock; those of several begin together.
    base_ns_ = control_.mesh().hosts == 1 ? begins.front() : Now();
  }
  if (clock_ != nullptr) {
    enqueued_.clear();
    RETURN_IF_ERROR(clock_->Start());
  }
  step_ = step;
  step_ns_ = last_ns_ = Now();
  return Success{};
}

auto Trace::EndStep(int64_t step) -> Status {
  if (!is_tracing_) {
    return Success{};
  }
  is_tracing_ = false;
  const int64_t end = Now();
  if (clock_ != nullptr) {
    ASSIGN_OR_RETURN(const auto times, clock_->Read());
    for (size_t i = 0; i < enqueued_.size(); ++i) {
      enqueued_[i].begin_ns = times[2 * i] - base_ns_;
      enqueued_[i].end_ns = times[2 * i + 1] - base_ns_;
      Add(enqueued_[i]);
    }
  }
  Add({.begin_ns = last_ns_, .end_ns = end, .step = step, .lane = EndLane});
  Add({.begin_ns = step_ns_, .end_ns = end, .step = step, .lane = StepLane});
  return Success{};
}

auto Trace::LineOf(const Event& event) const -> std::string {
  std::string name;
  JsonObject args;
  args.Integer("step", event.step);
  if (event.lane == StepLane) {
    name = fmt::format("step {}", event.step);
  } else if (event.lane == EndLane) {
    name = "after the last op";
  } else {
    const Op& op = plan_.section(event.section).ops[static_cast<size_t>(event.op_index)];
    name = ToText(op.kind());
    args.Text("section", ToText(event.section)).Integer("op", event.op_index).Integer("repeat", event.repeat);
    const OpCost cost = VisitBody(op.body, [&](const auto& body) { return Cost(body, plan_); });
    args.Integer("bytes", (cost.read + cost.written).value).Integer("flops", cost.matmul_flops.value);
    if (op.layer >= 0) {
      args.Integer("layer", op.layer);
    }
    if (op.phase != Phase::None) {
      args.Text("phase", ToText(op.phase));
    }
    if (const std::string origin = OriginText(plan_, op.origin); !origin.empty()) {
      args.Text("recipe", origin);
    }
  }
  constexpr double NsPerUs = 1000;
  return fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{}}})", JsonString(name),
                     control_.rank(), event.lane, static_cast<double>(event.begin_ns) / NsPerUs,
                     static_cast<double>(event.end_ns - event.begin_ns) / NsPerUs, args.text());
}

auto Trace::Text() const -> std::string {
  const int64_t rank = control_.rank();
  std::string text =
      fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}"}}}})", rank, rank) + ",\n" +
      fmt::format(R"({{"ph":"M","name":"process_sort_index","pid":{},"args":{{"sort_index":{}}}}})", rank, rank) +
      ",\n";
  text += LaneName(rank, StepLane, "step", -2) + LaneName(rank, EndLane, "end of step", EndLane);
  if (clock_ != nullptr) {
    text += LaneName(rank, EnqueueLane, "enqueue", -1);
  }
  std::set<int64_t> streams;
  for (const Event& event : events_) {
    if (event.lane < StepLane && streams.insert(event.lane).second) {
      text += LaneName(rank, event.lane, ToText(static_cast<Stream>(event.lane)), event.lane);
    }
  }
  for (const Event& event : events_) {
    text += LineOf(event) + ",\n";
  }
  return text;
}

auto Trace::StepsTraced() const -> std::optional<StepRange> {
  const auto is_step = [](const Event& event) { return event.lane == StepLane; };
  const auto first = std::ranges::find_if(events_, is_step);
  return first == events_.end()
             ? std::nullopt
             : std::optional(StepRange{first->step, std::find_if(events_.rbegin(), events_.rend(), is_step)->step});
}

auto Trace::StepsText() const -> std::string {
  const StepRange& asked = request_.steps;
  const auto traced = StepsTraced();
  const std::string cut = is_cut_ ? fmt::format(", cut after {} events per rank", request_.most_events) : "";
  if (!traced) {
    return fmt::format("a part of step {}{}", events_.front().step, cut);
  }
  const bool is_all = traced->first == asked.first && traced->last == asked.last;
  const std::string of_asked = is_all    ? ""
                               : is_cut_ ? fmt::format(" of {} to {}", asked.first, asked.last)
                                         : fmt::format(", which ran of the steps {} to {}", asked.first, asked.last);
  return fmt::format("steps {} to {}{}{}", traced->first, traced->last, of_asked, cut);
}

auto Trace::PartPath(int64_t rank) const -> std::string { return fmt::format("{}.rank-{:05}", request_.path, rank); }

auto Trace::Join(const std::vector<int32_t>& written) const -> Status {
  std::string text = "{\"traceEvents\":[\n";
  Status joined = Success{};
  for (int64_t rank = 0; rank < std::ssize(written); ++rank) {
    const bool is_there = written[static_cast<size_t>(rank)] != 0;
    const auto part = is_there ? ReadFile(PartPath(rank), MaxPartBytes)
                               : Fail(ExitCode::Environment, "rank {} could not write its part", rank);
    if (part) {
      text += *part;
    } else if (joined) {
      joined = Fail(part.error().code, "{}; all hosts have to see the folder of the trace", part.error().message);
    }
    std::error_code ignored;
    std::filesystem::remove(PartPath(rank), ignored);
  }
  RETURN_IF_ERROR(joined);
  if (text.ends_with(",\n")) {
    text.resize(text.size() - 2);
  }
  const auto traced = StepsTraced();
  text += fmt::format("\n],\"displayTimeUnit\":\"ms\",\"otherData\":{}}}\n",
                      JsonObject()
                          .Text("run_id", plan_.run.run_id)
                          .Text("plan_hash", PlanHash(plan_))
                          .Text("steps", traced ? fmt::format("{}..{}", traced->first, traced->last) : "none")
                          .text());
  return WriteFile(request_.path, text);
}

auto Trace::Write() -> ErrorOr<std::string> {
  is_written_ = true;
  const bool is_empty = events_.empty();
  const Status own = is_empty ? Status(Success{}) : WriteFile(PartPath(control_.rank()), Text());
  ASSIGN_OR_RETURN(const auto written, control_.GatherValues(AxisSet::All(), int32_t{own && !is_empty ? 1 : 0}));
  if (control_.rank() != 0) {
    return std::string();
  }
  if (is_empty) {
    return fmt::format("warning: no trace: none of the steps {} to {} ran in this launch", request_.steps.first,
                       request_.steps.last);
  }
  if (const Status joined = own ? Join(written) : own; !joined) {
    return fmt::format("warning: no trace: {}", joined.error().message);
  }
  return fmt::format("trace of {}: {}", StepsText(), request_.path);
}

}  // namespace shardc
