// The one file that calls c10d::ProcessGroupGloo.
//
// Collectives are sends and receives of Gloo with each peer, all posted before the first wait. (c10d's own all-gather
// receives into memory that it allocates, and copies. Its errors do not say which peer they are about.) To a peer go,
// in this order,
//
//   the data
//   end       of no bytes. Messages of a pair keep their order: once the end has come, the data are there, and once the
//             end was sent, the data were, so that their memory may be used again.
//
// Waits are for the ends alone, the peer's and the own. If a connection breaks, Gloo ends the waits for messages that
// have not begun; the wait for one that is half sent or received goes on until its timeout. Messages of no bytes are
// never half there.
//
// How members find each other: Gloo asks a store for the address of each peer, key by key. It is given an AddressBook
// instead, which the members fill together by one Gather. The device is a lazy one: a pair is connected at its first
// use, after the book is full, and what a member publishes does not grow with the group.

#include "runtime/net/c10d_headers.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

#include "compiler/base/check.h"
#include "compiler/base/mapped.h"
#include "runtime/net/address.h"
#include "runtime/net/batch_threads.h"
#include "runtime/net/blocked_signals.h"
#include "runtime/net/exchange_watch.h"
#include "runtime/net/peer_group.h"
#include "runtime/net/torch_error.h"

namespace shardc {

namespace {

using std::chrono::milliseconds;

/// Tags of one call.
enum Tag : int { DataTag, EndTag, NumTags };
/// Calls until their tags come again. A peer is never more than one call away.
constexpr int NumCalls = 1 << 28;

}  // namespace

/// The store that Gloo asks for addresses. Its keys end in the index of a member.
class AddressBook : public c10d::Store {
 public:
  explicit AddressBook(size_t size) : entries_(size) {}

  auto own() const -> const std::string& { return own_; }
  auto Fill(const std::vector<std::string>& entries) -> void {
    for (size_t i = 0; i < entries.size(); ++i) {
      entries_[i] = {entries[i].begin(), entries[i].end()};
    }
  }

  auto set(const std::string&, const std::vector<uint8_t>& value) -> void override {
    own_ = {value.begin(), value.end()};
  }
  auto get(const std::string& key) -> std::vector<uint8_t> override { return entries_.at(IndexOf(key)); }
  auto multiGet(const std::vector<std::string>& keys) -> std::vector<std::vector<uint8_t>> override {
    return Mapped<std::vector<uint8_t>>(keys, [&](const std::string& key) { return get(key); });
  }
  auto wait(const std::vector<std::string>&) -> void override {}
  auto wait(const std::vector<std::string>&, const milliseconds&) -> void override {}
  auto check(const std::vector<std::string>&) -> bool override { return true; }

  auto clone() -> c10::intrusive_ptr<c10d::Store> override { return Unused<c10::intrusive_ptr<c10d::Store>>(); }
  auto add(const std::string&, int64_t) -> int64_t override { return Unused<int64_t>(); }
  auto deleteKey(const std::string&) -> bool override { return Unused<bool>(); }
  auto getNumKeys() -> int64_t override { return Unused<int64_t>(); }

 private:
  template <class Result>
  auto Unused() -> Result {
    C10_THROW_ERROR(NotImplementedError, "an address book has addresses only");
  }

  auto IndexOf(const std::string& key) const -> size_t {
    size_t index = 0;
    const char* end = key.data() + key.size();
    const char* begin = end;
    while (begin != key.data() && begin[-1] >= '0' && begin[-1] <= '9') {
      --begin;
    }
    const auto parsed = std::from_chars(begin, end, index);
    TORCH_CHECK(parsed.ec == std::errc() && index < entries_.size(), "no member has the key ", key);
    return index;
  }

  std::string own_;
  std::vector<std::vector<uint8_t>> entries_;
};

/// To one peer and from one, at the same time.
struct PeerGroup::Transfer {
  int64_t to = 0;
  const std::byte* sent = nullptr;
  int64_t from = 0;
  std::byte* received = nullptr;
  int64_t bytes = 0;
};

static auto Wrap(const std::byte* data, int64_t bytes) -> std::vector<at::Tensor> {
  return {at::from_blob(const_cast<std::byte*>(data), {bytes}, at::TensorOptions(at::kByte))};
}

struct PeerGroup::Body {
  using Works = std::vector<c10::intrusive_ptr<c10d::Work>>;

  explicit Body(Seconds timeout) : watch(timeout) {}

  c10::intrusive_ptr<AddressBook> book;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group;
  ExchangeWatch watch;
  int call = 0;
  /// Of the call under way.
  std::vector<Transfer> transfers;
  Works data;
  Works sent_ends;
  Works received_ends;

