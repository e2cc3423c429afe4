#include "runtime/core/program.h"

#include <algorithm>

#include "compiler/ops/op_facts.h"
#include "compiler/plan/loops.h"
#include "compiler/plan/op_place.h"
#include "compiler/plan/text.h"
#include "runtime/control/rank_control.h"
#include "runtime/core/exceptions.h"
#include "runtime/kernels/host/host.h"

namespace shardc {

/// Returns the end of a message about an op.
static auto EndOf(const Plan& plan, const Op& op) -> std::string {
  const std::string origin = OriginText(plan, op.origin);
  return origin.empty() ? "" : "; " + origin;
}

Program::Program(SectionKind section, RankBinder& binder, const Execution& execution)
    : section_(section), binder_(binder), execution_(execution) {
  const std::vector<Op>& ops = binder.plan().section(section).ops;
  size_t body = 0;
  int64_t count = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    SetCheckContext(fmt::format("binding op {} of section {}", i, ToText(section)));
    BoundOp bound = BindOne(ops[i], i);
    if (bound.control == Control::RepeatBegin) {
      bound.count = count = LoopCountOf(ops[i]);
      body = ops_.size() + 1;
    } else if (bound.control == Control::RepeatEnd) {
      bound.count = count;
      bound.body = body;
    } else if (bound.control == Control::Nothing && ops[i].waits.empty() && !ops[i].signals.valid()) {
      // A fact about memory; nothing happens.
      continue;
    }
    ops_.push_back(std::move(bound));
  }
  SetCheckContext("");
  // A wrapper of kernels has to be called in each step.
  if (execution.graphs != nullptr && !execution.wrap && execution.guard == nullptr && section == SectionKind::Step) {
    FindGraphs();
  }
}

/// Returns true if an op has a kernel of the host, whatever the device is.
static auto WorksOnHost(const OpBody& body) -> bool {
  return VisitBody(body, []<class Body>(const Body&) { return host::HasKernel<Body>; });
}

/// Returns true if the launches of an op follow from the plan alone, on a device with memory of its own.
static auto LaunchesAlike(const Op& op) -> bool {
  const bool names_scalars =
      std::ranges::any_of(FactsOf(op).scalars, [](const ScalarFact& fact) { return !fact.field.empty(); });
  return op.stream == Stream::Compute && op.when.always() && !names_scalars && !WorksOnHost(op.body);
}

auto Program::FindGraphs() -> void {
  for (size_t begin = 0; begin < ops_.size(); ++begin) {
    size_t end = begin;
    // Only the first of them may wait for other streams, and only the last may be waited for.
    while (end < ops_.size() && ops_[end].control == Control::Call && LaunchesAlike(*ops_[end].op) &&
           (end == begin || (ops_[end].op->waits.empty() && !ops_[end - 1].op->signals.valid()))) {
      ++end;
    }
    if (end > begin + 1) {
      ops_[begin].graph_end = end;
      begin = end - 1;
    }
  }
}

auto Program::BindOne(const Op& op, size_t index) -> BoundOp {
  BoundOp bound{.op = &op, .queue = &binder_.device().queue(op.stream), .released = ReleasedBufferOf(op.body)};
  switch (LoopEdgeOf(op)) {
    case LoopEdge::Begin: bound.control = Control::RepeatBegin; return bound;
    case LoopEdge::End: bound.control = Control::RepeatEnd; return bound;
    case LoopEdge::None: break;
  }
  if (bound.released.valid() && execution_.guard != nullptr) {
    bound.control = Control::Release;
    return bound;
  }
  if (bound.released.valid() || FactsOf(op).meaning == Meaning::Renamed) {
    bound.control = Control::Nothing;
    return bound;
  }
  binder_.set_stream(op.stream);
  const auto bind = [&]() -> Status {
    bound.call = BindOp(op.body, binder_);
    if (execution_.wrap) {
      bound.call = execution_.wrap(section_, index, std::move(bound.call));
    }
    // The guard compares memory, and a check names an op, once the device has done the op.
    if (execution_.guard != nullptr || binder_.plan().run.device_checks) {
      bound.call = [call = std::move(bound.call), &device = binder_.device()](const Moment& moment) -> Status {
        RETURN_IF_ERROR(call(moment));
        return device.Finish();
      };
    }
    return Success{};
  };
  if (const Status is_bound = CatchExceptions(bind); !is_bound) {
    throw ErrorThrown(
        {is_bound.error().code, fmt::format("binding section {} op {} {}: {}{}", ToText(section_), index,
                                            ToText(op.kind()), is_bound.error().message, EndOf(binder_.plan(), op))});
  }
  if (execution_.guard != nullptr) {
    bound.touches = Guard::TouchesOf(binder_.plan(), op, index);
  }
  return bound;
}

auto Program::Run(int64_t step) -> Status {
  RankDevice& device = binder_.device();
  RETURN_IF_ERROR(
      device.BeginSection({.section = section_, .step = step, .order = execution_.order}, binder_.host_scalars()));
  const Status enqueued = EnqueueAll({.step = step, .repeat = 0});
  if (!enqueued && enqueued.error().code != ExitCode::Preempted) {
    return enqueued;
  }
  RETURN_IF_ERROR(device.EndSection(binder_.host_scalars()));
  has_run_ = true;
  binder_.CountRun(section_);
  if (execution_.guard != nullptr) {
    if (Status status = execution_.guard->EndSection(); !status) {
      return Fail(status.error().code, "step {}, at the end of section {}: {}", step, ToText(section_),
                  status.error().message);
    }
  }
  return enqueued;
}

