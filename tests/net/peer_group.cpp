// Groups over Gloo: what they exchange, and what their members learn of one that dies or is silent.
#include "runtime/net/peer_group.h"

#include "tests/net/members.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

using GroupMain = std::function<std::string(PeerGroup&)>;

struct GroupOptions {
  int64_t size = 3;
  Seconds timeout{20};
  std::string host = "127.0.0.1";
};

/// Processes that are a group, each of which runs `main`.
auto MakeGroup(const StoreServer& server, const GroupOptions& options, const GroupMain& main)
    -> std::unique_ptr<Members> {
  return std::make_unique<Members>(options.size, [&server, options, main](int64_t i) -> std::string {
    const auto store = ConnectTo(server, "job", {20}, options.host);
    const auto group = PeerGroup::Create(
        *store,
        {.name = "dp", .index = i, .size = options.size, .own_address = options.host, .timeout = options.timeout});
    return group ? main(**group) : group.error().message;
  });
}

/// What `from` sends to `to`, byte by byte.
auto ByteOf(int64_t from, int64_t to, int64_t i) -> std::byte {
  return static_cast<std::byte>(from * 31 + to * 7 + i * 13 + (i >> 8));
}

auto ExchangeIsRight(PeerGroup& group, int64_t bytes) -> std::string {
  const int64_t size = group.size();
  std::vector<std::byte> to_each(static_cast<size_t>(size * bytes));
  std::vector<std::byte> from_each(to_each.size());
  std::vector<std::byte> all(to_each.size());
  for (int64_t peer = 0; peer < size; ++peer) {
    for (int64_t i = 0; i < bytes; ++i) {
      to_each[static_cast<size_t>(peer * bytes + i)] = ByteOf(group.index(), peer, i);
    }
  }
  const std::byte* own = to_each.data() + group.index() * bytes;
  const Status exchanged = group.AllToAll(to_each.data(), from_each.data(), bytes);
  const Status gathered = exchanged ? group.AllGather(own, bytes, all.data()) : exchanged;
  if (!gathered) {
    return gathered.error().message;
  }
  for (int64_t peer = 0; peer < size; ++peer) {
    for (int64_t i = 0; i < bytes; ++i) {
      if (from_each[static_cast<size_t>(peer * bytes + i)] != ByteOf(peer, group.index(), i)) {
        return fmt::format("all-to-all of {} bytes: wrong at byte {} of member {}", bytes, i, peer);
      }
      if (all[static_cast<size_t>(peer * bytes + i)] != ByteOf(peer, peer, i)) {
        return fmt::format("all-gather of {} bytes: wrong at byte {} of member {}", bytes, i, peer);
      }
    }
  }
  // In place, with nothing to copy.
  std::vector<std::byte> in_place(all.size());
  std::copy_n(own, bytes, in_place.begin() + group.index() * bytes);
  const Status again = group.AllGather(in_place.data() + group.index() * bytes, bytes, in_place.data());
  return !again ? again.error().message : in_place == all ? "" : "all-gather in place: wrong";
}

auto ExchangesAreRight(PeerGroup& group) -> std::string {
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{4096}, int64_t{65537}, int64_t{8} << 20}) {
    if (const std::string wrong = ExchangeIsRight(group, bytes); !wrong.empty()) {
      return wrong;
    }
    if (const Status met = group.Barrier(); !met) {
      return met.error().message;
    }
  }
  return "right";
}

/// Exchanges until one fails; gives its text.
auto ExchangeUntilFailure(PeerGroup& group) -> std::string {
  const auto size = static_cast<size_t>(group.size());
  constexpr size_t Bytes = 1 << 16;
  const std::vector<std::byte> to_each(size * Bytes);
  std::vector<std::byte> from_each(size * Bytes);
  while (true) {
    if (const Status status = group.AllToAll(to_each.data(), from_each.data(), Bytes); !status) {
      EXPECT_EQ(status.error().code, ExitCode::Environment);
      EXPECT_EQ(group.Barrier().error().message, status.error().message) << "the first error stays";
      return status.error().message;
    }
  }
}

TEST(PeerGroup, ExchangesBytesOfAnyLength) {
  const StoreServer server = StartServer();
  for (const int64_t size : {3, 2}) {
    const StoreServer own_server = StartServer();
    EXPECT_THAT(MakeGroup(own_server, {.size = size}, ExchangesAreRight)->Texts(), Each("right"));
  }
}

