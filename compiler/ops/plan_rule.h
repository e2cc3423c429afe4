// The name of something that a plan must keep to: a rule of the verifier, or a numbered constraint of an op. It stands
// in brackets at the end of each finding.
#pragma once

#include <string_view>

namespace shardc {

/// Made only by the literal `"read-undefined"_rule`, so that tests find every name in the sources.
class PlanRule {
 public:
  constexpr auto name() const -> std::string_view { return name_; }

 private:
  friend consteval auto operator""_rule(const char* name, size_t size) -> PlanRule;

  explicit constexpr PlanRule(std::string_view name) : name_(name) {}

  std::string_view name_;
};

consteval auto operator""_rule(const char* name, size_t size) -> PlanRule { return PlanRule({name, size}); }

}  // namespace shardc
