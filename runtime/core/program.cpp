#include "runtime/core/program.h"

#include <algorithm>
#include <array>
#include <deque>
#include <random>

#include "compiler/ops/op_facts.h"
#include "compiler/plan/loops.h"
#include "compiler/plan/op_place.h"
#include "compiler/plan/text.h"
#include "runtime/comm/communicator.h"
#include "runtime/core/exceptions.h"

namespace shardc {

/// What a message about an op ends with.
static auto EndOf(const Plan& plan, const Op& op) -> std::string {
  const std::string origin = OriginText(plan, op.origin);
  return origin.empty() ? "" : "; " + origin;
}

Program::Program(SectionKind section, Binder& binder, const Execution& execution)
    : section_(section), binder_(binder), execution_(execution) {
  const Section& source = binder.plan().section(section);
  const bool keeps_all = execution.guard != nullptr || execution.shuffle_seed;
  size_t body = 0;
  int64_t count = 0;
  for (size_t i = 0; i < source.ops.size(); ++i) {
    const Op& op = source.ops[i];
    const BufferId released = ReleasedBufferOf(op.body);
    const bool only_says = released.valid() || FactsOf(op).meaning == Meaning::Renamed;
    if (only_says && !keeps_all) {
      // Facts about memory; nothing happens.
      continue;
    }
    SetCheckContext(fmt::format("binding op {} of section {}", i, ToText(section)));
    BoundOp bound;
    bound.when = op.when;
    bound.index = static_cast<int32_t>(i);
    if (LoopEdgeOf(op) == LoopEdge::Begin) {
      bound.control = Control::RepeatBegin;
      bound.count = count = LoopCountOf(op);
      body = ops_.size() + 1;
    } else if (LoopEdgeOf(op) == LoopEdge::End) {
      bound.control = Control::RepeatEnd;
      bound.count = count;
      bound.body = body;
    } else if (released.valid()) {
      bound.control = Control::Release;
      bound.released = released;
    } else if (only_says) {
      bound.control = Control::Nothing;
    } else {
      const auto bind = [&]() -> Status {
        bound.call = BindOp(op.body, binder);
        if (execution.wrap) {
          bound.call = execution.wrap(section, i, std::move(bound.call));
        }
        return Success{};
      };
      if (const Status is_bound = CatchExceptions(bind); !is_bound) {
        throw ErrorThrown({is_bound.error().code,
                           fmt::format("binding section {} op {} {}: {}{}", ToText(section), i, ToText(op.kind()),
                                       is_bound.error().message, EndOf(binder.plan(), op))});
      }
      if (execution.guard != nullptr) {
        bound.touches = Guard::TouchesOf(binder.plan(), op, i);
      }
    }
    ops_.push_back(std::move(bound));
  }
  SetCheckContext("");
}

auto Program::Run(int64_t step) -> Status {
  const Moment start{.step = step, .repeat = 0};
  RETURN_IF_ERROR(execution_.shuffle_seed ? RunShuffled(start, *execution_.shuffle_seed) : RunInOrder(start));
  binder_.CountRun(section_);
  if (execution_.guard != nullptr) {
    if (Status status = execution_.guard->EndSection(); !status) {
      return Fail(status.error().code, "step {}, at the end of section {}: {}", step, ToText(section_),
                  status.error().message);
    }
  }
  return Success{};
}

auto Program::RunInOrder(Moment moment) -> Status {
  for (size_t i = 0; i < ops_.size(); ++i) {
    const BoundOp& bound = ops_[i];
    switch (bound.control) {
      case Control::RepeatBegin: moment.repeat = 0; break;
      case Control::RepeatEnd:
        if (++moment.repeat < bound.count) {
          i = bound.body - 1;
        } else {
          moment.repeat = 0;
        }
        break;
      case Control::Call:
      case Control::Nothing:
      case Control::Release: RETURN_IF_ERROR(RunOp(bound, moment)); break;
    }
  }
  return Success{};
}

auto Program::RunOp(const BoundOp& bound, const Moment& moment) -> Status {
  Status status = Success{};
  if (bound.control == Control::Call) {
    if (!bound.when.always() && (binder_.scalars()[bound.when.scalar] != 0) == bound.when.negated) {
      return status;
    }
    binder_.communicator().SetPosition(moment.step, section_, bound.index);
    status = CatchExceptions([&] { return execution_.guard == nullptr ? bound.call(moment) : Call(bound, moment); });
  } else if (bound.control == Control::Release && execution_.guard != nullptr) {
    status = execution_.guard->Release(bound.released);
  }
  if (!status) {
    return Context(bound.index, moment.step, status.error());
  }
  return status;
}

auto Program::Call(const BoundOp& bound, const Moment& moment) -> Status {
  RETURN_IF_ERROR(execution_.guard->BeforeOp(bound.touches));
  RETURN_IF_ERROR(bound.call(moment));
  return execution_.guard->AfterOp(bound.touches);
}

auto Program::Unroll() const -> std::vector<Turn> {
  std::vector<Turn> turns;
  // By event: the turn that signalled last. A wait is for the signal that stands nearest above it.
  std::vector<std::optional<size_t>> signalled(static_cast<size_t>(binder_.plan().num_events));
  int64_t repeat = 0;
  for (size_t i = 0; i < ops_.size(); ++i) {
    const BoundOp& bound = ops_[i];
    const Op& op = OpAt(bound.index);
    Turn turn{.op = i, .repeat = repeat, .waits = {}};
    for (const EventId event : op.waits) {
      if (const auto& signaller = signalled[static_cast<size_t>(event.index)]) {
        turn.waits.push_back(*signaller);
      }
    }
    if (op.signals.valid()) {
      signalled[static_cast<size_t>(op.signals.index)] = turns.size();
    }
    turns.push_back(std::move(turn));
    if (bound.control == Control::RepeatEnd) {
      if (++repeat < bound.count) {
        // The loop's head has a turn at each pass over the body.
        i = bound.body - 2;
      } else {
        repeat = 0;
      }
    }
  }
  return turns;
}

auto Program::RunShuffled(Moment moment, uint64_t seed) -> Status {
  std::seed_seq mixed{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32), static_cast<uint32_t>(section_),
                      static_cast<uint32_t>(moment.step)};
  std::mt19937_64 random(mixed);
  const std::vector<Turn> turns = Unroll();
  std::vector<bool> over(turns.size(), false);
  std::array<std::deque<size_t>, NumStreams> queues;
  for (size_t i = 0; i < turns.size(); ++i) {
    queues[static_cast<size_t>(OpAt(ops_[turns[i].op].index).stream)].push_back(i);
  }
  // Streams differ in how eager they are, so that each runs far ahead of the others under some seeds, and lags far
  // under others.
  std::array<uint64_t, NumStreams> eagerness{};
  for (uint64_t& weight : eagerness) {
    weight = uint64_t{1} << (random() % 8);
  }
  for (size_t done = 0; done < turns.size(); ++done) {
    std::array<uint64_t, NumStreams> weights{};
    uint64_t total = 0;
    for (size_t s = 0; s < NumStreams; ++s) {
      const bool ready = !queues[s].empty() &&
                         std::all_of(turns[queues[s].front()].waits.begin(), turns[queues[s].front()].waits.end(),
                                     [&](size_t earlier) { return over[earlier]; });
      weights[s] = ready ? eagerness[s] : 0;
      total += weights[s];
    }
    CHECK(total > 0, "no op of section {} may run", ToText(section_));
    uint64_t draw = random() % total;
    size_t stream = 0;
    while (draw >= weights[stream]) {
      draw -= weights[stream++];
    }
    const size_t next = queues[stream].front();
    queues[stream].pop_front();
    moment.repeat = turns[next].repeat;
    RETURN_IF_ERROR(RunOp(ops_[turns[next].op], moment));
    over[next] = true;
  }
  return Success{};
}

auto Program::OpAt(int32_t index) const -> const Op& {
  return binder_.plan().section(section_).ops[static_cast<size_t>(index)];
}

auto Program::Context(int32_t index, int64_t step, const Error& error) const -> Error {
  const Op& op = OpAt(index);
  return Error{error.code, fmt::format("step {} section {} op {} {}: {}{}", step, ToText(section_), index,
                                       ToText(op.kind()), error.message, EndOf(binder_.plan(), op))};
}

}  // namespace shardc
