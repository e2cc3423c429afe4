// The parent binds and listens, so that its error says what is wrong with the address, and clients may connect as soon
// as Start returns. The child takes the socket over, builds c10d's server on it, says so, and waits for its end:
//
//   Stop                  the parent kills it. It has nothing to lose: what it knows is of this job.
//   LetGo                 a byte in a pipe.
//   the parent is gone    the child has another parent. (The end of the pipe does not say so: forks of the parent hold
//                         it open too.)
//   silence               nobody sends it anything (client_watch.h).
//
// The child has two threads of its own. One asks the store, as a client, who is a member; it may stay in a call for
// ever, if the address of the server goes away (that of IPv6 does when its link goes down). So the other one decides
// about the end, by what the kernel says, without a call to the store.
#include "runtime/net/store_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "compiler/base/standard_streams.h"
#include "compiler/base/waited_time.h"
#include "runtime/net/client_watch.h"
#include "runtime/net/connections.h"
#include "runtime/net/error_text.h"
#include "runtime/net/member_watch.h"
#include "runtime/net/open_file_limit.h"
#include "runtime/net/store.h"
#include "runtime/net/tcp_store.h"

namespace shardc {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

/// How often the child looks for its parent.
constexpr int LookMs = 200;
/// How long the child may take until it serves.
constexpr Seconds LongestStart{60};
/// Ranks connect all at once. The kernel takes the least of this and net.core.somaxconn.
constexpr int Backlog = 16384;
/// What the child says when it serves; anything else is an error's text.
constexpr std::string_view Serves = "serves";

struct Pipe {
  OwnedDescriptor read;
  OwnedDescriptor write;
};

struct Listening {
  OwnedDescriptor socket;
  SocketAddress own;
};

}  // namespace

static auto MakePipe() -> ErrorOr<Pipe> {
  int ends[2];
  FAIL_IF(pipe2(ends, O_CLOEXEC) != 0, ExitCode::Environment, "cannot make a pipe: {}", std::strerror(errno));
  return Pipe{OwnedDescriptor(ends[0]), OwnedDescriptor(ends[1])};
}

static auto ListenOn(const SocketAddress& address) -> ErrorOr<Listening> {
  Listening listening{OwnedDescriptor(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)),
                      {.bytes = {}, .size = sizeof(sockaddr_storage)}};
  const int number = listening.socket.number();
  const int on = 1;
  // A server that ended a moment ago leaves connections that the kernel still keeps.
  setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (number < 0 || bind(number, address.data(), address.size) != 0 || listen(number, Backlog) != 0 ||
      getsockname(number, listening.own.data(), &listening.own.size) != 0) {
    const int why = errno;
    return Fail(ExitCode::Environment, why == EADDRINUSE ? ErrorKind::AddressInUse : ErrorKind::None, "{}",
                why == EADDRINUSE      ? "it is in use"
                : why == EADDRNOTAVAIL ? "it is no address of this host"
                                       : std::strerror(why));
  }
  return listening;
}

static auto ListenOn(const Endpoint& endpoint) -> ErrorOr<Listening> {
  ASSIGN_OR_RETURN(const auto addresses, Resolve(endpoint));
  // One socket listens. Of a name with addresses of both kinds more hosts reach that of IPv4.
  Error reason;
  for (const SocketAddress& address : Ipv4First(addresses)) {
    auto listening = ListenOn(address);
    if (listening) {
      return listening;
    }
    reason = listening.error();
  }
  return Fail(ExitCode::Environment, reason.kind, "the store cannot listen on {}: {}", endpoint.Text(), reason.message);
}

static auto Say(const OwnedDescriptor& pipe, std::string_view text) -> void {
  while (write(pipe.number(), text.data(), text.size()) < 0 && errno == EINTR) {
  }
}

namespace {

/// The server in its process, with the job that it serves.
class Serving {
 public:
  Serving(TcpStore& store, uint16_t port, const std::string& prefix)
      : store_(store),
        port_(port),
        members_key_(JobStore::FullKey(prefix, MembersKey)),
        abandoned_key_(JobStore::FullKey(prefix, JobStore::AbandonedKey)) {
    own_ = store_.OwnAddress();
  }

  /// For ever, on a thread of its own: whether members of the job are gone, who are told to the others.
  [[noreturn]] auto WatchMembers() -> void;

