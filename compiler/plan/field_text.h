// How one field of each type is spelled. Overloads for writing and for reading; reading never trusts its input.
#pragma once

#include <string>
#include <string_view>

#include "compiler/plan/plan.h"

namespace shardc {

/// The letter before an id of each kind, which also tells the kinds apart.
template <class IdType>
inline constexpr char IdPrefix = '?';
template <>
inline constexpr char IdPrefix<BufferId> = '$';
template <>
inline constexpr char IdPrefix<ValueId> = '%';
template <>
inline constexpr char IdPrefix<ParameterId> = 'p';
template <>
inline constexpr char IdPrefix<GroupId> = 'g';
template <>
inline constexpr char IdPrefix<UnitId> = 'u';
template <>
inline constexpr char IdPrefix<SubVectorId> = 'v';
template <>
inline constexpr char IdPrefix<EventId> = 'e';
template <>
inline constexpr char IdPrefix<HeadId> = 'h';

/// As a bare word where all characters are on the allow-list, else quoted.
auto QuoteIfNeeded(std::string_view text) -> std::string;
/// In double quotes, with \" \\ \n \t \r and \xHH for all that is not printable ASCII.
auto Quote(std::string_view text) -> std::string;

auto FieldText(const Plan& plan, bool value) -> std::string;
auto FieldText(const Plan& plan, int32_t value) -> std::string;
auto FieldText(const Plan& plan, int64_t value) -> std::string;
auto FieldText(const Plan& plan, uint64_t value) -> std::string;
/// Shortest decimal that reads back to the same double.
auto FieldText(const Plan& plan, double value) -> std::string;
auto FieldText(const Plan& plan, const std::string& value) -> std::string;
auto FieldText(const Plan& plan, Bytes value) -> std::string;
auto FieldText(const Plan& plan, AxisSet value) -> std::string;
auto FieldText(const Plan& plan, const RankExpr& value) -> std::string;
auto FieldText(const Plan& plan, ExitCode value) -> std::string;
auto FieldText(const Plan& plan, const std::vector<EventId>& value) -> std::string;
/// `@name`, or `@number` where the name would not read back.
auto FieldText(const Plan& plan, ScalarId value) -> std::string;
auto FieldText(const Plan& plan, const Predicate& value) -> std::string;
/// `parameter(p3)`, `gradient(p3)`, `gradient`, `vector(v2)`.
auto FieldText(const Plan& plan, ValueRole value) -> std::string;
template <NamedEnum E>
auto FieldText(const Plan&, E value) -> std::string {
  return std::string(ToText(value));
}
template <class Tag>
auto FieldText(const Plan&, Id<Tag> id) -> std::string {
  return IdPrefix<Id<Tag>> + std::to_string(id.index);
}

/// Reads fields against the tables seen so far. Each Read returns what it expected ("a number") on failure, else "".
class FieldParser {
 public:
  explicit FieldParser(const Plan& plan) : plan_(plan) {}

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
  auto Read(std::string_view text, std::vector<EventId>& value) const -> std::string;
  auto Read(std::string_view text, ScalarId& value) const -> std::string;
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
    constexpr char prefix = IdPrefix<Id<Tag>>;
    int32_t index = -1;
    if (text.starts_with(prefix) && Read(text.substr(1), index).empty() && index >= 0) {
      value = Id<Tag>{index};
      return {};
    }
    return fmt::format("an id such as {}0", prefix);
  }

 private:
  const Plan& plan_;
};

/// Reads "[512, 128]", at most 8 dims.
auto ReadDims(std::string_view text, Dims& dims) -> bool;

}  // namespace shardc
