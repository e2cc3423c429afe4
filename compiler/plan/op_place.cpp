#include "compiler/plan/op_place.h"

#include <fmt/format.h>

#include "compiler/plan/header.h"

namespace shardc {

auto OriginText(const Plan& plan, const Origin& origin) -> std::string {
  const std::string_view key = origin.key.text();
  if (origin.line > 0) {
    return fmt::format("from recipe line {}, {}", origin.line, key);
  }
  for (const std::string& set : plan.overrides) {
    if (!key.empty() && set.starts_with(key) && set.substr(key.size()).starts_with('=')) {
      return fmt::format("from --set {}", set);
    }
  }
  if (const PresetRow* preset = PresetOf(plan); preset != nullptr && !ValueIn(*preset, key).empty()) {
    return fmt::format("from the preset {}, {}", preset->name, key);
  }
  return key.empty() ? "" : fmt::format("from the default of {}", key);
}

auto OpPlaceText(const Plan& plan, SectionKind section, int64_t index) -> std::string {
  const std::vector<Op>& ops = plan.section(section).ops;
  if (index < 0 || index >= std::ssize(ops)) {
    return {};
  }
  const Op& op = ops[static_cast<size_t>(index)];
  const std::string origin = OriginText(plan, op.origin);
  return fmt::format("{}{} in section {}{}{}", ToText(op.kind()),
                     op.layer >= 0 ? fmt::format(" of layer {}", op.layer) : "", ToText(section),
                     origin.empty() ? "" : "; ", origin);
}

}  // namespace shardc
