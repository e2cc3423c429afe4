// Groups over Gloo: what they exchange, and what their members learn of one that dies or is silent.
#include "runtime/net/peer_group.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <ranges>
#include <thread>

#include "tests/net/members.h"

namespace shardc {
namespace {

class PeerGroupTest : public NetTest {};

using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;

using GroupMain = std::function<std::string(PeerGroup&)>;

struct GroupOptions {
  std::string name = "dp";
  int64_t size = 3;
  Seconds timeout{20};
  std::string host = "127.0.0.1";
  /// "node0", "node1", ...
  bool hosts_have_names = false;
};

/// Processes that are a group, each of which runs `main`.
auto MakeGroup(const StoreServer& server, const GroupOptions& options, const GroupMain& main)
    -> std::unique_ptr<Members> {
  return std::make_unique<Members>(options.size, [&server, options, main](int64_t i) -> std::string {
    const auto store = ConnectTo(server, "job", {20}, options.host);
    const auto group = PeerGroup::Create(*store, {.name = options.name,
                                                  .index = i,
                                                  .size = options.size,
                                                  .own_address = options.host,
                                                  .host_name = options.hosts_have_names ? fmt::format("node{}", i) : "",
                                                  .timeout = options.timeout});
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
  // The call leaves the own slot alone.
  std::copy_n(own, bytes, from_each.begin() + group.index() * bytes);
  const Status exchanged = group.AllToAll(to_each.data(), bytes, from_each.data(), bytes);
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
  // Out of a vector of which each member's slice is longer than what is sent.
  std::vector<std::byte> strided(static_cast<size_t>(size * (bytes + 3)));
  for (int64_t peer = 0; peer < size; ++peer) {
    std::copy_n(to_each.data() + peer * bytes, bytes, strided.begin() + peer * (bytes + 3));
  }
  std::vector<std::byte> from_strided(from_each.size());
  std::copy_n(own, bytes, from_strided.begin() + group.index() * bytes);
  const Status sent = group.AllToAll(strided.data(), bytes + 3, from_strided.data(), bytes);
  if (!sent || from_strided != from_each) {
    return sent ? fmt::format("all-to-all of {} bytes with a stride: wrong", bytes) : sent.error().message;
  }
  // In place, with nothing to copy.
  std::vector<std::byte> in_place(all.size());
  std::copy_n(own, bytes, in_place.begin() + group.index() * bytes);
  const Status again = group.AllGather(in_place.data() + group.index() * bytes, bytes, in_place.data());
  return !again ? again.error().message : in_place == all ? "" : "all-gather in place: wrong";
}

auto ExchangesAreRight(PeerGroup& group) -> std::string {
  for (const int64_t bytes : {0, 1, 4096, 65537}) {
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
auto ExchangeUntilFailure(PeerGroup& group, size_t bytes) -> std::string {
  const auto size = static_cast<size_t>(group.size());
  const std::vector<std::byte> to_each(size * bytes);
  std::vector<std::byte> from_each(size * bytes);
  while (true) {
    const auto length = static_cast<int64_t>(bytes);
    if (const Status status = group.AllToAll(to_each.data(), length, from_each.data(), length); !status) {
      EXPECT_EQ(status.error().code, ExitCode::Environment);
      EXPECT_EQ(group.Barrier().error().message, status.error().message) << "the first error stays";
      return status.error().message;
    }
  }
}

TEST_F(PeerGroupTest, ExchangesBytesOfAnyLength) {
  const StoreServer server = StartServer();
  for (const int64_t size : {3, 2, 17}) {
    EXPECT_THAT(MakeGroup(server, {.name = fmt::format("of {}", size), .size = size}, ExchangesAreRight)->Texts(),
                Each("right"));
  }
  EXPECT_THAT(MakeGroup(server, {}, [](PeerGroup& group) { return ExchangeIsRight(group, int64_t{8} << 20); })->Texts(),
              Each(""));
}

TEST_F(PeerGroupTest, ThreadsOfGlooDoNotInterruptTheirMember) {
  const StoreServer server = StartServer();
  const auto members = MakeGroup(server, {}, [](PeerGroup&) -> std::string {
    int64_t batch_threads = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      batch_threads += sched_getscheduler(std::stoi(thread.path().filename())) == SCHED_BATCH ? 1 : 0;
    }
    return fmt::format("{} of Gloo, c10d and the watch, {} of its own", batch_threads,
                       sched_getscheduler(0) == SCHED_BATCH ? 1 : 0);
  });
  EXPECT_THAT(members->Texts(), Each("3 of Gloo, c10d and the watch, 0 of its own"));
}

TEST_F(PeerGroupTest, OfOneHasNobodyToWaitFor) {
  const StoreServer server = StartServer();
  const auto store = ConnectTo(server);
  const auto group = PeerGroup::Create(*store, {.name = "dp", .own_address = "127.0.0.1"});
  ASSERT_TRUE(group.ok()) << group.error().message;
  EXPECT_EQ(ExchangesAreRight(**group), "right");
}

TEST_F(PeerGroupTest, OverIpv6) {
  const StoreServer server = StartServer("::1");
  EXPECT_THAT(MakeGroup(server, {.host = "::1"}, ExchangesAreRight)->Texts(), Each("right"));
}

TEST_F(PeerGroupTest, ListensOnTheAddressOfAnInterface) {
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
  EXPECT_EQ(elsewhere.error().message, "the group tp cannot listen on 192.0.2.1: it is no address of this host");
}

TEST_F(PeerGroupTest, ManyMembersAskTheStoreAsOftenAsFew) {
  const auto operations = [](int64_t size) {
    const StoreServer server = StartServer();
    const Members members(size, [&](int64_t i) -> std::string {
      const auto store = ConnectTo(server);
      const auto group =
          PeerGroup::Create(*store, {.name = "dp", .index = i, .size = size, .own_address = "127.0.0.1"});
      const Status met = group ? (*group)->Barrier() : group.error();
      return met ? fmt::format("{}", store->num_operations()) : met.error().message;
    });
    return members.Texts();
  };
  // Two more by the last to come.
  EXPECT_THAT(operations(2), Each(AnyOf("5", "7")));
  EXPECT_THAT(operations(16), Each(AnyOf("5", "7")));
}

auto NumSockets() -> int64_t {
  int64_t count = 0;
  for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(file, gone).string().starts_with("socket:") ? 1 : 0;
  }
  return count;
}

TEST_F(PeerGroupTest, ManyMembersGatherByFewConnections) {
  constexpr int64_t Size = 40;
  const StoreServer server = StartServer();
  const Members members(Size, [&](int64_t i) -> std::string {
    const auto store = ConnectTo(server);
    const int64_t before = NumSockets();
    const auto group = PeerGroup::Create(*store, {.name = "dp", .index = i, .size = Size, .own_address = "127.0.0.1"});
    if (!group) {
      return group.error().message;
    }
    std::vector<int64_t> all(Size);
    const Status gathered =
        (*group)->AllGather(reinterpret_cast<const std::byte*>(&i), sizeof i, reinterpret_cast<std::byte*>(all.data()));
    if (!gathered) {
      return gathered.error().message;
    }
    EXPECT_TRUE(std::ranges::equal(all, std::views::iota(int64_t{0}, Size)));
    // Those that are 1, 2, 4, 8, 16 and 32 members away in both directions, of which -32 is 8; and a socket that
    // listens.
    return NumSockets() - before <= 12 ? "few" : fmt::format("{} sockets", NumSockets() - before);
  });
  EXPECT_THAT(members.Texts(), Each("few"));
}

TEST_F(PeerGroupTest, MemberThatDoesNotComeIsNamed) {
  const StoreServer server = StartServer();
  const auto store = ConnectTo(server);
  const auto group =
      PeerGroup::Create(*store, {.name = "dp", .index = 0, .size = 2, .own_address = "127.0.0.1", .timeout = {0.5}});
  ASSERT_FALSE(group.ok());
  EXPECT_THAT(group.error().message, HasSubstr("1 of 2 members of the group dp did not come within"));
}

// The messages are long, so that it dies in the middle of some. Most often the others have an error at once. Rarely,
// one of them waits for a message that is half there, until its timeout (docs/decisions/0007).
TEST_F(PeerGroupTest, KilledMemberEndsTheCallsOfTheOthers) {
  constexpr double Timeout = 5;
  const StoreServer server = StartServer();
  for (const int milliseconds : {20, 40, 60}) {
    const auto members =
        MakeGroup(server, {.name = fmt::format("dp{}", milliseconds), .timeout = {Timeout}}, [=](PeerGroup& group) {
          if (group.index() == 1) {
            std::thread([=] {
              Sleep(milliseconds);
              kill(getpid(), SIGKILL);
            }).detach();
          }
          return ExchangeUntilFailure(group, size_t{4} << 20);
        });
    EXPECT_EQ(members->Text(1), "(signal 9)");
    const auto begin = Clock::now();
    for (const int64_t i : {0, 2}) {
      EXPECT_THAT(members->Text(i), AllOf(HasSubstr(fmt::format("of the group dp{} (127.0.0.1)", milliseconds)),
                                          AnyOf(HasSubstr("the connection"), HasSubstr("did not come within"))));
    }
    EXPECT_LT(SecondsSince(begin), Timeout + Slack);
  }
}

// The members continue at the same time, as a scheduler has it. Only then the second one comes.
TEST_F(PeerGroupTest, TheTimeInWhichAllWereStoppedDoesNotCount) {
  constexpr double Timeout = IsSanitized ? 30 : 4;
  const auto server = StartServer();
  const auto members = MakeGroup(server, {.size = 2, .timeout = {Timeout}}, [](PeerGroup& group) -> std::string {
    if (group.index() == 1) {
      // This sleep ends while the process is stopped. The next one begins when the process continues.
      Sleep(1000);
      Sleep(500);
    }
    const Status met = group.Barrier();
    return met ? ExchangeIsRight(group, 1000) : met.error().message;
  });
  Sleep(700);
  for (const int64_t i : {0, 1}) {
    members->Kill(i, SIGSTOP);
  }
  Sleep(static_cast<int>(1000 * (Timeout + 2)));
  for (const int64_t i : {0, 1}) {
    members->Kill(i, SIGCONT);
  }
  EXPECT_THAT(members->Texts(), Each(std::string()));
}

TEST_F(PeerGroupTest, SilentMemberEndsTheCallsOfTheOthersAfterTheTimeout) {
  const StoreServer server = StartServer();
  const auto members =
      MakeGroup(server, {.timeout = {2}, .hosts_have_names = true}, [](PeerGroup& group) -> std::string {
        if (group.index() == 1) {
          Sleep(100);
          raise(SIGSTOP);
        }
        return ExchangeUntilFailure(group, size_t{1} << 16);
      });
  const auto begin = Clock::now();
  const std::vector<std::string> texts = {members->Text(0), members->Text(2)};
  EXPECT_GT(SecondsSince(begin), 1);
  EXPECT_LT(SecondsSince(begin), 2 + Slack);
  // The first to give up closes its connections.
  EXPECT_THAT(texts, testing::Contains("member 1 of the group dp (node1) did not come within 2 s"));
  EXPECT_THAT(texts, Each(HasSubstr("of the group dp (node")));
}

}  // namespace
}  // namespace shardc
