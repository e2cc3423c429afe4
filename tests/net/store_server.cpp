// The server of the store: where it listens, and when its process ends.
#include "runtime/net/store_server.h"

#include <sys/resource.h>

#include <sstream>
#include <vector>

#include "compiler/base/process_stat.h"
#include "tests/net/members.h"

namespace shardc {
namespace {

class StoreServerTest : public NetTest {};

using testing::AllOf;
using testing::HasSubstr;

auto CanConnect(uint16_t port) -> bool { return JobStore::Connect({"127.0.0.1", port}, "probe", {0.5}).ok(); }

/// A zombie has ended, too.
auto IsRunning(pid_t pid) -> bool {
  const auto stat = ReadProcessStat(pid);
  return stat && stat->state != 'Z';
}

TEST_F(StoreServerTest, AddressInUseIsNamed) {
  const StoreServer server = StartServer();
  const auto second = StoreServer::Start({"127.0.0.1", server.port()}, {.linger = {1}});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ExitCode::Environment);
  EXPECT_EQ(second.error().message,
            fmt::format("the store cannot listen on 127.0.0.1:{}: it is in use", server.port()));
  EXPECT_EQ(second.error().kind, ErrorKind::AddressInUse);
}

TEST_F(StoreServerTest, AddressOfAnotherHostAndUnknownNameAreErrors) {
  const auto elsewhere = StoreServer::Start({"192.0.2.1", 0}, {.linger = {1}});
  ASSERT_FALSE(elsewhere.ok());
  EXPECT_EQ(elsewhere.error().message, "the store cannot listen on 192.0.2.1:0: it is no address of this host");
  EXPECT_EQ(elsewhere.error().kind, ErrorKind::None);
  const auto unknown = StoreServer::Start({"no-such-host.invalid", 0}, {.linger = {1}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("no-such-host.invalid"));
}

TEST_F(StoreServerTest, ListensOnTheNamedAddressOnly) {
  const StoreServer server = StartServer("127.0.0.1");
  EXPECT_TRUE(CanConnect(server.port()));
  for (const std::string other : {"127.0.0.2", "::1"}) {
    const auto store = JobStore::Connect({other, server.port()}, "job", {0.3});
    ASSERT_FALSE(store.ok()) << other;
    EXPECT_THAT(store.error().message, HasSubstr("nobody listens there"));
  }
}

TEST_F(StoreServerTest, KnowsTheOneAddressWhereItListens) {
  const StoreServer server = StartServer("localhost");
  const auto client = ConnectTo(server, "job", {10}, "localhost");
  EXPECT_EQ(client->server_host(), server.address().host);
  EXPECT_TRUE(IsLoopback(server.address().host));
}

TEST_F(StoreServerTest, StopEndsItAtOnceAndThePortIsFree) {
  StoreServer server = StartServer("127.0.0.1", {60});
  const pid_t pid = server.pid();
  const uint16_t port = server.port();
  const auto store = ConnectTo(server);
  server.Stop();
  EXPECT_EQ(kill(pid, 0), -1) << "not even a zombie is left";
  const Status set = store->Set("key", "value");
  ASSERT_FALSE(set.ok());
  EXPECT_THAT(set.error().message, AllOf(HasSubstr(std::to_string(port)), HasSubstr("the connection")));
  EXPECT_TRUE(StoreServer::Start({"127.0.0.1", port}, {.linger = {1}}).ok());
}

TEST_F(StoreServerTest, OutlivesItsKilledParentForTheLinger) {
  constexpr double Linger = 1;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  uint16_t port = 0;
  pid_t server = 0;
  Clock::time_point killed;
  std::unique_ptr<JobStore> client;
  {
    const Members parent(1, [&](int64_t) -> std::string {
      const auto own = StartServer("127.0.0.1", {Linger});
      EXPECT_TRUE(ConnectTo(own)->Set("who", "rank 3").ok());
      const std::string said = fmt::format("{} {}\n", own.port(), own.pid());
      EXPECT_EQ(write(ends[1], said.data(), said.size()), static_cast<ssize_t>(said.size()));
      Sleep(500);
      kill(getpid(), SIGKILL);
      return "";
    });
    close(ends[1]);
    std::string said(64, ' ');
    ASSERT_GT(read(ends[0], said.data(), said.size()), 0);
    std::istringstream(said) >> port >> server;
    ASSERT_GT(server, 0);
    auto connected = JobStore::Connect({"127.0.0.1", port}, "job", {5});
    ASSERT_TRUE(connected.ok()) << connected.error().message;
    client = *std::move(connected);
    EXPECT_FALSE(client->IsLeftOver().value());
    EXPECT_EQ(parent.Text(0), "(signal 9)");
    killed = Clock::now();
  }
  close(ends[0]);
  EXPECT_EQ(client->TryGet("who").value(), "rank 3");
  EXPECT_TRUE(AwaitTrue([&] { return client->IsLeftOver().value(); }, {Linger}));
  EXPECT_TRUE(AwaitTrue([&] { return !IsRunning(server); }, {Linger + Slack}));
  EXPECT_GT(SecondsSince(killed), Linger - 0.1);
  EXPECT_FALSE(CanConnect(port));
}

TEST_F(StoreServerTest, IsNotLeftBehindIfItIsStopped) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t server = 0;
  {
    const Members parent(1, [&](int64_t) -> std::string {
      const auto own = StartServer("127.0.0.1", {1});
      const pid_t pid = own.pid();
      EXPECT_EQ(kill(pid, SIGSTOP), 0);
      EXPECT_EQ(write(ends[1], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
      kill(getpid(), SIGKILL);
      return "";
    });
    ASSERT_EQ(read(ends[0], &server, sizeof server), static_cast<ssize_t>(sizeof server));
    EXPECT_EQ(parent.Text(0), "(signal 9)");
  }
  close(ends[0]);
  close(ends[1]);
  EXPECT_TRUE(AwaitTrue([&] { return !IsRunning(server); }, {1 + Slack}));
}

TEST_F(StoreServerTest, ServesMoreConnectionsThanItsParentMayHaveOpen) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit low = limit;
  low.rlim_cur = 64;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  const StoreServer server = StartServer();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  std::vector<std::unique_ptr<JobStore>> clients;
  for (int64_t i = 1; i <= 100; ++i) {
    clients.push_back(ConnectTo(server));
    EXPECT_EQ(clients.back()->Add("count", 1).value(), i);
  }
}

TEST_F(StoreServerTest, LetGoEndsItWithItsLastClientWhileItsParentLives) {
  constexpr double Linger = 60;
  StoreServer server = StartServer("127.0.0.1", {Linger});
  const pid_t pid = server.pid();
  auto client = ConnectTo(server);
  server.LetGo();
  EXPECT_TRUE(AwaitTrue([&] { return client->IsLeftOver().value(); }, {Slack}));
  EXPECT_EQ(waitpid(pid, nullptr, WNOHANG), 0);
  client.reset();
  EXPECT_TRUE(AwaitTrue([&] { return waitpid(pid, nullptr, WNOHANG) == pid; }, {Linger / 2}));
}

// A client whose host is gone looks connected.
TEST_F(StoreServerTest, WaitsForNoSilentClientAfterItsParent) {
  constexpr double Linger = 60;
  StoreServer server = StartServer("127.0.0.1", {Linger});
  const pid_t pid = server.pid();
  const auto talks = ConnectTo(server);
  const auto silent = ConnectTo(server);
  server.LetGo();
  const auto begin = Clock::now();
  while (SecondsSince(begin) < StoreServer::LongestSilence.value + 2) {
    ASSERT_TRUE(talks->TryGet("key").ok());
    Sleep(200);
  }
  EXPECT_EQ(waitpid(pid, nullptr, WNOHANG), 0) << "a client still talks";
  EXPECT_TRUE(
      AwaitTrue([&] { return waitpid(pid, nullptr, WNOHANG) == pid; }, {StoreServer::LongestSilence.value + Slack}));
}

TEST_F(StoreServerTest, EndsWhenAllClientsAreSilentThoughItsParentLives) {
  constexpr double Silence = 2;
  auto started = StoreServer::Start({"127.0.0.1", 0}, {.linger = {60}, .silence = {Silence}});
  ASSERT_TRUE(started.ok()) << started.error().message;
  const pid_t pid = started->pid();
  Sleep(static_cast<int>(1500 * Silence));
  EXPECT_EQ(waitpid(pid, nullptr, WNOHANG), 0) << "no client has come yet";
  const auto client = ConnectTo(*started);
  EXPECT_TRUE(AwaitTrue([&] { return waitpid(pid, nullptr, WNOHANG) == pid; }, {Silence + Slack}));
}

// The server would take all members for gone otherwise.
TEST_F(StoreServerTest, SeesItsClientsWhenItMayOpenNoMoreFiles) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Members parent(1, [&](int64_t) -> std::string {
    const rlimit low{32, 32};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    const auto own = StartServer("127.0.0.1", {1}, "job");
    const auto member = ConnectTo(own);
    EXPECT_TRUE(member->Join(0, "process 0").ok());
    const uint16_t port = own.port();
    EXPECT_EQ(write(ends[1], &port, sizeof port), static_cast<ssize_t>(sizeof port));
    // The server says after 2 s who is gone.
    Sleep(4000);
    const auto given_up = member->TryGet(JobStore::AbandonedKey);
    return !given_up ? given_up.error().message : given_up->value_or("nobody is gone");
  });
  uint16_t port = 0;
  ASSERT_EQ(read(ends[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
  std::vector<OwnedDescriptor> strangers;
  const auto address = Resolve({"127.0.0.1", port});
  ASSERT_TRUE(address.ok()) << address.error().message;
  for (int i = 0; i < 40; ++i) {
    strangers.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(strangers.back().number(), address->front().data(), address->front().size), 0);
  }
  EXPECT_EQ(parent.Text(0), "nobody is gone");
  close(ends[0]);
  close(ends[1]);
}

TEST_F(StoreServerTest, SignalsToTheProcessGroupDoNotEndIt) {
  const StoreServer server = StartServer();
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP, SIGQUIT, SIGPIPE, SIGALRM}) {
    kill(server.pid(), signal);
  }
  Sleep(100);
  EXPECT_TRUE(CanConnect(server.port()));
}

TEST_F(StoreServerTest, BelongsToTheProcessThatStartedIt) {
  StoreServer server = StartServer();
  EXPECT_THAT(Members(1,
                      [&](int64_t) -> std::string {
                        server.Stop();
                        return "stopped";
                      })
                  .Texts(),
              testing::ElementsAre("stopped"));
  EXPECT_TRUE(CanConnect(server.port()));
}

TEST_F(StoreServerTest, HoldsNoDescriptorOfItsParent) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const StoreServer server = StartServer();
  close(ends[1]);
  pollfd watched{.fd = ends[0], .events = POLLIN, .revents = 0};
  EXPECT_EQ(poll(&watched, 1, 2000), 1) << "the end of the pipe does not come while the server holds it";
  close(ends[0]);
}

}  // namespace
}  // namespace shardc
