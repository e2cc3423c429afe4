#include "runtime/net/member_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "compiler/base/text/joined.h"

namespace shardc {

auto MemberLine(int64_t index, std::string_view how, std::string_view name) -> std::string {
  return fmt::format("{} {} {}\n", index, how, name);
}

auto MemberWatch::Read(std::string_view lines, Clock::time_point now) -> void {
  lines.remove_prefix(std::min(num_read_, lines.size()));
  for (size_t end = lines.find('\n'); end != std::string_view::npos; end = lines.find('\n')) {
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end + 1);
    num_read_ += end + 1;
    int64_t index = 0;
    const auto parsed = std::from_chars(line.data(), line.data() + line.size(), index);
    const auto how_begin = std::min(static_cast<size_t>(parsed.ptr - line.data()) + 1, line.size());
    const size_t how_end = line.find(' ', how_begin);
    if (parsed.ec != std::errc() || how_end == std::string_view::npos) {
      continue;
    }
    Member& member = members_[index];
    const std::string_view name = line.substr(how_end + 1);
    member = {.how = std::string(line.substr(how_begin, how_end - how_begin)),
              .name = name.empty() ? member.name : std::string(name),
              .since = now};
    changed_ = now;
  }
}

auto MemberWatch::Look(std::string_view lines, const std::set<std::string>& connected, Clock::time_point now)
    -> std::optional<std::string> {
  Read(lines, now);
  size_t num_connected = 0;
  for (auto& [index, member] : members_) {
    const bool is_connected = connected.contains(member.how);
    member.is_seen = member.is_seen || is_connected;
    num_connected += is_connected ? 1 : 0;
  }
  const bool all_are_known = num_connected == connected.size();
  std::vector<std::string> gone;
  for (const auto& [index, member] : members_) {
    if (member.how == MemberMoves
            ? now - member.since > MovesTime
            : member.how != MemberLeft && !connected.contains(member.how) && (member.is_seen || all_are_known)) {
      gone.push_back(member.name);
    }
  }
  if (gone.empty() || has_told_) {
    gone_since_.reset();
    return std::nullopt;
  }
  gone_since_ = gone_since_.value_or(now);
  if (now - *gone_since_ < FirstWord) {
    return std::nullopt;
  }
  has_told_ = true;
  constexpr size_t MostNamed = 4;
  return fmt::format("{} {} gone", Listed(gone, MostNamed), gone.size() == 1 ? "is" : "are");
}

}  // namespace shardc
