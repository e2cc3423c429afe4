// Which members of a job have ended without a word, by their connections to the store: the kernel closes those of a
// process that ends, however it ends, and keeps those of one that is stopped. The server of the store looks.
//
// A member says where it is by lines under MembersKey, "INDEX HOW NAME", of which its last one counts:
//   HOW = an address    of its connection, which stays open until the member says otherwise
//   HOW = "moves"       it closes the connection, and opens another one within MovesTime
//   HOW = "left"        it needs nobody any more, and nobody needs it
//
// An address is that which the member sees. If a router translates addresses, the server sees another one. So a member
// whose address was never seen counts as gone only if each connection that the server has is of a known member.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace shardc {

constexpr const char* MembersKey = "members";
constexpr const char* MemberMoves = "moves";
constexpr const char* MemberLeft = "left";

auto MemberLine(int64_t index, std::string_view how, std::string_view name) -> std::string;

class MemberWatch {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::seconds MovesTime{10};
  /// Somebody who saw more of it may say what happened.
  static constexpr std::chrono::seconds FirstWord{2};

  /// `lines`: all that members have said so far. `connected`: the other ends of the server's connections, at a moment
  /// after that. What to tell the others, once: "process 3 (node1) is gone".
  auto Look(std::string_view lines, const std::set<std::string>& connected, Clock::time_point now)
      -> std::optional<std::string>;
  /// Nobody joined, moved or went lately.
  auto is_quiet(Clock::time_point now) const -> bool { return now - changed_ > MovesTime; }

 private:
  struct Member {
    std::string how;
    std::string name;
    Clock::time_point since;
    bool is_seen = false;
  };

  auto Read(std::string_view lines, Clock::time_point now) -> void;

  std::map<int64_t, Member> members_;
  size_t num_read_ = 0;
  Clock::time_point changed_ = Clock::now();
  std::optional<Clock::time_point> gone_since_;
  bool has_told_ = false;
};

}  // namespace shardc
