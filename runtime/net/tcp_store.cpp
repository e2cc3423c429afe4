// The one file that calls c10d::TCPStore.

#include "runtime/net/c10d_headers.h"

#include <resolv.h>

#include <set>
#include <utility>
#include <vector>

#include "runtime/net/connections.h"
#include "runtime/net/tcp_store.h"
#include "runtime/net/torch_error.h"

namespace shardc {

struct TcpStore::Body {
  c10::intrusive_ptr<c10d::TCPStore> store;
};

TcpStore::TcpStore() : body_(std::make_unique<Body>()) {}
TcpStore::~TcpStore() = default;

namespace {

/// For texts that nobody reads c10d asks the name servers for the name of each address that it connects to. Where they
/// do not know it, or do not answer, this takes seconds per rank. While an object lives, this thread has no name
/// servers.
class WithoutNameServers {
 public:
  WithoutNameServers() {
    if ((_res.options & RES_INIT) == 0) {
      res_init();
    }
    count_ = std::exchange(_res.nscount, 0);
  }
  WithoutNameServers(const WithoutNameServers&) = delete;
  ~WithoutNameServers() { _res.nscount = count_; }

 private:
  int count_ = 0;
};

}  // namespace

static auto Construct(const SocketAddress& address, const c10d::TCPStoreOptions& options)
    -> c10::intrusive_ptr<c10d::TCPStore> {
  SilenceTorchLog();
  const WithoutNameServers none;
  return c10::make_intrusive<c10d::TCPStore>(address.Host(), options);
}

/// Runs `call`, and turns what it throws into an error.
template <class Call>
static auto Guarded(const Call& call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::exception& exception) {
    return Error{ExitCode::Environment, ClauseOf(TextOf(exception))};
  }
}

static auto ToBytes(std::string_view value) -> std::vector<uint8_t> { return {value.begin(), value.end()}; }

static auto OwnAddressesTowards(const std::string& server) -> std::set<std::string> {
  std::set<std::string> own;
  for (const Connection& connection : OpenFiles().Connections()) {
    if (connection.peer.Text() == server) {
      own.insert(connection.own.Text());
    }
  }
  return own;
}

/// c10d does not tell which socket is a client's: it is the one that was not there before.
static auto NewAddressTowards(const std::string& server, const std::set<std::string>& before) -> std::string {
  for (const std::string& own : OwnAddressesTowards(server)) {
    if (!before.contains(own)) {
      return own;
    }
  }
  return "?";
}

auto TcpStore::Serve(int listening, const SocketAddress& own) -> ErrorOr<std::unique_ptr<TcpStore>> {
  return Guarded([&]() -> ErrorOr<std::unique_ptr<TcpStore>> {
    c10d::TCPStoreOptions options;
    options.port = own.Port();
    options.isServer = true;
    options.waitWorkers = false;
    options.masterListenFd = listening;
    std::unique_ptr<TcpStore> store(new TcpStore);
    const auto before = OwnAddressesTowards(own.Text());
    store->body_->store = Construct(own, options);
    store->own_address_ = NewAddressTowards(own.Text(), before);
    return store;
  });
}

auto TcpStore::Connect(const SocketAddress& server, std::chrono::milliseconds timeout)
    -> ErrorOr<std::unique_ptr<TcpStore>> {
  return Guarded([&]() -> ErrorOr<std::unique_ptr<TcpStore>> {
    c10d::TCPStoreOptions options;
    options.port = server.Port();
    options.waitWorkers = false;
    // c10d counts whole seconds here.
    options.timeout = std::chrono::ceil<std::chrono::seconds>(timeout);
    std::unique_ptr<TcpStore> store(new TcpStore);
    const auto before = OwnAddressesTowards(server.Text());
    store->body_->store = Construct(server, options);
    store->own_address_ = NewAddressTowards(server.Text(), before);
    return store;
  });
}

auto TcpStore::Set(const std::string& key, std::string_view value) -> Status {
  return Guarded([&]() -> Status {
    body_->store->set(key, ToBytes(value));
    return Success{};
  });
}

auto TcpStore::Append(const std::string& key, std::string_view value) -> Status {
  return Guarded([&]() -> Status {
    body_->store->append(key, ToBytes(value));
    return Success{};
  });
}

auto TcpStore::Add(const std::string& key, int64_t value) -> ErrorOr<int64_t> {
  return Guarded([&]() -> ErrorOr<int64_t> { return body_->store->add(key, value); });
}

auto TcpStore::Wait(const std::string& key, std::chrono::milliseconds timeout) -> ErrorOr<bool> {
  return Guarded([&]() -> ErrorOr<bool> {
    try {
      body_->store->wait({key}, timeout);
    } catch (const c10::DistStoreError&) {
      // c10d has the same exception for an answer that it does not understand, after which no call succeeds.
      return false;
    }
    return true;
  });
}

auto TcpStore::Has(const std::string& key) -> ErrorOr<bool> {
  return Guarded([&]() -> ErrorOr<bool> { return body_->store->check({key}); });
}

auto TcpStore::Get(const std::string& key) -> ErrorOr<std::string> {
  return Guarded([&]() -> ErrorOr<std::string> {
    const std::vector<uint8_t> value = body_->store->get(key);
    return std::string(value.begin(), value.end());
  });
}

}  // namespace shardc
