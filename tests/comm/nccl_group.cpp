// Groups of NCCL over its double: what they exchange, and how they end if a call fails, a member does not come or dies,
// or the end itself hangs.
#include "runtime/comm/nccl/nccl_group.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "tests/net/members.h"
#include "tests/support/nccl_double.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;

constexpr AxisSet Dp = AxisSet::Of(Axis::Dp);

/// The failure that the members have in common, as those of a job have their control.
class Failure {
 public:
  Failure() {
    void* const memory = mmap(nullptr, sizeof(*word_), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "mmap");
    word_ = new (memory) std::atomic<int64_t>(-1);
  }
  Failure(const Failure&) = delete;
  ~Failure() { munmap(word_, sizeof(*word_)); }

  auto Set(int64_t member) const -> void {
    int64_t none = -1;
    word_->compare_exchange_strong(none, member);
  }
  auto Look() const -> Status {
    const int64_t member = *word_;
    return member < 0 ? Status(Success{}) : Fail(ExitCode::Environment, "member {} failed", member);
  }

 private:
  std::atomic<int64_t>* word_;
};

/// One member of a group, in a process of its own.
struct Member {
  NcclDouble& api;
  NcclGroups& groups;
  int64_t index;
  int64_t size;
  std::function<Status()> look;

  auto group() const -> NcclGroup& { return groups.Of(Dp); }
  auto stream() const -> NcclApi::Stream { return reinterpret_cast<NcclApi::Stream>(&groups); }
  /// Waits until all that was enqueued is over.
  auto Await() const -> Status {
    while (!api.IsOver(stream())) {
      RETURN_IF_ERROR(look());
      RETURN_IF_ERROR(groups.Check());
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return Success{};
  }
};

/// Returns what the member says; an error is told to the others.
using MemberMain = std::function<Status(Member&)>;

struct GroupCase {
  int64_t size = 3;
  /// Members that come.
  int64_t num_come = 3;
  Seconds timeout{20};
  /// Sets the switches of a member.
  std::function<void(NcclDouble&, int64_t)> prepare = [](NcclDouble&, int64_t) {};
  int64_t num_groups = 1;
  Seconds grace{0.5};
};

auto RunMember(const StoreServer& server, const GroupCase& of, const Failure& failure, int64_t index,
               const MemberMain& main) -> std::string {
  NcclDouble& api = TheNcclDouble();
  of.prepare(api, index);
  const auto look = [&failure] { return failure.Look(); };
  const auto run = [&]() -> Status {
    const auto store = JobStore::Connect({"127.0.0.1", server.port()}, "job", {20}, {.interrupt = look});
    if (!store) {
      return store.error();
    }
    ByAxisSet<std::shared_ptr<NcclGroup>> groups;
    std::vector<std::string> names;
    for (int64_t i = 0; i < of.size; ++i) {
      names.push_back(fmt::format("rank {}", i));
    }
    for (int64_t i = 0; i < of.num_groups; ++i) {
      auto group = NcclGroup::Create(api, **store,
                                     {.name = fmt::format("dp{}", i),
                                      .index = index,
                                      .size = of.size,
                                      .members = names,
                                      .host_name = fmt::format("node{}", index),
                                      .look = look,
                                      .timeout = of.timeout});
      if (!group) {
        return group.error();
      }
      groups[(Dp.bits + static_cast<size_t>(i)) % groups.size()] = *std::move(group);
    }
    NcclGroups all(std::move(groups), look, of.grace);
    Member member{api, all, index, of.size, look};
    Status status = main(member);
    if (!status) {
      failure.Set(index);
    }
    return status;
  };
  const Clock::time_point begin = Clock::now();
  const Status status = run();
  if (!status) {
    failure.Set(index);
  }
  return fmt::format("{}{}", status ? "right" : status.error().message,
                     SecondsSince(begin) < 5 + Slack ? "" : " (too late)");
}

auto RunGroup(const GroupCase& of, const MemberMain& main) -> std::vector<std::string> {
  const StoreServer server = StartServer();
  const Failure failure;
  return Members(of.num_come, [&](int64_t index) { return RunMember(server, of, failure, index, main); }).Texts();
}

/// Returns what `from` sends to `to`, byte by byte.
auto BytesOf(int64_t from, int64_t to, int64_t bytes) -> std::vector<std::byte> {
  std::vector<std::byte> all(static_cast<size_t>(bytes));
  for (size_t i = 0; i < all.size(); ++i) {
    all[i] = static_cast<std::byte>(static_cast<size_t>(from * 31 + to * 7) + i * 13 + (i >> 8U));
  }
  return all;
}

/// Exchanges slices of `bytes` with a stride, and gathers in place. The own slot of an exchange stays as it is.
auto ExchangeIsRight(Member& member, int64_t bytes) -> Status {
  const int64_t stride = bytes + 3;
  const auto size = static_cast<size_t>(member.size);
  std::vector<std::byte> to_each(size * static_cast<size_t>(stride));
  std::vector<std::byte> from_each(size * static_cast<size_t>(bytes));
  std::vector<std::byte> all(from_each.size());
  std::vector<std::byte> expected_from;
  std::vector<std::byte> expected_all;
  for (int64_t peer = 0; peer < member.size; ++peer) {
    std::ranges::copy(BytesOf(member.index, peer, bytes), to_each.begin() + peer * stride);
    const auto from =
        peer == member.index ? std::vector<std::byte>(static_cast<size_t>(bytes)) : BytesOf(peer, member.index, bytes);
    expected_from.insert(expected_from.end(), from.begin(), from.end());
    const auto gathered = BytesOf(peer, peer, bytes);
    expected_all.insert(expected_all.end(), gathered.begin(), gathered.end());
  }
  std::byte* const own = all.data() + member.index * bytes;
  std::ranges::copy(BytesOf(member.index, member.index, bytes), own);
  RETURN_IF_ERROR(member.group().AllToAll(member.stream(), to_each.data(), stride, from_each.data(), bytes));
  RETURN_IF_ERROR(member.group().AllGather(member.stream(), own, bytes, all.data()));
  RETURN_IF_ERROR(member.Await());
  return from_each == expected_from && all == expected_all ? Status(Success{})
                                                           : Fail(ExitCode::InternalFault, "wrong at {} B", bytes);
}

auto ExchangesAreRight(Member& member) -> Status {
  for (const int64_t bytes : {0, 1, 4096, 3 << 20}) {
    RETURN_IF_ERROR(ExchangeIsRight(member, bytes));
  }
  return Success{};
}

auto ExchangeUntilFailure(Member& member) -> Status {
  while (true) {
    RETURN_IF_ERROR(ExchangeIsRight(member, 4096));
  }
}

class NcclGroupTest : public NetTest {};

TEST_F(NcclGroupTest, ExchangesBytesOfAnyLength) {
  for (const int64_t size : {2, 3}) {
    EXPECT_THAT(RunGroup({.size = size, .num_come = size}, ExchangesAreRight), Each("right"));
  }
}

TEST_F(NcclGroupTest, WaitsForSlowMembers) {
  const auto prepare = [](NcclDouble& api, int64_t index) { api.switches.longest_delay_ms = index == 1 ? 100 : 5; };
  EXPECT_THAT(RunGroup({.prepare = prepare}, ExchangesAreRight), Each("right"));
}

TEST_F(NcclGroupTest, NamesEachCallThatFails) {
  // Calls of one member: the first makes the id.
  const std::vector<std::string> calls{"version", "unique_id", "init",    "begin_group", "send",
                                       "receive", "send",      "receive", "end_group",   "all_gather"};
  for (const int64_t failing : {0, 1}) {
    std::vector<std::string> of_member = calls;
    if (failing != 0) {
      of_member.erase(of_member.begin() + 1);
    }
    for (size_t fails_at = 0; fails_at < of_member.size(); ++fails_at) {
      const auto prepare = [&](NcclDouble& api, int64_t index) {
        api.switches.fails_at = index == failing ? static_cast<int64_t>(fails_at) : -1;
      };
      const auto texts = RunGroup({.prepare = prepare}, [](Member& member) { return ExchangeIsRight(member, 64); });
      for (int64_t i = 0; i < 3; ++i) {
        const std::string expected = i == failing ? fmt::format("NCCL: {} broke", of_member[fails_at])
                                                  : fmt::format("member {} failed", failing);
        // A peer may also feel it.
        EXPECT_THAT(texts[static_cast<size_t>(i)], i == failing ? testing::Matcher<std::string>(expected)
                                                                : AnyOf(expected, HasSubstr("remote process exited")))
            << fails_at;
      }
    }
  }
}

TEST_F(NcclGroupTest, HearsOfLaterErrors) {
  const auto prepare = [](NcclDouble& api, int64_t index) { api.switches.breaks_at = index == 2 ? 3 : -1; };
  const auto texts = RunGroup({.prepare = prepare}, ExchangeUntilFailure);
  EXPECT_EQ(texts[2], "unhandled system error");
  for (const size_t other : {0U, 1U}) {
    EXPECT_THAT(texts[other], AnyOf("member 2 failed", HasSubstr("remote process exited")));
  }
}

TEST_F(NcclGroupTest, NamesMembersThatAreMissing) {
  EXPECT_THAT(RunGroup({.num_come = 1, .timeout = {1}}, ExchangesAreRight),
              Each("rank 1, rank 2 did not come to the group dp0 of GPUs within 1 s"));
}

TEST_F(NcclGroupTest, NamesMembersThatItCannotReach) {
  const auto prepare = [](NcclDouble& api, int64_t) { api.switches.longest_delay_ms = 1e9; };
  const auto texts = RunGroup({.size = 2, .num_come = 2, .timeout = {1}, .prepare = prepare}, ExchangesAreRight);
  EXPECT_THAT(texts, testing::Contains(AllOf(HasSubstr("NCCL did not get on with rank"), HasSubstr(" (node"),
                                             HasSubstr(" within 1 s; NCCL_DEBUG=INFO"))));
}

TEST_F(NcclGroupTest, RefusesAnotherVersion) {
  const auto prepare = [](NcclDouble& api, int64_t index) { api.switches.version = index == 2 ? "2.27.3" : "2.28.9"; };
  // The first that sees it tells the others.
  EXPECT_THAT(RunGroup({.prepare = prepare}, ExchangesAreRight),
              AllOf(testing::Contains("rank 2 (node2) has NCCL 2.27.3, and rank 0 (node0) has 2.28.9; install one "
                                      "version on all hosts"),
                    Each(AnyOf(HasSubstr("has NCCL 2.27.3"), HasSubstr("failed")))));
}

TEST_F(NcclGroupTest, RefusesVariablesThatDoNotFit) {
  // Variables of each member, and the words of the last one.
  struct Case {
    const char* name;
    std::vector<const char*> values;
    const char* says;
  };
  const std::vector<Case> cases{
      {"NCCL_COMM_BLOCKING",
       {nullptr, "1"},
       "rank 1 (node1) has NCCL_COMM_BLOCKING=1, and NCCL would wait for a lost host for ever; unset it"},
      {"NCCL_COMM_BLOCKING", {"0", nullptr}, "right"},
      {"NCCL_COMM_ID",
       {"node0:1234", "node0:1234"},
       "rank 0 (node0) has NCCL_COMM_ID=node0:1234, and all communicators would meet at that one address; unset it"},
      {"NCCL_HOSTID",
       {"a", "b", "a"},
       "NCCL_HOSTID=a in rank 0 (node0) and in rank 2 (node2), which are on different hosts, and NCCL takes them for "
       "one host; unset it"},
      {"NCCL_HOSTID", {"a", "b"}, "right"},
      {"NCCL_ALGO",
       {nullptr, "Ring"},
       "NCCL_ALGO: nothing in rank 0 (node0), Ring in rank 1 (node1); NCCL hangs or fails where members differ in it: "
       "set it to one value on all hosts, or nowhere"},
      {"NCCL_ALGO", {"Ring", "Ring"}, "right"},
      {"NCCL_IB_DISABLE",
       {"1", nullptr},
       "NCCL_IB_DISABLE: 1 in rank 0 (node0), nothing in rank 1 (node1); members on different networks do not reach "
       "each other: set it to one value on all hosts, or nowhere"},
      {"NCCL_P2P_DISABLE", {"1", nullptr}, "right"},
  };
  for (const Case& of : cases) {
    const auto prepare = [&](NcclDouble&, int64_t index) {
      if (const char* const value = of.values[static_cast<size_t>(index)]; value != nullptr) {
        setenv(of.name, value, /*overwrite=*/1);
      }
    };
    const int64_t size = std::ssize(of.values);
    const auto texts = RunGroup({.size = size, .num_come = size, .prepare = prepare}, ExchangesAreRight);
    EXPECT_THAT(texts, AllOf(testing::Contains(of.says), Each(AnyOf(of.says, HasSubstr("failed"))))) << of.name;
  }
}

TEST_F(NcclGroupTest, NamesInterfaceOfNccl) {
  const auto prepare = [](NcclDouble& api, int64_t index) {
    setenv("NCCL_SOCKET_IFNAME", "nowhere0", /*overwrite=*/1);
    // The first makes the id, the other begins.
    api.switches.fails_at = index == 0 ? 2 : 1;
  };
  const auto texts = RunGroup({.size = 2, .num_come = 2, .prepare = prepare}, ExchangesAreRight);
  EXPECT_THAT(texts, testing::Contains("NCCL: init broke; NCCL_SOCKET_IFNAME=nowhere0 names the network interface that "
                                       "it takes"));
}

TEST_F(NcclGroupTest, FeelsAMemberThatDies) {
  const auto main = [](Member& member) {
    if (member.index == 1) {
      kill(getpid(), SIGKILL);
    }
    return ExchangeUntilFailure(member);
  };
  const auto texts = RunGroup({}, main);
  EXPECT_EQ(texts[1], "(signal 9)");
  EXPECT_THAT(texts[0], AnyOf("member 2 failed", HasSubstr("remote process exited")));
  EXPECT_THAT(texts[2], AnyOf("member 0 failed", HasSubstr("remote process exited")));
}

/// Returns how one member of two ends its groups, "2 destroyed, 0 aborted, in time", after `main`.
auto EndOf(const GroupCase& of, const MemberMain& main) -> std::vector<std::string> {
  const StoreServer server = StartServer();
  const Failure failure;
  return Members(2,
                 [&](int64_t index) -> std::string {
                   const Clock::time_point begin = Clock::now();
                   static_cast<void>(RunMember(server, of, failure, index, main));
                   NcclDouble& api = TheNcclDouble();
                   // The graces of four groups one after another would take longer.
                   return fmt::format("{} destroyed, {} aborted{}", api.num_destroyed.load(), api.num_aborted.load(),
                                      SecondsSince(begin) < 4 ? "" : ", late");
                 })
      .Texts();
}

TEST_F(NcclGroupTest, EndsAllCommunicatorsAtOnce) {
  const GroupCase two{.size = 2, .num_groups = 2};
  EXPECT_THAT(EndOf(two, ExchangesAreRight), Each("2 destroyed, 0 aborted"));
  const auto fail = [](Member& member) -> Status {
    // Nobody makes a group any more.
    RETURN_IF_ERROR(ExchangeIsRight(member, 1));
    return Fail(ExitCode::Environment, "member {} gives up", member.index);
  };
  EXPECT_THAT(EndOf(two, fail), Each("0 destroyed, 2 aborted"));
  GroupCase hanging{.size = 2, .num_groups = 4, .grace = {1.5}};
  hanging.prepare = [](NcclDouble& api, int64_t) { api.switches.abort_hangs = true; };
  EXPECT_THAT(EndOf(hanging, fail), Each("0 destroyed, 0 aborted"));
}

}  // namespace
}  // namespace shardc