auto Program::EnqueueAll(Moment moment) -> Status {
  Status goes_on = Success{};
  for (size_t i = 0; i < ops_.size(); ++i) {
    if (has_run_ && ops_[i].graph_end != 0) {
      RETURN_IF_ERROR(EnqueueGraph(i, moment));
      i = ops_[i].graph_end - 1;
      continue;
    }
    RETURN_IF_ERROR(RunOp(i, moment));
    if (ops_[i].control != Control::RepeatEnd) {
      continue;
    }
    ++moment.repeat;
    if (goes_on && execution_.after_pass) {
      goes_on = execution_.after_pass(section_, moment.repeat, ops_[i].count);
      if (!goes_on && goes_on.error().code != ExitCode::Preempted) {
        return goes_on;
      }
    }
    if (goes_on && moment.repeat < ops_[i].count) {
      // The loop's head waits and signals at each pass over the body.
      i = ops_[i].body - 2;
    } else {
      moment.repeat = 0;
    }
  }
  return goes_on;
}

auto Program::RunOp(size_t at, const Moment& moment) -> Status {
  const BoundOp& bound = ops_[at];
  RETURN_IF_ERROR(WaitBefore(bound, moment));
  if (bound.control == Control::Call || bound.control == Control::Release) {
    RETURN_IF_ERROR(bound.queue->Enqueue(*this, at, moment));
  }
  return SignalAfter(bound, moment);
}

auto Program::EnqueueGraph(size_t begin, const Moment& moment) -> Status {
  BoundOp& first = ops_[begin];
  const BoundOp& last = ops_[first.graph_end - 1];
  const auto pass = static_cast<size_t>(moment.repeat);
  first.graphs.resize(std::max(first.graphs.size(), pass + 1));
  std::optional<size_t>& graph = first.graphs[pass];
  if (!graph) {
    RETURN_IF_ERROR(execution_.graphs->BeginRecording());
    for (size_t i = begin; i < first.graph_end; ++i) {
      RETURN_IF_ERROR(ops_[i].queue->Enqueue(*this, i, moment));
    }
    const auto recorded = execution_.graphs->EndRecording();
    if (!recorded) {
      return Context(first, moment.step, recorded.error());
    }
    graph = *recorded;
  }
  RETURN_IF_ERROR(WaitBefore(first, moment));
  if (const Status launched = execution_.graphs->Launch(*graph, *this, first.graph_end - 1); !launched) {
    return Context(first, moment.step, launched.error());
  }
  return SignalAfter(last, moment);
}

auto Program::WaitBefore(const BoundOp& bound, const Moment& moment) -> Status {
  for (const EventId event : bound.op->waits) {
    if (const Status waits = bound.queue->Wait(event); !waits) {
      return Context(bound, moment.step, waits.error());
    }
  }
  return Success{};
}

auto Program::SignalAfter(const BoundOp& bound, const Moment& moment) -> Status {
  if (bound.op->signals.valid()) {
    if (const Status signals = bound.queue->Signal(bound.op->signals); !signals) {
      return Context(bound, moment.step, signals.error());
    }
  }
  return Success{};
}

auto Program::RunTurn(size_t at, const Moment& moment) -> Status {
  const BoundOp& bound = ops_[at];
  Status status = Success{};
  if (bound.control == Control::Release) {
    status = execution_.guard->Release(bound.released);
  } else {
    const Predicate& when = bound.op->when;
    if (!when.always() && (binder_.scalars()[when.scalar] != 0) == when.negated) {
      return status;
    }
    binder_.control().SetPosition(bound.op->stream,
                                  {.step = moment.step, .section = section_, .op_index = IndexOf(bound)});
    status = CatchExceptions([&] { return execution_.guard == nullptr ? bound.call(moment) : Call(bound, moment); });
    binder_.control().LeavePosition(bound.op->stream);
  }
  if (!status) {
    return Context(bound, moment.step, status.error());
  }
  return status;
}

auto Program::NameOfTurn(size_t at) const -> std::string {
  return fmt::format("op {} {}", IndexOf(ops_[at]), ToText(ops_[at].op->kind()));
}

auto Program::Call(const BoundOp& bound, const Moment& moment) -> Status {
  RETURN_IF_ERROR(execution_.guard->BeforeOp(bound.touches));
  RETURN_IF_ERROR(bound.call(moment));
  return execution_.guard->AfterOp(bound.touches);
}

auto Program::IndexOf(const BoundOp& bound) const -> int64_t {
  return bound.op - binder_.plan().section(section_).ops.data();
}

auto Program::Context(const BoundOp& bound, int64_t step, const Error& error) const -> Error {
  return Error{error.code, fmt::format("step {} section {} op {} {}: {}{}", step, ToText(section_), IndexOf(bound),
                                       ToText(bound.op->kind()), error.message, EndOf(binder_.plan(), *bound.op))};
}

}  // namespace shardc