TEST(PeerGroup, OfOneHasNobodyToWaitFor) {
  const StoreServer server = StartServer();
  const auto store = ConnectTo(server);
  const auto group = PeerGroup::Create(*store, {.name = "dp", .own_address = "127.0.0.1"});
  ASSERT_TRUE(group.ok());
  EXPECT_EQ(ExchangesAreRight(**group), "right");
}

TEST(PeerGroup, OverIpv6) {
  const StoreServer server = StartServer("::1");
  EXPECT_THAT(MakeGroup(server, {.host = "::1"}, ExchangesAreRight)->Texts(), Each("right"));
}

TEST(PeerGroup, ListensOnTheAddressOfAnInterface) {
  const StoreServer server = StartServer();
  const Members members(2, [&](int64_t i) -> std::string {
    const auto store = ConnectTo(server);
    const auto group = PeerGroup::Create(*store, {.name = "dp", .index = i, .size = 2, .own_address = "lo"});
    return group ? ExchangesAreRight(**group) : group.error().message;
  });
  EXPECT_THAT(members.Texts(), Each("right"));
  const auto store = ConnectTo(server);
  const auto elsewhere = PeerGroup::Create(*store, {.name = "tp", .size = 2, .own_address = "192.0.2.1"});
  ASSERT_FALSE(elsewhere.ok());
  EXPECT_EQ(elsewhere.error().code, ExitCode::Environment);
  EXPECT_THAT(elsewhere.error().message, HasSubstr("192.0.2.1"));
}

TEST(PeerGroup, ManyMembersAskTheStoreAsOftenAsFew) {
  const auto operations = [](int64_t size) {
    const StoreServer server = StartServer();
    const Members members(size, [&](int64_t i) -> std::string {
      const auto store = ConnectTo(server);
      const auto group =
          PeerGroup::Create(*store, {.name = "dp", .index = i, .size = size, .own_address = "127.0.0.1"});
      const Status met = group ? (*group)->Barrier() : group.error();
      return met ? fmt::format("{}", store->num_operations() - (store->num_operations() == 5 ? 1 : 0))
                 : met.error().message;
    });
    return members.Texts();
  };
  EXPECT_THAT(operations(2), Each("4")) << "and one more by the last to come";
  EXPECT_THAT(operations(16), Each("4"));
}

TEST(PeerGroup, MemberThatDoesNotComeIsNamed) {
  const StoreServer server = StartServer();
  const auto store = ConnectTo(server);
  const auto group =
      PeerGroup::Create(*store, {.name = "dp", .index = 0, .size = 2, .own_address = "127.0.0.1", .timeout = {0.5}});
  ASSERT_FALSE(group.ok());
  EXPECT_THAT(group.error().message, HasSubstr("1 of 2 members did not come to group/dp"));
}

TEST(PeerGroup, KilledMemberEndsTheCallsOfTheOthers) {
  const StoreServer server = StartServer();
  const auto members = MakeGroup(server, {.timeout = {60}}, [](PeerGroup& group) -> std::string {
    if (group.index() == 1) {
      alarm(0);
      std::thread([] {
        Sleep(100);
        kill(getpid(), SIGKILL);
      }).detach();
    }
    return ExchangeUntilFailure(group);
  });
  const auto begin = Clock::now();
  EXPECT_EQ(members->Text(1), "(signal 9)");
  for (const int64_t i : {0, 2}) {
    EXPECT_THAT(members->Text(i), AllOf(HasSubstr("of the group dp (127.0.0.1)"), HasSubstr("the connection")));
  }
  EXPECT_LT(SecondsSince(begin), 5);
}

TEST(PeerGroup, SilentMemberEndsTheCallsOfTheOthersAfterTheTimeout) {
  const StoreServer server = StartServer();
  const auto members = MakeGroup(server, {.timeout = {2}}, [](PeerGroup& group) -> std::string {
    if (group.index() == 1) {
      Sleep(100);
      raise(SIGSTOP);
    }
    return ExchangeUntilFailure(group);
  });
  const auto begin = Clock::now();
  const std::vector<std::string> texts = {members->Text(0), members->Text(2)};
  EXPECT_GT(SecondsSince(begin), 1);
  EXPECT_LT(SecondsSince(begin), 5);
  // The first to give up closes its connections.
  EXPECT_THAT(texts, testing::Contains("member 1 of the group dp (127.0.0.1) did not come within 2 s"));
  EXPECT_THAT(texts, Each(HasSubstr("of the group dp (127.0.0.1)")));
}

}  // namespace
}  // namespace shardc
