// c10d's client tries again by itself, but warns on the standard error stream each time, and asks for longer than it
// may. So it is given an address that answers.
#include "runtime/net/dial.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>

namespace shardc {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// One attempt may take as long: a packet that is lost is sent again after 1 and 3 s.
constexpr milliseconds LongestAttempt{5000};
constexpr milliseconds FirstPause{20};
constexpr milliseconds LongestPause{500};
/// The name of a host that is just starting may come to its name server later. One that is misspelled never does.
constexpr std::chrono::seconds LongestWaitForName{30};

}  // namespace

static auto Until(Clock::time_point deadline) -> milliseconds {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(deadline - Clock::now()));
}

/// 0 or the reason, as errno has it.
static auto Attempt(const SocketAddress& address, Clock::time_point deadline) -> int {
  const OwnedDescriptor descriptor(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!descriptor.is_open()) {
    return errno;
  }
  if (connect(descriptor.number(), address.data(), address.size) == 0) {
    return 0;
  }
  if (errno != EINPROGRESS) {
    return errno;
  }
  pollfd watched{.fd = descriptor.number(), .events = POLLOUT, .revents = 0};
  const milliseconds time = std::min(Until(deadline), LongestAttempt);
  if (poll(&watched, 1, static_cast<int>(time.count())) <= 0) {
    return ETIMEDOUT;
  }
  int reason = 0;
  socklen_t size = sizeof reason;
  getsockopt(descriptor.number(), SOL_SOCKET, SO_ERROR, &reason, &size);
  return reason;
}

/// `address`: one that the name of the server stands for.
static auto Explain(int reason, const Endpoint& server, const SocketAddress& address) -> std::string {
  const std::string where = address.Host();
  const std::string named = where == server.host ? "" : fmt::format(" ({})", where);
  switch (reason) {
    case ECONNREFUSED: return "nobody listens there";
    case ETIMEDOUT: return "it did not answer" + named;
    default: return std::strerror(reason) + named;
  }
}

auto Dial(const Endpoint& server, Clock::time_point deadline) -> ErrorOr<SocketAddress> {
  const auto begin = Clock::now();
  milliseconds pause = FirstPause;
  while (true) {
    Error reason{ExitCode::Environment, ""};
    auto name_deadline = deadline;
    if (const auto addresses = Resolve(server)) {
      for (const SocketAddress& address : *addresses) {
        const int failure = Attempt(address, deadline);
        if (failure == 0) {
          return address;
        }
        // Of a host that listens on one of its addresses, another one may refuse while that one is silent.
        if (reason.message.empty() || failure != ECONNREFUSED) {
          reason = {ExitCode::Environment, Explain(failure, server, address),
                    failure == ECONNREFUSED ? ErrorKind::NobodyListens : ErrorKind::None};
        }
      }
    } else {
      reason = {ExitCode::Environment, addresses.error().message};
      name_deadline = std::min(deadline, begin + LongestWaitForName);
    }
    if (Clock::now() + pause >= name_deadline) {
      return reason;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, LongestPause);
  }
}

}  // namespace shardc
