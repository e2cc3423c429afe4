// The store: what its members see, how much they ask, and how long they wait for a silent host.
#include "runtime/net/store.h"

#include <algorithm>
#include <thread>

#include "tests/net/members.h"

namespace shardc {
namespace {

class StoreTest : public NetTest {};

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

auto BytesOf(size_t size) -> std::string {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<char>((i * 2654435761U) >> 13);
  }
  return bytes;
}

TEST_F(StoreTest, ValuesAndCountsAreSeenByAll) {
  const StoreServer server = StartServer();
  const auto one = ConnectTo(server);
  const auto other = ConnectTo(server);
  ASSERT_TRUE(one->Set("key", std::string("a\0b", 3)).ok());
  EXPECT_EQ(other->Get("key", {5}).value(), std::string("a\0b", 3));
  ASSERT_TRUE(one->Set("key", "").ok());
  EXPECT_EQ(one->TryGet("key").value(), "");
  EXPECT_EQ(other->TryGet("other key").value(), std::nullopt);
  EXPECT_EQ(one->Add("count", 3).value(), 3);
  EXPECT_EQ(other->Add("count", -1).value(), 2);
  ASSERT_TRUE(one->Append("list", "first,").ok());
  ASSERT_TRUE(one->Append("list", "second").ok());
  EXPECT_EQ(one->Get("list", {5}).value(), "first,second");
}

TEST_F(StoreTest, GetWaitsForTheKey) {
  const StoreServer server = StartServer();
  const Members members(2, [&](int64_t i) -> std::string {
    const auto store = ConnectTo(server);
    if (i == 1) {
      Sleep(300);
      EXPECT_TRUE(store->Set("late", "here").ok());
      return store->Get("late", {5}).value();
    }
    return store->Get("late", {10}).value();
  });
  EXPECT_THAT(members.Texts(), ElementsAre("here", "here"));
}

TEST_F(StoreTest, AWaitThatIsHeldGoesOn) {
  const StoreServer server = StartServer();
  int times = 0;
  const auto held = JobStore::Connect(
      {"127.0.0.1", server.port()}, "job", {0.2},
      {.interrupt = {}, .tell = {}, .time_left = [&times](JobStore&) { return Seconds{++times < 4 ? 0.2 : 0}; }});
  ASSERT_TRUE(held.ok()) << held.error().message;
  const auto begin = Clock::now();
  EXPECT_FALSE((*held)->Get("plan", {0.2}).ok());
  EXPECT_EQ(times, 4);
  EXPECT_GE(SecondsSince(begin), 4 * 0.2);
  EXPECT_LT(SecondsSince(begin), 4 * 0.2 + Slack);
}

TEST_F(StoreTest, KeyThatNobodySetsIsNamedAndTheStoreGoesOn) {
  const StoreServer server = StartServer();
  const auto store = ConnectTo(server);
  const auto begin = Clock::now();
  const auto value = store->Get("plan", {0.5});
  EXPECT_LT(SecondsSince(begin), 0.5 + Slack);
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().code, ExitCode::Environment);
  EXPECT_EQ(value.error().message,
            fmt::format("nobody has set plan in the store at 127.0.0.1:{} within 0.5 s", server.port()));
  EXPECT_FALSE(store->Wait("plan", {0.1}).value());
  ASSERT_TRUE(store->Set("plan", "text").ok());
  EXPECT_TRUE(store->Wait("plan", {0.1}).value());
  EXPECT_EQ(store->Get("plan", {1}).value(), "text");
}

TEST_F(StoreTest, LongValuesComeWhole) {
  const StoreServer server = StartServer();
  const auto one = ConnectTo(server, "job", {60});
  const auto other = ConnectTo(server, "job", {60});
  for (const size_t size : {size_t{9} << 20, size_t{4} << 20, (size_t{4} << 20) + 1}) {
    const std::string value = BytesOf(size);
    ASSERT_TRUE(one->Set("plan", value).ok());
    const auto got = other->Get("plan", {60});
    ASSERT_TRUE(got.ok()) << got.error().message;
    EXPECT_EQ(*got == value, true) << size;
  }
  // A short value that looks like the text that names pieces.
  const std::string like_one = "\nshardc pieces: 2 nothing";
  ASSERT_TRUE(one->Set("plan", like_one).ok());
  EXPECT_EQ(other->Get("plan", {5}).value(), like_one);
}