  auto Send(int64_t to, const std::byte* data, int64_t bytes, Tag tag) -> c10::intrusive_ptr<c10d::Work> {
    auto memory = Wrap(data, bytes);
    return group->send(memory, static_cast<int>(to), call * NumTags + tag);
  }
  auto Receive(int64_t from, std::byte* data, int64_t bytes, Tag tag) -> c10::intrusive_ptr<c10d::Work> {
    auto memory = Wrap(data, bytes);
    return group->recv(memory, static_cast<int>(from), call * NumTags + tag);
  }
  /// Closes all connections. Gloo does so if a wait takes longer than it may. Destroying the group is not enough:
  /// Gloo's thread would go on for ever trying to finish a message that is half there, once the message itself is gone.
  auto Disconnect() -> void {
    for (const Works* works : {&received_ends, &sent_ends}) {
      for (const auto& work : *works) {
        try {
          work->wait(milliseconds(1));
        } catch (const std::exception&) {
          // Either its connection was closed before, or all are now.
        }
      }
    }
  }
  auto BeginCall() -> void {
    call = (call + 1) % NumCalls;
    data.clear();
    sent_ends.clear();
    received_ends.clear();
    watch.Begin();
  }
};

PeerGroup::PeerGroup(Options options) : options_(std::move(options)) {}

static auto ToMilliseconds(Seconds seconds) -> milliseconds {
  return std::max(std::chrono::ceil<milliseconds>(std::chrono::duration<double>(seconds.value)), milliseconds(1));
}

PeerGroup::~PeerGroup() = default;

auto PeerGroup::Create(JobStore& store, const Options& options) -> ErrorOr<std::unique_ptr<PeerGroup>> {
  CHECK(options.size >= 1 && options.index >= 0 && options.index < options.size, "member {} of {}", options.index,
        options.size);
  std::unique_ptr<PeerGroup> group(new PeerGroup(options));
  if (options.size == 1) {
    return group;
  }
  const auto of_interface = AddressOfInterface(options.own_address);
  RETURN_IF_ERROR(group->Connect(store, of_interface ? *of_interface : options.own_address));
  return group;
}

/// Gloo writes to connections that may be closed, and takes the error for an answer; by default a signal ends the
/// process instead.
static auto IgnoreBrokenPipes() -> void {
  struct sigaction action {};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) {
    std::signal(SIGPIPE, SIG_IGN);
  }
}

auto PeerGroup::Connect(JobStore& store, const std::string& own_address) -> Status {
  const auto size = static_cast<size_t>(options_.size);
  SilenceTorchLog();
  IgnoreBrokenPipes();
  try {
    const BlockedSignals blocked;
    const BatchThreads batch;
    body_ = std::make_unique<Body>(options_.timeout);
    body_->book = c10::make_intrusive<AddressBook>(size);
    auto gloo = c10d::ProcessGroupGloo::Options::create(ToMilliseconds(options_.timeout));
    gloo->devices.push_back(c10d::ProcessGroupGloo::createDeviceForHostname(own_address, /*lazyInit=*/true));
    gloo->group_name = options_.name;
    // They would work on c10d's collectives.
    gloo->threads = 1;
    body_->group = c10::make_intrusive<c10d::ProcessGroupGloo>(body_->book, static_cast<int>(options_.index),
                                                               static_cast<int>(options_.size), gloo);
  } catch (const std::exception& exception) {
    return Fail(ExitCode::Environment, "the group {} cannot listen on {}: it {}", options_.name, own_address,
                ClauseOf(TextOf(exception)));
  }
  // A line with the host, for messages, and what Gloo published.
  const std::string& host = options_.host_name.empty() ? own_address : options_.host_name;
  const std::string key = "group/" + options_.name;
  const auto entries =
      store.Gather(key, options_.index, options_.size, host + "\n" + body_->book->own(), options_.timeout);
  if (!entries) {
    const std::vector<int64_t> late = store.LateAt(key, options_.size);
    return late.empty() ? entries.error()
                        : Fail(ExitCode::Environment, "{} of {} members of the group {} did not come within {:g} s",
                               late.size(), options_.size, options_.name, options_.timeout.value);
  }
  std::vector<std::string> published;
  for (const std::string& entry : *entries) {
    const size_t end = std::min(entry.find('\n'), entry.size());
    hosts_.push_back(entry.substr(0, end));
    published.push_back(entry.substr(std::min(end + 1, entry.size())));
  }
  body_->book->Fill(published);
  return Barrier();
}

auto PeerGroup::Break(int64_t peer, std::string_view why) -> Error {
  const auto index = static_cast<size_t>(peer);
  const std::string name = options_.members.empty() ? fmt::format("member {} of the group {}", peer, options_.name)
                                                    : options_.members[index];
  const std::string clause =
      why == LateClause ? fmt::format("did not come within {} s", options_.timeout.value) : std::string(why);
  broken_ = std::make_unique<Error>(Fail(ExitCode::Environment, "{} ({}) {}", name, hosts_[index], clause));
  body_->Disconnect();
  body_.reset();
  return *broken_;
}