  /// The process that started the server has ended.
  auto LeaveOver() -> void { is_left_over_ = true; }
  auto SeesConnections() const -> bool { return files_of_members_.is_known() && files_of_clients_.is_known(); }
  /// Whether a client that is connected has said something within `time`, or the kernel does not tell; `none` if no
  /// client is connected.
  auto HaveSpokenWithin(Seconds time, bool none) -> bool;

 private:
  /// How long to sleep until the next look.
  auto LookAtMembers() -> milliseconds;
  /// How many bytes came from the other ends of the connections to the server.
  auto ClientsIn(OpenFiles& files) const -> std::map<std::string, uint64_t>;

  TcpStore& store_;
  uint16_t port_;
  std::string members_key_;
  std::string abandoned_key_;
  /// The server's own client.
  std::string own_;
  std::atomic<bool> is_left_over_ = false;
  /// Somebody has abandoned the job.
  bool is_given_up_ = false;
  bool has_told_ = false;
  /// Of the two threads.
  OpenFiles files_of_members_;
  OpenFiles files_of_clients_;
  MemberWatch members_;
  ClientWatch clients_;
};

}  // namespace

auto Serving::ClientsIn(OpenFiles& files) const -> std::map<std::string, uint64_t> {
  std::map<std::string, uint64_t> clients;
  for (const Connection& connection : files.Connections()) {
    const std::string peer = connection.peer.Text();
    if (connection.own.Port() == port_ && peer != own_) {
      clients[peer] = connection.bytes_received;
    }
  }
  return clients;
}

auto Serving::HaveSpokenWithin(Seconds time, bool none) -> bool {
  const auto received = ClientsIn(files_of_clients_);
  clients_.Look(received, Clock::now());
  // Every client has sent a greeting.
  const bool is_counted = std::ranges::any_of(received, [](const auto& client) { return client.second > 0; });
  const auto duration = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(time.value));
  return received.empty() ? none : !is_counted || clients_.HaveSpokenWithin(duration);
}

auto Serving::WatchMembers() -> void {
  while (true) {
    const auto next = Clock::now() + LookAtMembers();
    while (Clock::now() < next) {
      // At once: the processes of the next launch would take this store for theirs.
      if (is_left_over_ && !has_told_) {
        has_told_ = store_.Set(LeftOverKey, "1").ok();
      }
      std::this_thread::sleep_for(std::min<Clock::duration>(next - Clock::now(), milliseconds(LookMs)));
    }
  }
}

auto Serving::LookAtMembers() -> milliseconds {
  constexpr milliseconds Shortest{20};
  constexpr milliseconds Longest{1000};
  // A twentieth of one core, whatever a look costs.
  constexpr int Share = 20;
  const auto begin = Clock::now();
  const auto is_there = store_.Has(members_key_);
  const auto lines = is_there.ok() && *is_there ? store_.Get(members_key_) : ErrorOr<std::string>("");
  if (lines) {
    std::set<std::string> connected;
    for (const auto& [client, received] : ClientsIn(files_of_members_)) {
      connected.insert(client);
    }
    const auto gone = members_.Look(*lines, connected, Clock::now());
    const auto given_up = is_given_up_ ? ErrorOr<bool>(true) : store_.Has(abandoned_key_);
    if (given_up && gone && !*given_up) {
      static_cast<void>(store_.Set(abandoned_key_, PackError({ExitCode::Environment, *gone})));
    }
    is_given_up_ = is_given_up_ || (given_up && (*given_up || gone));
  }
  const auto cost = std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
  return std::clamp(Share * cost, members_.is_quiet(begin) ? milliseconds(LookMs) : Shortest, Longest);
}