TEST_F(StoreTest, PrefixesDoNotSeeEachOther) {
  const StoreServer server = StartServer();
  const auto one = ConnectTo(server, "run/1");
  const auto other = ConnectTo(server, "run");
  ASSERT_TRUE(one->Set("key", "value").ok());
  EXPECT_EQ(other->TryGet("key").value(), std::nullopt);
  EXPECT_EQ(other->TryGet("1/key").value(), std::nullopt);
  EXPECT_EQ(ConnectTo(server, "run/1")->TryGet("key").value(), "value");
}

TEST_F(StoreTest, OverIpv6AndByName) {
  const StoreServer server = StartServer("::1");
  const auto store = ConnectTo(server, "job", {10}, "[::1]");
  ASSERT_TRUE(store->Set("key", "value").ok());
  EXPECT_EQ(ConnectTo(server, "job", {10}, "::1")->Get("key", {5}).value(), "value");
  const StoreServer named = StartServer("localhost");
  EXPECT_TRUE(ConnectTo(named, "job", {10}, "localhost")->Set("key", "value").ok());
}

TEST_F(StoreTest, ServerMayComeLaterThanItsClients) {
  uint16_t port = 0;
  { port = StartServer().port(); }
  const Members client(1, [&](int64_t) -> std::string {
    const auto store = JobStore::Connect({"127.0.0.1", port}, "job", {20});
    return store ? "connected" : store.error().message;
  });
  Sleep(300);
  const auto server = StoreServer::Start({"127.0.0.1", port}, {.linger = {1}});
  ASSERT_TRUE(server.ok()) << server.error().message;
  EXPECT_EQ(client.Text(0), "connected");
}

TEST_F(StoreTest, NobodyListensAndUnknownNameAreErrorsInTime) {
  uint16_t port = 0;
  { port = StartServer().port(); }
  auto begin = Clock::now();
  const auto nobody = JobStore::Connect({"127.0.0.1", port}, "job", {0.5});
  EXPECT_LT(SecondsSince(begin), 0.5 + Slack);
  ASSERT_FALSE(nobody.ok());
  EXPECT_EQ(nobody.error().message,
            fmt::format("cannot connect to the store at 127.0.0.1:{} within 0.5 s: nobody listens there", port));
  EXPECT_EQ(nobody.error().kind, ErrorKind::NobodyListens);
  begin = Clock::now();
  const auto unknown = JobStore::Connect({"no-such-host.invalid", 29500}, "job", {0.5});
  EXPECT_LT(SecondsSince(begin), 0.5 + Slack);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ExitCode::Environment);
  EXPECT_THAT(unknown.error().message, HasSubstr("no-such-host.invalid"));
}

TEST_F(StoreTest, GatherOfProcessesIsInTheirOrder) {
  const StoreServer server = StartServer();
  // One comes with more than a piece, and one with nothing.
  const auto bytes_of = [](int64_t i) { return i == 0 ? BytesOf(size_t{5} << 20) : std::string(i == 1 ? "" : "two"); };
  const Members members(3, [&](int64_t i) -> std::string {
    const auto store = ConnectTo(server, "job", {30});
    const auto all = store->Gather("key", i, 3, bytes_of(i), {30});
    if (!all) {
      return all.error().message;
    }
    return (*all)[0] == bytes_of(0) && (*all)[1] == bytes_of(1) && (*all)[2] == bytes_of(2) ? "all" : "wrong";
  });
  EXPECT_THAT(members.Texts(), ElementsAre("all", "all", "all"));
}

TEST_F(StoreTest, GatherNamesThoseThatDidNotCome) {
  const StoreServer server = StartServer();
  const auto begin = Clock::now();
  const auto all = ConnectTo(server)->Gather("meet", 1, 3, "me", {0.5});
  EXPECT_LT(SecondsSince(begin), 0.5 + Slack);
  ASSERT_FALSE(all.ok());
  EXPECT_EQ(all.error().message,
            fmt::format("2 of 3 members did not come to meet in the store at 127.0.0.1:{} within 0.5 s: 0, 2",
                        server.port()));
}

TEST_F(StoreTest, GatherFindsTwoMembersOfOneIndex) {
  const StoreServer server = StartServer();
  const Members members(2, [&](int64_t) -> std::string {
    const auto all = ConnectTo(server)->Gather("meet", 1, 2, "me", {10});
    return all ? "no error" : all.error().message;
  });
  for (const std::string& text : members.Texts()) {
    EXPECT_THAT(text, HasSubstr("two members have the index 1"));
  }
}