auto PeerGroup::Exchange() -> Status {
  Body& body = *body_;
  body.BeginCall();
  int64_t peer = options_.index;
  try {
    for (const Transfer& transfer : body.transfers) {
      // Gloo writes a message in this thread if the peer has posted its receive, and locks the connection meanwhile.
      // Its own thread then spins on whatever comes in by that connection. So nothing may come in yet: receives are
      // posted after sends.
      peer = transfer.to;
      if (transfer.bytes > 0) {
        body.data.push_back(body.Send(peer, transfer.sent, transfer.bytes, DataTag));
      }
      body.sent_ends.push_back(body.Send(peer, nullptr, 0, EndTag));
      peer = transfer.from;
      if (transfer.bytes > 0) {
        body.data.push_back(body.Receive(peer, transfer.received, transfer.bytes, DataTag));
      }
      body.received_ends.push_back(body.Receive(peer, nullptr, 0, EndTag));
    }
    for (size_t i = 0; i < body.transfers.size(); ++i) {
      peer = body.transfers[i].from;
      if (!body.watch.Wait(*body.received_ends[i])) {
        return Break(peer, LateClause);
      }
    }
    for (size_t i = 0; i < body.transfers.size(); ++i) {
      peer = body.transfers[i].to;
      if (!body.watch.Wait(*body.sent_ends[i])) {
        return Break(peer, LateClause);
      }
    }
  } catch (const std::exception& exception) {
    return Break(peer, ClauseOf(TextOf(exception)));
  }
  return Success{};
}

template <class Sent>
auto PeerGroup::ExchangeWithEach(const Sent& sent, std::byte* from_each, int64_t bytes) -> Status {
  if (broken_ != nullptr) {
    return *broken_;
  }
  if (options_.size == 1 || bytes == 0) {
    return Success{};
  }
  body_->transfers.clear();
  for (int64_t distance = 1; distance < options_.size; ++distance) {
    const int64_t to = (options_.index + distance) % options_.size;
    const int64_t from = (options_.index + options_.size - distance) % options_.size;
    body_->transfers.push_back(
        {.to = to, .sent = sent(to), .from = from, .received = from_each + from * bytes, .bytes = bytes});
  }
  return Exchange();
}

auto PeerGroup::AllGather(const std::byte* mine, int64_t bytes, std::byte* all) -> Status {
  std::byte* own = all + options_.index * bytes;
  if (mine != own && bytes > 0) {
    std::memmove(own, mine, static_cast<size_t>(bytes));
  }
  if (options_.size > MostDirectPeers + 1 && bytes * options_.size <= MostBytesInRounds) {
    return GatherInRounds(bytes, all);
  }
  return ExchangeWithEach([&](int64_t) { return own; }, all, bytes);
}

auto PeerGroup::GatherInRounds(int64_t bytes, std::byte* all) -> Status {
  if (broken_ != nullptr) {
    return *broken_;
  }
  // Slot i is that of member index + i. In each round as many slots come as are there: those of the members from index
  // + distance on.
  std::vector<std::byte> slots(all + options_.index * bytes, all + (options_.index + 1) * bytes);
  slots.resize(static_cast<size_t>(bytes * options_.size));
  for (int64_t distance = 1; distance < options_.size; distance *= 2) {
    body_->transfers.assign(1, {.to = (options_.index + options_.size - distance) % options_.size,
                                .sent = slots.data(),
                                .from = (options_.index + distance) % options_.size,
                                .received = slots.data() + distance * bytes,
                                .bytes = bytes * std::min(distance, options_.size - distance)});
    RETURN_IF_ERROR(Exchange());
  }
  std::ranges::rotate_copy(slots, slots.end() - options_.index * bytes, all);
  return Success{};
}

auto PeerGroup::AllToAll(const std::byte* to_each, int64_t stride, std::byte* from_each, int64_t bytes) -> Status {
  return ExchangeWithEach([&](int64_t peer) { return to_each + peer * stride; }, from_each, bytes);
}

auto PeerGroup::Barrier() -> Status {
  if (broken_ != nullptr) {
    return *broken_;
  }
  // After each round a member has heard of twice as many as before.
  for (int64_t distance = 1; distance < options_.size; distance *= 2) {
    body_->transfers.assign(1, {.to = (options_.index + distance) % options_.size,
                                .from = (options_.index + options_.size - distance) % options_.size});
    RETURN_IF_ERROR(Exchange());
  }
  return Success{};
}

}  // namespace shardc
