#include "tests/golden/without_scratch.h"

#include <algorithm>
#include <set>

#include "compiler/ops/ops.h"
#include "compiler/passes/pass.h"
#include "compiler/plan/field_text.h"
#include "compiler/plan/fields.h"
#include "tests/support/text_lines.h"

namespace shardc {

namespace {

/// Calls `function(ValueId&)` for the scratch of each op that has some.
template <class AnyPlan, class Function>
auto ForEachScratch(AnyPlan& plan, const Function& function) -> void {
  for (auto& section : plan.sections) {
    for (auto& op : section.ops) {
      VisitBody(op.body, [&](auto& body) {
        if constexpr (requires { body.scratch; }) {
          if (body.scratch.valid()) {
            function(body.scratch);
          }
        }
      });
    }
  }
}

auto Passed(ErrorOr<Plan> plan) -> Plan {
  CHECK(plan.ok(), "{}", plan.error().message);
  return *std::move(plan);
}

/// ` name=f32[8, 8]` for operands, ` name=value` for constants.
struct TypeWriter {
  const Plan& plan;
  std::string& out;

  auto Write(std::string_view name, ValueId id) -> void {
    if (id.valid() && name != "scratch") {
      const Value& value = plan.values[id];
      out += fmt::format(" {}={}{}", name, ToText(value.dtype), ToText(value.shape));
    }
  }
  auto In(std::string_view name, ValueId id) -> void { Write(name, id); }
  auto Out(std::string_view name, ValueId id) -> void { Write(name, id); }
  auto Over(std::string_view name, ValueId id, ValueId) -> void { Write(name, id); }
  auto Acc(std::string_view name, ValueId id, ValueId) -> void { Write(name, id); }
  auto InOut(std::string_view name, ValueId id) -> void { Write(name, id); }
  auto Scratch(std::string_view, ValueId) -> void {}
  auto Whole(std::string_view, BufferId) -> void {}
  template <class T>
  auto Attr(std::string_view name, const T& value) -> void {
    if constexpr (!IsId<T>) {
      out += fmt::format(" {}={}", name, FieldText(value));
    }
  }
};

}  // namespace

auto WithoutScratch(Plan plan) -> Plan {
  std::set<BufferId> buffers;
  ForEachScratch(plan, [&](ValueId& scratch) {
    buffers.insert(plan.values[scratch].buffer);
    scratch = {};
  });
  for (const BufferId scratch : buffers) {
    plan.buffers[scratch].bytes = {};
  }
  for (Section& section : plan.sections) {
    std::erase_if(section.ops, [&](const Op& op) {
      const auto* release = op.As<op::Release>();
      return release != nullptr && buffers.contains(release->buffer);
    });
  }
  PassContext context{};
  if (plan.Established(PassKind::Allocate)) {
    plan.arena_bytes = {};
    plan = Passed(Allocate(std::move(plan), context));
  }
  if (plan.Established(PassKind::Synchronize)) {
    for (Section& section : plan.sections) {
      for (Op& op : section.ops) {
        op.waits.clear();
        op.signals = {};
      }
    }
    plan.num_events = 0;
    plan = Passed(Synchronize(std::move(plan), context));
  }
  return plan;
}

auto PrintWithoutScratch(const Plan& plan, const PrintOptions& options) -> std::string {
  const PlanNames names(plan);
  std::set<std::string> scratch;
  ForEachScratch(plan, [&](ValueId id) {
    scratch.insert("value " + names.Text(id));
    scratch.insert("buffer " + names.Text(plan.values[id].buffer));
  });
  std::string text;
  for (const std::string& line : LinesOf(PrintPlan(WithoutScratch(plan), options))) {
    const size_t name = line.find(' ');
    if (name == std::string::npos || !scratch.contains(line.substr(0, line.find(' ', name + 1)))) {
      text += line + "\n";
    }
  }
  return text;
}

auto ScratchLines(const Plan& plan) -> std::vector<std::string> {
  std::vector<std::string> lines;
  for (const Section& section : plan.sections) {
    for (const Op& op : section.ops) {
      VisitBody(op.body, [&](const auto& body) {
        if constexpr (requires { body.scratch; }) {
          if (body.scratch.valid()) {
            std::string line(ToText(op.kind()));
            VisitFields(body, TypeWriter{plan, line});
            lines.push_back(fmt::format("{}: {} bytes", line, plan.values[body.scratch].bytes().value));
          }
        }
      });
    }
  }
  return lines;
}

}  // namespace shardc