// Each member asks a real TCPStore as often as in a gather of two, and gets everything.
TEST_F(StoreTest, OperationsPerMemberDoNotGrowWithTheMembers) {
  const StoreServer server = StartServer();
  const auto most_operations = [&](int64_t count) {
    std::vector<int64_t> operations(static_cast<size_t>(count));
    std::vector<std::string> wrong(static_cast<size_t>(count));
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        const auto store = ConnectTo(server, fmt::format("of {}", count), {60});
        const auto all = store->Gather("key", i, count, fmt::format("member {}", i), {60});
        operations[static_cast<size_t>(i)] = store->num_operations();
        for (int64_t j = 0; j < count; ++j) {
          if (!all || (*all)[static_cast<size_t>(j)] != fmt::format("member {}", j)) {
            wrong[static_cast<size_t>(i)] = all ? (*all)[static_cast<size_t>(j)] : all.error().message;
          }
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_THAT(wrong, testing::Each(""));
    return std::pair(*std::min_element(operations.begin(), operations.end()),
                     *std::max_element(operations.begin(), operations.end()));
  };
  // The last one to come also says so.
  EXPECT_EQ(most_operations(2), std::pair(int64_t{5}, int64_t{7}));
  EXPECT_EQ(most_operations(256), std::pair(int64_t{5}, int64_t{7}));
}

TEST_F(StoreTest, SilentServerEndsEachCallInTime) {
  const StoreServer server = StartServer();
  const auto reader = ConnectTo(server, "job", {0.5});
  const auto counter = ConnectTo(server, "job", {0.5});
  const auto writer = ConnectTo(server, "job", {0.5});
  kill(server.pid(), SIGSTOP);
  const auto begin = Clock::now();
  const auto value = reader->Get("key", {0.5});
  EXPECT_LT(SecondsSince(begin), 0.5 + Slack);
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().code, ExitCode::Environment);
  EXPECT_THAT(value.error().message, HasSubstr(fmt::format("the store at 127.0.0.1:{} did not answer", server.port())));
  EXPECT_EQ(reader->Set("key", "value").error().message, value.error().message) << "the first error stays";
  const auto count = counter->Add("count", 1);
  ASSERT_FALSE(count.ok());
  EXPECT_THAT(count.error().message, HasSubstr("did not answer"));
  const Status set = writer->Set("key", "value");
  ASSERT_FALSE(set.ok());
  EXPECT_THAT(set.error().message, HasSubstr("did not answer"));
  const auto late = JobStore::Connect({"127.0.0.1", server.port()}, "job", {0.5});
  ASSERT_FALSE(late.ok());
  EXPECT_THAT(late.error().message, HasSubstr("did not answer within 0.5 s"));
  EXPECT_LT(SecondsSince(begin), 2.5 + Slack);
}

TEST_F(StoreTest, AMemberThatPartsFromASilentServerEndsSoon) {
  const StoreServer server = StartServer();
  const auto store = ConnectTo(server, "job", {60});
  ASSERT_TRUE(store->Join(0, "process 0").ok());
  kill(server.pid(), SIGSTOP);
  // A server that runs on another processor stops a little later.
  Sleep(50);
  const auto begin = Clock::now();
  EXPECT_FALSE(store->Part(0).ok());
  EXPECT_LT(SecondsSince(begin), 1 + Slack);
}

TEST_F(StoreTest, ServerThatIsKilledEndsAWaitAtOnce) {
  const StoreServer server = StartServer();
  const Members member(1, [&](int64_t) -> std::string {
    const auto store = ConnectTo(server);
    EXPECT_TRUE(store->Set("here", "1").ok());
    const auto begin = Clock::now();
    const auto value = store->Get("never", {30});
    EXPECT_LT(SecondsSince(begin), Slack);
    return value ? "no error" : value.error().message;
  });
  ASSERT_TRUE(ConnectTo(server)->Get("here", {10}).ok());
  Sleep(50);
  kill(server.pid(), SIGKILL);
  EXPECT_THAT(member.Text(0),
              AllOf(HasSubstr(fmt::format("the store at 127.0.0.1:{}", server.port())), HasSubstr("the connection")));
}

}  // namespace
}  // namespace shardc
