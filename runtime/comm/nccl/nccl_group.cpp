#include "runtime/comm/nccl/nccl_group.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "compiler/base/mapped.h"
#include "compiler/base/text/joined.h"
#include "compiler/base/waited_time.h"
#include "runtime/comm/nccl/nccl_variables.h"
#include "runtime/net/blocked_signals.h"

namespace shardc {

/// Returns "rank 1, rank 2 and 5 more".
static auto JoinNames(const std::vector<std::string>& names) -> std::string {
  constexpr size_t Most = 4;
  return Listed(names, names.size() > Most ? Most - 1 : Most);
}

/// Names the interface that NCCL was told to take, which may be none of this host's.
static auto WithInterface(Error error) -> Error {
  if (const char* const name = std::getenv("NCCL_SOCKET_IFNAME"); name != nullptr) {
    error.message += fmt::format("; NCCL_SOCKET_IFNAME={} names the network interface that it takes", name);
  }
  return error;
}

auto NcclGroup::NameOf(int64_t member) const -> std::string {
  const auto index = static_cast<size_t>(member);
  return index < hosts_.size() ? fmt::format("{} ({})", options_.members[index], hosts_[index])
                               : options_.members[index];
}

auto NcclGroup::PeersText() const -> std::string {
  std::vector<std::string> names;
  for (int64_t member = 0; member < options_.size; ++member) {
    if (member != options_.index) {
      names.push_back(NameOf(member));
    }
  }
  return JoinNames(names);
}

auto NcclGroup::Break(Error error) -> Error { return *(broken_ = std::move(error)); }

auto NcclGroup::Create(NcclApi& api, JobStore& store, const Options& options) -> ErrorOr<std::unique_ptr<NcclGroup>> {
  CHECK(options.size >= 2 && options.index >= 0 && options.index < options.size &&
            std::ssize(options.members) == options.size,
        "member {} of {}, which have {} names", options.index, options.size, options.members.size());
  std::unique_ptr<NcclGroup> group(new NcclGroup(api, options));
  RETURN_IF_ERROR(group->Connect(store));
  return group;
}

NcclGroup::~NcclGroup() { NcclGroups::End({this}, /*aborts=*/true, Seconds{0}); }

auto NcclGroup::Meet(JobStore& store) -> ErrorOr<NcclApi::UniqueId> {
  ASSIGN_OR_RETURN(const auto version, api_.Version());
  // Lines with the host, the version and each variable, and the id, which the first member has.
  std::vector<std::string> lines = OwnNcclVariables();
  const size_t num_lines = lines.size() + 2;
  lines.insert(lines.begin(), {options_.host_name, version});
  std::string mine = fmt::format("{}\n", fmt::join(lines, "\n"));
  if (options_.index == 0) {
    const auto made = api_.MakeUniqueId();
    if (!made) {
      return WithInterface(made.error());
    }
    mine.append(made->data(), made->size());
  }
  const std::string key = "nccl/" + options_.name;
  const auto entries = store.Gather(key, options_.index, options_.size, mine, options_.timeout);
  if (!entries) {
    const auto late =
        Mapped<std::string>(store.LateAt(key, options_.size), [&](const int64_t member) { return NameOf(member); });
    return late.empty() ? entries.error()
                        : Fail(ExitCode::Environment, "{} did not come to the group {} of GPUs within {:g} s",
                               JoinNames(late), options_.name, options_.timeout.value);
  }
  std::vector<std::string> versions;
  std::vector<NcclMember> members;
  std::string id_text;
  for (int64_t member = 0; member < options_.size; ++member) {
    std::string_view rest = (*entries)[static_cast<size_t>(member)];
    lines.clear();
    while (lines.size() < num_lines) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      lines.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    hosts_.push_back(lines[0]);
    versions.push_back(lines[1]);
    members.push_back({.name = NameOf(member), .host = lines[0], .variables = {lines.begin() + 2, lines.end()}});
    if (member == 0) {
      id_text = rest;
    }
  }
  for (int64_t member = 1; member < options_.size; ++member) {
    if (const std::string& other = versions[static_cast<size_t>(member)]; other != versions[0]) {
      return Fail(ExitCode::Environment, "{} has NCCL {}, and {} has {}; install one version on all hosts",
                  NameOf(member), other, NameOf(0), versions[0]);
    }
  }
  RETURN_IF_ERROR(CheckNcclVariables(members));
  NcclApi::UniqueId id{};
  CHECK(id_text.size() == id.size(), "a unique id of {} bytes", id_text.size());
  std::memcpy(id.data(), id_text.data(), id.size());
  return id;
}

auto NcclGroup::Connect(JobStore& store) -> Status {
  const auto id = Meet(store);
  if (!id) {
    return Break(id.error());
  }
  return Run(
      [&]() -> Status {
        const auto begun = api_.BeginInit(*id, options_.index, options_.size);
        if (!begun) {
          return WithInterface(begun.error());
        }
        communicator_ = *begun;
        return Success{};
      },
      "; NCCL_DEBUG=INFO makes it say why, and NCCL_SOCKET_IFNAME names the network interface that it takes");
}

template <class Call>
auto NcclGroup::Run(const Call& call, std::string_view hint) -> Status {
  if (broken_) {
    return *broken_;
  }
  if (const Status called = call(); !called) {
    return Break(called.error());
  }
  return AwaitReady(hint);
}

auto NcclGroup::AwaitReady(std::string_view hint) -> Status {
  // Most calls are over at once; one that connects members takes a second.
  constexpr int NumShort = 100;
  constexpr std::chrono::microseconds Short{10};
  constexpr std::chrono::milliseconds Long{1};
  const std::chrono::duration<double> longest(options_.timeout.value);
  WaitedTime waited;
  for (int looks = 0;; ++looks) {
    const auto state = api_.StateOf(*communicator_);
    if (!state) {
      return Break(state.error());
    }
    if (*state == NcclApi::State::Ready) {
      return Success{};
    }
    if (const Status others = options_.look ? options_.look() : Status(Success{}); !others) {
      return Break(others.error());
    }
    if (waited.Look() >= longest) {
      return Break(Fail(ExitCode::Environment, "NCCL did not get on with {} within {:g} s{}", PeersText(),
                        options_.timeout.value, hint));
    }
    std::this_thread::sleep_for(looks < NumShort ? Short : std::chrono::microseconds(Long));
  }
}

auto NcclGroup::AllGather(NcclApi::Stream stream, const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
  if (bytes == 0) {
    return Success{};
  }
  return Run([&] { return api_.AllGather(*communicator_, stream, mine, bytes, all); });
}

auto NcclGroup::AllToAll(NcclApi::Stream stream, const std::byte* to_each, int64_t stride, std::byte* from_each,
                         int64_t bytes) -> Status {
  if (bytes == 0) {
    return Success{};
  }
  return Run([&]() -> Status {
    RETURN_IF_ERROR(api_.BeginGroup());
    Status asked = Success{};
    for (int64_t distance = 1; distance < options_.size && asked; ++distance) {
      const int64_t to = (options_.index + distance) % options_.size;
      const int64_t from = (options_.index + options_.size - distance) % options_.size;
      asked = api_.Send(*communicator_, stream, to_each + to * stride, bytes, to);
      asked = asked ? api_.Receive(*communicator_, stream, from_each + from * bytes, bytes, from) : asked;
    }
    // The thread leaves the group in any case.
    const Status ended = api_.EndGroup();
    return asked ? ended : asked;
  });
}

auto NcclGroup::SumSlots(NcclApi::Stream stream, std::byte* slots, int64_t count) -> Status {
  if (count == 0) {
    return Success{};
  }
  std::byte* const own = slots + options_.index * count * SizeOf(DType::F32);
  return Run([&] { return api_.ReduceScatter(*communicator_, stream, slots, own, count); });
}

auto NcclGroup::Sum(NcclApi::Stream stream, std::byte* data, int64_t count, DType dtype) -> Status {
  if (count == 0) {
    return Success{};
  }
  return Run([&] { return api_.AllReduce(*communicator_, stream, data, count, dtype); });
}

auto NcclGroup::Check() -> Status {
  if (broken_) {
    return *broken_;
  }
  const auto state = api_.StateOf(*communicator_);
  return state ? Status(Success{}) : Break(state.error());
}

auto NcclGroups::Of(AxisSet axes) -> NcclGroup& {
  NcclGroup* const group = groups_[axes.bits].get();
  CHECK(group != nullptr, "no group over {} was made", ToText(axes));
  last_ = group;
  return *group;
}

auto NcclGroups::LastText() const -> std::string {
  return last_ == nullptr ? "" : "; the last exchange was with " + last_->PeersText();
}

auto NcclGroups::Groups() const -> std::vector<NcclGroup*> {
  std::vector<NcclGroup*> groups;
  for (const auto& group : groups_) {
    if (group != nullptr && std::ranges::find(groups, group.get()) == groups.end()) {
      groups.push_back(group.get());
    }
  }
  return groups;
}

auto NcclGroups::Check() const -> Status {
  for (NcclGroup* const group : Groups()) {
    RETURN_IF_ERROR(group->Check());
  }
  return Success{};
}

// The threads are detached, and share with their owner what both look at. Nobody can join a thread that never returns.
auto NcclGroups::End(const std::vector<NcclGroup*>& groups, bool aborts, Seconds grace) -> void {
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    size_t num_left = 0;
  };
  const auto shared = std::make_shared<Shared>();
  for (NcclGroup* const group : groups) {
    NcclApi::Communicator* const communicator = std::exchange(group->communicator_, nullptr);
    if (communicator == nullptr) {
      continue;
    }
    const std::lock_guard lock(shared->mutex);
    ++shared->num_left;
    const BlockedSignals blocked;
    std::thread([shared, aborts, api = &group->api_, communicator] {
      // An error changes nothing: the process is about to end.
      static_cast<void>(aborts ? api->Abort(*communicator) : api->Destroy(*communicator));
      const std::lock_guard ended(shared->mutex);
      --shared->num_left;
      shared->changed.notify_all();
    }).detach();
  }
  std::unique_lock lock(shared->mutex);
  shared->changed.wait_for(lock, std::chrono::duration<double>(grace.value), [&] { return shared->num_left == 0; });
}

NcclGroups::~NcclGroups() {
  const bool has_failed = !Check() || !(look_ ? look_() : Status(Success{}));
  End(Groups(), has_failed, grace_);
}

}  // namespace shardc
