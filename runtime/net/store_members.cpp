// What the members of a job tell each other by its store of whether they go on: that one has given up, and by which
// connection the server sees that one lives.
#include <algorithm>

#include "runtime/net/error_text.h"
#include "runtime/net/member_watch.h"
#include "runtime/net/store.h"
#include "runtime/net/tcp_store.h"

namespace shardc {

auto JobStore::Abandon(const Error& error) -> Status {
  const auto before = TryGet(AbandonedKey);
  return !before ? Status(before.error()) : *before ? Status(Success{}) : Set(AbandonedKey, PackError(error));
}

auto JobStore::CheckNotAbandoned() -> Status {
  const auto reason = TryGet(AbandonedKey);
  if (!reason || !*reason) {
    return reason ? Status(Success{}) : reason.error();
  }
  was_abandoned_ = true;
  return UnpackError(**reason);
}

auto JobStore::Join(int64_t member, const std::string& name) -> Status {
  return Append(MembersKey, MemberLine(member, client_->OwnAddress(), name));
}

auto JobStore::Move(int64_t member) -> Status { return Append(MembersKey, MemberLine(member, MemberMoves, "")); }

auto JobStore::Part(int64_t member) -> Status {
  // The server reads it even if it does not answer in time.
  constexpr double LongestParting = 1;
  return Append(MembersKey, MemberLine(member, MemberLeft, ""),
                DeadlineIn(Seconds{std::min(timeout_.value, LongestParting)}));
}

}  // namespace shardc