[[noreturn]] static auto RunServer(const Listening& listening, Pipe& let_go, Pipe& said, pid_t parent,
                                   const StoreServer::Options& options) -> void {
  for (int signal = 1; signal < NSIG; ++signal) {
    // Faults of its own and SIGKILL end it; the signals of job control stop it with the others.
    const bool is_fault = signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL ||
                          signal == SIGABRT || signal == SIGTRAP || signal == SIGSYS;
    const bool is_job_control = signal == SIGTSTP || signal == SIGCONT || signal == SIGTTIN || signal == SIGTTOU;
    std::signal(signal, is_fault || is_job_control ? SIG_DFL : SIG_IGN);
  }
  prctl(PR_SET_NAME, "shardc-store");
  // If the server is stopped (SIGSTOP) and its parent ends, the server goes on and finds that out.
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  RaiseOpenFileLimit();
  CloseAllBut({listening.socket.number(), let_go.read.number(), said.write.number()});
  const auto store = TcpStore::Serve(listening.socket.number(), listening.own);
  if (!store) {
    Say(said.write, store.error().message);
    _exit(static_cast<int>(ExitCode::Environment));
  }
  static_cast<void>((*store)->Set(JobKey, options.prefix));
  Serving serving(**store, listening.own.Port(), options.prefix);
  if (!serving.SeesConnections()) {
    Say(said.write, "it cannot read /proc/self/fd");
    _exit(static_cast<int>(ExitCode::Environment));
  }
  Say(said.write, Serves);
  said.write.Close();
  // It never ends before this process does.
  std::thread([&serving] { serving.WatchMembers(); }).detach();
  pollfd watched{.fd = let_go.read.number(), .events = POLLIN, .revents = 0};
  while (getppid() == parent && poll(&watched, 1, LookMs) <= 0) {
    if (!serving.HaveSpokenWithin(options.silence, true)) {
      _exit(static_cast<int>(ExitCode::Ok));
    }
  }
  serving.LeaveOver();
  const auto end = Clock::now() + std::chrono::duration<double>(options.linger.value);
  do {
    std::this_thread::sleep_for(milliseconds(LookMs));
  } while (Clock::now() < end && serving.HaveSpokenWithin(StoreServer::LongestSilence, false));
  _exit(static_cast<int>(ExitCode::Ok));
}

/// What the child says until it closes the pipe; nothing if it has not within `longest`.
static auto ReadAll(const OwnedDescriptor& pipe, Seconds longest) -> std::optional<std::string> {
  std::string text;
  pollfd watched{.fd = pipe.number(), .events = POLLIN, .revents = 0};
  WaitedTime waited;
  while (true) {
    while (poll(&watched, 1, LookMs) <= 0) {
      if (std::chrono::duration<double>(waited.Look()).count() >= longest.value) {
        return std::nullopt;
      }
    }
    char bytes[256];
    const ssize_t count = read(pipe.number(), bytes, sizeof bytes);
    if (count <= 0) {
      return text;
    }
    text.append(bytes, static_cast<size_t>(count));
  }
}

auto StoreServer::Start(const Address& address, const Options& options) -> ErrorOr<StoreServer> {
  ASSIGN_OR_RETURN(auto listening, ListenOn(address));
  auto let_go = MakePipe();
  auto said = MakePipe();
  if (!let_go || !said) {
    return let_go ? said.error() : let_go.error();
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    RunServer(listening, *let_go, *said, parent, options);
  }
  FAIL_IF(child < 0, ExitCode::Environment, "cannot start the server of the store: {}", std::strerror(errno));
  StoreServer server;
  server.owner_ = parent;
  server.pid_ = child;
  server.address_ = {listening.own.Host(), listening.own.Port()};
  server.let_go_ = std::move(let_go->write);
  said->write.Close();
  const Seconds longest = std::min(LongestStart, options.silence);
  const auto text = ReadAll(said->read, longest);
  FAIL_IF(text != Serves, ExitCode::Environment, "the store on {} cannot serve: {}", address.Text(),
          !text           ? fmt::format("its process, {}, has said nothing for {:g} s", child, longest.value)
          : text->empty() ? "its process ended"
                          : *text);
  return server;
}

StoreServer::StoreServer(StoreServer&& other) noexcept
    : owner_(other.owner_),
      pid_(std::exchange(other.pid_, 0)),
      address_(other.address_),
      let_go_(std::move(other.let_go_)) {}

auto StoreServer::operator=(StoreServer&& other) noexcept -> StoreServer& {
  if (this != &other) {
    Stop();
    owner_ = other.owner_;
    pid_ = std::exchange(other.pid_, 0);
    address_ = other.address_;
    let_go_ = std::move(other.let_go_);
  }
  return *this;
}

auto StoreServer::Stop() -> void {
  const pid_t pid = std::exchange(pid_, 0);
  if (pid == 0 || owner_ != getpid()) {
    return;
  }
  // 0: it runs. Otherwise its number may be that of another process by now.
  if (waitpid(pid, nullptr, WNOHANG) == 0) {
    kill(pid, SIGKILL);
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

auto StoreServer::LetGo() -> void {
  siginfo_t stopped{};
  // It would keep the port.
  if (pid_ != 0 && owner_ == getpid() &&
      waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED | WNOHANG | WNOWAIT) == 0 && stopped.si_pid == pid_) {
    Stop();
    return;
  }
  if (std::exchange(pid_, 0) != 0 && owner_ == getpid()) {
    Say(let_go_, "1");
    let_go_.Close();
  }
}

}  // namespace shardc
