// Something else listens where process 0 should open the store, and strangers connect to the store of a launch: the
// launch ends in time, or goes on as if nobody had.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <random>
#include <thread>
#include <utility>

#include "tests/hosts/job.h"

namespace shardc {
namespace {

using testing::HasSubstr;

/// Closed at its end.
class Socket {
 public:
  explicit Socket(int number) : number_(number) {}
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  auto operator=(Socket&& other) noexcept -> Socket& {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Socket() {
    if (number_ >= 0) {
      close(number_);
    }
  }
  auto number() const -> int { return number_; }

 private:
  int number_ = -1;
};

auto Loopback(uint16_t port, uint32_t host = INADDR_LOOPBACK) -> sockaddr_in {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(host);
  return address;
}

auto RandomBytes(size_t size) -> std::string {
  std::mt19937 generator(7);
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(generator());
  }
  return bytes;
}

auto StartProcesses(const Training& training, uint16_t port, bool on_one_host = false,
                    const std::string& address = "127.0.0.1") -> std::vector<std::unique_ptr<Process>> {
  std::vector<std::unique_ptr<Process>> processes;
  for (const char* rank : {"0", "1"}) {
    processes.push_back(std::make_unique<Process>(
        training.RunCommand(),
        ProcessOptions{.environment = {"MASTER_ADDR=" + address, fmt::format("MASTER_PORT={}", port),
                                       fmt::format("RANK={}", rank), "WORLD_SIZE=2",
                                       fmt::format("LOCAL_RANK={}", on_one_host ? rank : "0"),
                                       fmt::format("LOCAL_WORLD_SIZE={}", on_one_host ? 2 : 1)}}));
  }
  return processes;
}

/// Accepts connections, says something to each at once or after the first bytes of the other side, and keeps them open.
class Listener {
 public:
  Listener(std::string says, bool waits_for_question)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), says_(std::move(says)), waits_(waits_for_question) {
    const sockaddr_in address = Loopback(port_);
    CHECK(bind(socket_.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
              listen(socket_.number(), 16) == 0,
          "cannot listen");
    thread_ = std::thread([this] { Run(); });
  }
  ~Listener() {
    ends_ = true;
    thread_.join();
  }
  auto port() const -> uint16_t { return port_; }

 private:
  auto Run() -> void {
    pollfd watched{.fd = socket_.number(), .events = POLLIN, .revents = 0};
    while (!ends_) {
      if (poll(&watched, 1, 50) <= 0) {
        continue;
      }
      const Socket& client = clients_.emplace_back(accept(socket_.number(), nullptr, nullptr));
      char question[64];
      const timeval longest{.tv_sec = 1, .tv_usec = 0};
      setsockopt(client.number(), SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
      if (!says_.empty() && (!waits_ || recv(client.number(), question, sizeof question, 0) > 0)) {
        send(client.number(), says_.data(), says_.size(), MSG_NOSIGNAL);
      }
    }
  }

  uint16_t port_ = FreePort();
  Socket socket_;
  std::string says_;
  bool waits_ = false;
  std::vector<Socket> clients_;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

TEST(Strangers, WhatListensInThePlaceOfTheStoreIsNamed) {
  const Training training({"mesh.dp=2"});
  Listener silent("", false);
  Listener http("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", true);
  Listener random(RandomBytes(4096), false);
  // Side by side, as each takes seconds.
  std::vector<std::vector<std::unique_ptr<Process>>> launches;
  for (const Listener* listener : {&silent, &http, &random}) {
    launches.push_back(StartProcesses(training, listener->port()));
  }
  for (const auto& launch : launches) {
    const Outcome first = launch[0]->Wait();
    EXPECT_EQ(first.status, 6) << first.err;
    EXPECT_THAT(OnlyErrorIn(first.err), HasSubstr("it is in use"));
    const Outcome second = launch[1]->Wait();
    EXPECT_EQ(second.status, 6) << second.err;
    EXPECT_THAT(OnlyErrorIn(second.err), HasSubstr("no store of shardc"));
  }
}

/// Connects to a port again and again until it ends, says something else each time, and keeps hundreds of connections
/// open.
class Intruder {
 public:
  explicit Intruder(uint16_t port) : port_(port), thread_([this] { Run(); }) {}
  ~Intruder() { End(); }
  auto End() -> int64_t {
    ends_ = true;
    if (thread_.joinable()) {
      thread_.join();
    }
    return num_connected_;
  }

 private:
  auto Run() -> void {
    using namespace std::string_literals;
    // Bytes of no protocol, huge lengths, half a message of c10d's, another protocol, and nothing.
    const std::vector<std::string> texts{RandomBytes(3000),
                                         "\x00"s + std::string(16, '\xff'),
                                         "\x01"s + std::string(8, '\xff'),
                                         "\x01\x10\0\0\0\0\0\0\0abc"s,
                                         "GET / HTTP/1.1\r\n\r\n"s,
                                         ""s};
    constexpr size_t MostOpen = 300;
    while (!ends_) {
      for (const std::string& text : texts) {
        Socket client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const sockaddr_in address = Loopback(port_);
        if (connect(client.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
          ++num_connected_;
          send(client.number(), text.data(), text.size(), MSG_NOSIGNAL);
          clients_.push_back(std::move(client));
        }
      }
      if (clients_.size() > MostOpen) {
        clients_.erase(clients_.begin(), clients_.begin() + MostOpen / 4);
      }
      Sleep(10);
    }
  }

  uint16_t port_;
  std::vector<Socket> clients_;
  int64_t num_connected_ = 0;
  std::atomic<bool> ends_ = false;
  std::thread thread_;
};

TEST(Strangers, AtTheStoreChangeNothing) {
  const Training training({"mesh.dp=2", "mesh.hosts=2", "train.steps=300", "train.eval_every=0"});
  ASSERT_EQ(training.Run("alone").status, 0);
  const uint16_t port = FreePort();
  Intruder intruder(port);
  for (const auto& process : StartProcesses(training, port)) {
    const Outcome outcome = process->Wait();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
  }
  EXPECT_GT(intruder.End(), 100);
  ExpectSameSteps(ReadMetrics(training / "alone"), ReadMetrics(training / "run"));
}

/// Returns true if something listens at this port of the host 127.0.0.`last`, each of which is this machine.
auto IsListening(uint16_t port, uint32_t last) -> bool {
  const Socket socket(::socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = Loopback(port, 0x7F000000U + last);
  return connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

TEST(Strangers, StoreListensAtOneAddress) {
  const Training training({"mesh.dp=2", "train.steps=100000", "train.eval_every=0"});
  const std::string warning = "opens the store of the launch on all interfaces of this host";
  for (const bool is_any : {false, true}) {
    const uint16_t port = FreePort();
    const auto processes = StartProcesses(training, port, true, is_any ? "0.0.0.0" : "127.0.0.1");
    ASSERT_TRUE(processes[0]->Await([&] { return processes[0]->err().find("  loss ") != std::string::npos; }))
        << processes[0]->err();
    EXPECT_TRUE(IsListening(port, 1));
    EXPECT_EQ(IsListening(port, 2), is_any);
    EXPECT_EQ(processes[0]->err().find(warning) != std::string::npos, is_any);
    for (const auto& process : processes) {
      process->Kill(SIGTERM);
    }
    for (const auto& process : processes) {
      EXPECT_EQ(process->Wait().status, 75);
    }
    EXPECT_EQ(processes[1]->err().find(warning), std::string::npos);
  }
}

}  // namespace
}  // namespace shardc
