// Where buffers end, where scratch comes from, and which stream each op runs on.
//
// Needs: all sections. Gives: a release behind the last use of every buffer that does not outlive its section.
//   1. give each op with a SCRATCH field a buffer of its own
//   2. put collectives of slices on the stream of their axis, host work on the host's
//   3. release each transient buffer behind the last op that touches it; behind the loop, if it was written before it
#include <unordered_map>

#include "compiler/ops/emitter.h"
#include "compiler/passes/pass.h"

namespace shardc {

static auto AddScratch(Plan& plan, Section& section) -> void {
  std::vector<Op> none;
  Emitter emitter(&plan, &none, PassKind::Schedule);
  for (Op& op : section.ops) {
    VisitBody(op.body, [&](auto& body) {
      using Body = std::remove_cvref_t<decltype(body)>;
      if constexpr (HasScratch<Body>) {
        const int64_t elements = CeilDiv(ScratchBytes(body, plan).value, SizeOf(DType::F32));
        body.scratch = emitter.New({DType::F32, {elements}}, Category::Workspace, fmt::format("{}.scratch", Body::Mnemonic));
      }
    });
  }
}

static auto StreamOf(const OpBody& body) -> Stream {
  if (std::holds_alternative<op::AllGather>(body) || std::holds_alternative<op::ReduceScatter>(body)) {
    return Stream::Dp;
  }
  if (std::holds_alternative<op::LoadTokens>(body)) {
    return Stream::Host;
  }
  return Stream::Compute;
}

static auto AddReleases(Plan& plan, Section& section) -> void {
  // Last touch of each transient buffer; a buffer from before a loop is last touched at the loop's end.
  std::unordered_map<BufferId, size_t> last_touch;
  std::unordered_map<BufferId, size_t> first_touch;
  std::vector<BufferId> order;
  size_t loop_begin = 0;
  bool in_loop = false;
  std::vector<BufferId> held_by_loop;
  for (size_t i = 0; i < section.ops.size(); ++i) {
    const Op& op = section.ops[i];
    if (op.As<op::Repeat>()) {
      in_loop = true;
      loop_begin = i;
    }
    for (const Access& access : AccessesOf(op.body)) {
      const BufferId buffer = plan.values[access.value].buffer;
      if (IsPersistent(plan.buffers[buffer].arena)) {
        continue;
      }
      if (first_touch.try_emplace(buffer, i).second) {
        order.push_back(buffer);
      }
      last_touch[buffer] = i;
      if (in_loop && first_touch.at(buffer) < loop_begin) {
        held_by_loop.push_back(buffer);
      }
    }
    if (op.As<op::EndRepeat>()) {
      in_loop = false;
      for (const BufferId buffer : held_by_loop) {
        last_touch[buffer] = i;
      }
      held_by_loop.clear();
    }
  }

  std::unordered_map<size_t, std::vector<BufferId>> released_at;
  for (const BufferId buffer : order) {
    released_at[last_touch.at(buffer)].push_back(buffer);
  }
  std::vector<Op> ops;
  for (size_t i = 0; i < section.ops.size(); ++i) {
    const Op& op = section.ops[i];
    ops.push_back(op);
    const auto released = released_at.find(i);
    if (released == released_at.end()) {
      continue;
    }
    Emitter emitter(&plan, &ops, PassKind::Schedule);
    emitter.set_layer(op.layer);
    emitter.set_phase(op.phase);
    for (const BufferId buffer : released->second) {
      emitter.Emit(op::Release{.buffer = buffer});
    }
  }
  section.ops = std::move(ops);
}

auto Schedule(Plan plan, PassContext&) -> ErrorOr<Plan> {
  for (Section& section : plan.sections) {
    AddScratch(plan, section);
    for (Op& op : section.ops) {
      op.stream = StreamOf(op.body);
    }
    AddReleases(plan, section);
  }
  return plan;
}

}  // namespace shardc
