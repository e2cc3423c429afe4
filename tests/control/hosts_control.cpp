// Agreements among ranks of several hosts, over a real store: what they give, and that a rank's calls to the store do
// not grow with the hosts.
#include "runtime/control/hosts_control.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "runtime/net/store_server.h"

namespace shardc {
namespace {

/// Hosts of one process: a control block for each, and a thread with a client of its own for each rank.
class Hosts {
 public:
  explicit Hosts(const Mesh& mesh) : mesh_(mesh), server_(*StoreServer::Start({"127.0.0.1", 0}, {.linger = {1}})) {
    for (int64_t host = 0; host < mesh.hosts; ++host) {
      blocks_.push_back(*ControlBlock::Create({.mesh = mesh, .host = host, .members = ControlBlock::Members::Threads}));
    }
  }

  /// Returns what each rank says went wrong; empty if nothing did. `calls`: to the store, of each rank.
  auto Run(const std::function<std::string(HostsControl&)>& body) -> std::vector<std::string> {
    const auto ranks = static_cast<size_t>(mesh_.num_ranks());
    std::vector<std::string> texts(ranks);
    calls_.assign(ranks, 0);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < ranks; ++i) {
      threads.emplace_back([&, i] {
        const auto rank = static_cast<int64_t>(i);
        ControlBlock& block = *blocks_[static_cast<size_t>(mesh_.HostOf(rank))];
        block.Join(rank);
        auto connected = JobStore::Connect({"127.0.0.1", server_.port()}, "job/", Seconds{60});
        if (!connected) {
          texts[i] = connected.error().message;
          return;
        }
        const JobStore& store = **connected;
        const int64_t before = store.num_operations();
        HostsControl control(std::make_shared<HostMember>(block, rank), mesh_, *std::move(connected), Seconds{60});
        texts[i] = body(control);
        calls_[i] = store.num_operations() - before;
        block.Finish(rank);
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    return texts;
  }
  auto most_calls() const -> int64_t { return *std::ranges::max_element(calls_); }
  auto least_calls() const -> int64_t { return *std::ranges::min_element(calls_); }

 private:
  Mesh mesh_;
  StoreServer server_;
  std::vector<std::unique_ptr<ControlBlock>> blocks_;
  std::vector<int64_t> calls_;
};

#define RETURN_IF_FAILED(expression)             \
  if (Status status_ = (expression); !status_) { \
    return status_.error().message;              \
  }

/// One of each kind, over the group of `axes`.
auto AgreeOver(HostsControl& control, AxisSet axes) -> std::string {
  const std::vector<int64_t> group = control.mesh().Group(axes, control.rank());
  const auto gathered = control.GatherValues(axes, control.rank() * 10);
  if (!gathered) {
    return gathered.error().message;
  }
  for (size_t i = 0; i < group.size(); ++i) {
    if ((*gathered)[i] != group[i] * 10) {
      return fmt::format("gathered {} of rank {}", (*gathered)[i], group[i]);
    }
  }
  int64_t told = control.rank() == group.front() ? group.front() + 7 : -1;
  RETURN_IF_FAILED(control.Broadcast(axes, reinterpret_cast<std::byte*>(&told), sizeof(told)));
  if (told != group.front() + 7) {
    return fmt::format("was told {}", told);
  }
  int64_t sum = control.rank();
  RETURN_IF_FAILED(control.Sum(axes, reinterpret_cast<std::byte*>(&sum), 1, DType::I64));
  int64_t expected = 0;
  for (const int64_t rank : group) {
    expected += rank;
  }
  if (sum != expected) {
    return fmt::format("summed to {}, not {}", sum, expected);
  }
  RETURN_IF_FAILED(control.Barrier(axes));
  return "";
}

TEST(HostsControl, AgreesOverEachSetOfAxes) {
  for (const Mesh& mesh : {Mesh{.sizes = {1, 4, 1}, .hosts = 2}, Mesh{.sizes = {2, 2, 2}, .hosts = 2},
                           Mesh{.sizes = {2, 2, 2}, .hosts = 4}, Mesh{.sizes = {1, 4, 2}, .parts = {2}, .hosts = 4},
                           Mesh{.sizes = {1, 6, 1}, .hosts = 3}}) {
    Hosts hosts(mesh);
    const auto texts = hosts.Run([](HostsControl& control) -> std::string {
      for (uint8_t bits = 0; bits < NumAxisSets; ++bits) {
        if (const std::string text = AgreeOver(control, AxisSet{bits}); !text.empty()) {
          return fmt::format("over {}: {}", ToText(AxisSet{bits}), text);
        }
      }
      return "";
    });
    for (size_t rank = 0; rank < texts.size(); ++rank) {
      EXPECT_EQ(texts[rank], "") << "rank " << rank << " of " << texts.size() << " on " << mesh.hosts << " hosts";
    }
  }
}

TEST(HostsControl, CallsToTheStoreDoNotGrowWithTheHosts) {
  const auto most_calls_of = [](int64_t ranks, int64_t num_hosts) {
    Hosts hosts({.sizes = {1, ranks, 1}, .hosts = num_hosts});
    const auto texts = hosts.Run([](HostsControl& control) { return AgreeOver(control, AxisSet::All()); });
    EXPECT_TRUE(std::ranges::all_of(texts, [](const std::string& text) { return text.empty(); }))
        << *std::ranges::find_if(texts, [](const std::string& text) { return !text.empty(); });
    // Ranks that do not speak for their host leave the store alone.
    EXPECT_EQ(hosts.least_calls(), 0);
    return hosts.most_calls();
  };
  // Three gathers and a broadcast; who comes last to a gather makes two calls more.
  constexpr int64_t Most = 3 * 7 + 3;
  EXPECT_LE(most_calls_of(8, 4), Most);
  EXPECT_LE(most_calls_of(256, 128), Most);
}

}  // namespace
}  // namespace shardc
