#include "runtime/comm/gloo_groups.h"

namespace shardc {

template <class Function>
auto GlooGroups::WaitForMembers(AxisSet axes, const Function& exchange) -> Status {
  const auto& [group, ranks] = members_[axes.bits];
  CHECK(group != nullptr, "no group over {} was made", ToText(axes));
  const int64_t next = ranks[static_cast<size_t>((group->index() + 1) % group->size())];
  member_->block().SetWaitsFor(member_->rank(), next, group->size() - 1);
  Status status = exchange(*group);
  member_->block().SetWaitsFor(member_->rank(), 0, 0);
  return status;
}

auto GlooGroups::Gather(AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
  return WaitForMembers(axes, [&](PeerGroup& group) { return group.AllGather(mine, bytes, all); });
}

auto GlooGroups::AllToAll(AxisSet axes, const std::byte* to_each, int64_t stride, std::byte* from_each, int64_t bytes)
    -> Status {
  return WaitForMembers(axes, [&](PeerGroup& group) { return group.AllToAll(to_each, stride, from_each, bytes); });
}

}  // namespace shardc
