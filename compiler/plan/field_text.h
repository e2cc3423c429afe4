// How one field of each type is spelled. Overloads for writing and for reading; reading never trusts its input.
#pragma once

#include <string>
#include <string_view>

#include "compiler/base/text/split.h"
#include "compiler/plan/declared_names.h"
#include "compiler/plan/names.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/quoted_text.h"

namespace shardc {

auto FieldText(bool value) -> std::string;
auto FieldText(int32_t value) -> std::string;
auto FieldText(int64_t value) -> std::string;
auto FieldText(uint64_t value) -> std::string;
/// Returns the shortest decimal that reads back to the same double.
auto FieldText(double value) -> std::string;
auto FieldText(const std::string& value) -> std::string;
auto FieldText(const std::vector<int64_t>& value) -> std::string;
auto FieldText(Bytes value) -> std::string;
auto FieldText(AxisSet value) -> std::string;
auto FieldText(const RankExpr& value) -> std::string;
auto FieldText(ExitCode value) -> std::string;
template <NamedEnum E>
auto FieldText(E value) -> std::string {
  return std::string(ToText(value));
}

/// Appends a field as its word, where one of a plan's things is named by its name.
template <class T>
auto AppendField(const PlanNames&, const T& value, std::string& out) -> void {
  out += FieldText(value);
}
template <class Tag>
auto AppendField(const PlanNames& names, const Id<Tag>& id, std::string& out) -> void {
  names.Append(id, out);
}
inline auto AppendField(const PlanNames& names, const Predicate& value, std::string& out) -> void {
  names.Append(value.scalar, out, value.negated ? "!" : "");
}
auto AppendField(const PlanNames& names, const std::vector<EventId>& value, std::string& out) -> void;
/// Appends `parameter(lm_head.weight)`, `gradient(lm_head.weight)`, `gradient`, `vector(head)`.
auto AppendField(const PlanNames& names, const ValueRole& value, std::string& out) -> void;
/// Returns a role as a text for messages and JSON, without quotes round its name.
auto RoleText(const PlanNames& names, ValueRole value) -> std::string;

/// Reads fields. Each Read returns what it expected ("a number") on failure, else "".
class FieldParser {
 public:
  /// Reads fields that name nothing.
  FieldParser() = default;
  /// Asks `names` for what a field names, and adds the events that fields name to them.
  explicit FieldParser(DeclaredNames* names) : names_(names) {}

  auto Read(std::string_view text, bool& value) const -> std::string;
  auto Read(std::string_view text, int32_t& value) const -> std::string;
  auto Read(std::string_view text, int64_t& value) const -> std::string;
  auto Read(std::string_view text, uint64_t& value) const -> std::string;
  /// Refuses NaN and infinities.
  auto Read(std::string_view text, double& value) const -> std::string;
  auto Read(std::string_view text, std::string& value) const -> std::string;
  auto Read(std::string_view text, Bytes& value) const -> std::string;
  auto Read(std::string_view text, AxisSet& value) const -> std::string;
  auto Read(std::string_view text, RankExpr& value) const -> std::string;
  auto Read(std::string_view text, ExitCode& value) const -> std::string;
  /// Reads items between commas.
  template <class Item>
  auto Read(std::string_view text, std::vector<Item>& value) const -> std::string {
    value.clear();
    for (const std::string_view item : SplitAt(text, ",")) {
      if (std::string expected = Read(item, value.emplace_back()); !expected.empty()) {
        return expected;
      }
    }
    return {};
  }
  auto Read(std::string_view text, Predicate& value) const -> std::string;
  auto Read(std::string_view text, ValueRole& value) const -> std::string;
  template <NamedEnum E>
  auto Read(std::string_view text, E& value) const -> std::string {
    if (const auto known = FromText<E>(text)) {
      value = *known;
      return {};
    }
    return fmt::format("one of {}", fmt::join(EnumNames<E>::names, ", "));
  }
  template <class Tag>
  auto Read(std::string_view text, Id<Tag>& value) const -> std::string {
    constexpr std::string_view sigil = Sigil<Id<Tag>>;
    value = names_ != nullptr && text.starts_with(sigil) ? names_->Find<Id<Tag>>(text.substr(sigil.size())) : Id<Tag>{};
    return value.valid() ? "" : std::string(KindWords<Id<Tag>>);
  }

 private:
  DeclaredNames* names_ = nullptr;
};

/// Reads "[512, 128]", at most 8 dims.
auto ReadDims(std::string_view text, Dims& dims) -> bool;

}  // namespace shardc
