#include "runtime/core/program.h"

#include "compiler/plan/text.h"
#include "runtime/comm/communicator.h"

namespace shardc {

Program::Program(SectionKind section, Binder& binder) : section_(section), binder_(binder) {
  const Section& source = binder.plan().section(section);
  size_t body = 0;
  int64_t count = 0;
  for (size_t i = 0; i < source.ops.size(); ++i) {
    const Op& op = source.ops[i];
    if (op.As<op::Release>() != nullptr || op.As<op::Carry>() != nullptr) {
      // Facts about memory; nothing happens.
      continue;
    }
    SetCheckContext(fmt::format("binding op {} of section {}", i, ToText(section)));
    BoundOp bound{.control = Control::Call, .call = {}, .when = op.when, .index = static_cast<int32_t>(i), .count = 0, .body = 0};
    if (const auto* repeat = op.As<op::Repeat>()) {
      bound.control = Control::RepeatBegin;
      bound.count = count = repeat->count;
      body = ops_.size() + 1;
    } else if (op.As<op::EndRepeat>() != nullptr) {
      bound.control = Control::RepeatEnd;
      bound.count = count;
      bound.body = body;
    } else {
      bound.call = BindOp(op.body, binder);
    }
    ops_.push_back(std::move(bound));
  }
  SetCheckContext("");
}

auto Program::Run(int64_t step) -> Status {
  const ScalarTable& scalars = binder_.scalars();
  Communicator& communicator = binder_.communicator();
  Moment moment{.step = step, .repeat = 0};
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
        if (!bound.when.always() && (scalars[bound.when.scalar] != 0) == bound.when.negated) {
          break;
        }
        communicator.SetPosition(step, bound.index);
        if (Status status = bound.call(moment); !status) {
          return Context(bound, step, status.error());
        }
        break;
    }
  }
  return Success{};
}

auto Program::Context(const BoundOp& bound, int64_t step, const Error& error) const -> Error {
  const Op& op = binder_.plan().section(section_).ops[static_cast<size_t>(bound.index)];
  std::string text = fmt::format("step {} section {} op {} {}: {}", step, ToText(section_), bound.index,
                                 ToText(op.kind()), error.message);
  if (op.origin.line > 0) {
    text += fmt::format("; from recipe line {}, {}", op.origin.line, op.origin.key);
  }
  return Error{error.code, std::move(text)};
}

}  // namespace shardc
